"""The contract of a program, read without executing anything."""

import pytest

from fuzzer.program import Program, ProgramError

GOOD = """import torch

META = {"mode": "backward"}


def build_inputs():
    return (torch.ones(2, requires_grad=True),)


def fn(a):
    return a * 2
"""


def test_the_contract_is_read() -> None:
    program = Program.parse(GOOD)
    assert (program.mode, program.meta) == ("backward", {"mode": "backward"})
    assert program.id == Program.parse(GOOD).id != Program.parse(GOOD + "\n").id


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("def fn(a)", "def gn(a)"), "no function `fn`"),
        (("return a * 2", "return a *"), "not valid Python"),
        (("import torch\n", "import torch\nimport os\n"), "'os' is not allowed"),
        (("    return a * 2", "    import socket\n    return a * 2"), "'socket' is not allowed"),
        (("import torch\n", "import torch\nfrom subprocess import run\n"), "'subprocess' is not allowed"),
        (('"backward"}', '"sideways"}'), "'sideways'"),
        (('"backward"}', "str(1)}"), "plain literals"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(change: tuple[str, str], named: str) -> None:
    with pytest.raises(ProgramError, match=named) as caught:
        Program.parse(GOOD.replace(*change), "file.py")
    assert str(caught.value).startswith("file.py") and "\n" not in str(caught.value)


def test_an_exported_repro_is_a_program_too() -> None:
    script = GOOD + '\n\nif __name__ == "__main__":\n    import sys\n\n    sys.exit(1)\n'
    assert Program.parse(script).mode == "backward"
