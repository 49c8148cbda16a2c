"""What of a model's text may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.features.detect import default_space
from fuzzer.knowledge.operators import Operators
from fuzzer.llm.free import Unfit, check, extract, finished, missing

OPERATORS = ("sin", "sum", "add", "nn.functional.relu", "linalg.norm")
GOOD = """import torch
import torch.nn.functional as F

META = {
    "mode": "forward",
    "atol": 1e9,
    "timeout": 9999,
    "inductor_config": {"cpp.cxx": "/bin/sh", "epilogue_fusion": False},
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return F.relu(self.linear(x))


def build_inputs():
    torch.manual_seed(0)
    return Net(), torch.randn(2, 4, dtype=torch.float32)


def fn(net, a):
    with torch.no_grad():
        b = torch.ops.aten.sin.default(a)
    return net(b).sum() + torch.linalg.norm(a)
"""


def body(line: str, head: str = "") -> str:
    build = "def build_inputs():\n    return (torch.ones(2),)"
    return f"import torch\n{head}\n\n{build}\n\n\ndef fn(a):\n    {line}\n    return a\n"


def test_a_program_keeps_only_what_a_model_may_choose() -> None:
    program = finished(check(GOOD, OPERATORS), ("dtype=float32",), ("abc",))
    assert program.meta == {
        "mode": "forward",
        "inductor_config": {"epilogue_fusion": False},
        "engine": "llm",
        "features": ["dtype=float32"],
        "parents": ["abc"],
    }
    assert "class Net" in program.text and check(program.text, OPERATORS)


@pytest.mark.parametrize(
    "line",
    [
        "open('/etc/passwd')",
        "exec('1')",
        "a.__class__.__mro__",
        "().__reduce__()",
        "torch.os.system('id')",
        "torch.load('x')",
        "torch.save(a, 'x')",
        "torch.hub.load('a', 'b')",
        "torch.utils.cpp_extension.load('a', 'b')",
        "torch.ops.load_library('x')",
        "torch.classes.load_library('x')",
        "torch.ops.mylib.op(a)",
        "torch.compile(fn)",
        "torch._dynamo.reset()",
        "torch.multiprocessing.spawn(fn)",
        "torch.serialization.load('x')",
        "getattr(torch, 'lo' + 'ad')('x')",
        "getattr(a, '__dict__')",
        "t = torch; t.sin(a)",
        "torch.anything_else(a)",
        "import os",
        "from torch import os",
        "from torch.utils import cpp_extension",
        "import torch as t",
        "import torch.utils.cpp_extension",
        "a.numpy().tofile('x')",
        "global b",
        "import collections; collections._sys.exit()",
        "import enum; enum.bltns.open('x')",
        "import numpy as np; np.load('x')",
        "print(a)",
        "__builtins__['open']",
        "[x for x in (1).__class__.__base__.__subclasses__()]",
    ],
)
def test_what_may_not_run(line: str) -> None:
    with pytest.raises(Unfit):
        check(body(line), OPERATORS)


@pytest.mark.parametrize(
    "head", ["torch.manual_seed(1)", "for i in range(9):\n    pass", "while True: pass", "with x: pass"]
)
def test_nothing_runs_at_module_level(head: str) -> None:
    with pytest.raises(Unfit):
        check(body("a.add_(1)", head), OPERATORS)


def test_the_contract_is_told_in_words_for_a_model() -> None:
    with pytest.raises(Unfit, match="no function `fn`"):
        check("import torch\n\n\ndef build_inputs():\n    return ()\n", OPERATORS)
    with pytest.raises(Unfit, match="not valid Python"):
        check("def fn(:\n", OPERATORS)
    with pytest.raises(Unfit, match="too long"):
        check(body("a = a + 1\n    " * 200), OPERATORS)


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        "text\n```python\n{}```\nmore",
        "```\n{}\n```",
        "```python\nx = 1\n```\nthen\n```py\n{}```",
        "```python\n{}",
    ],
)
def test_the_program_is_found_in_the_answer(answer: str) -> None:
    assert extract(answer.format(GOOD)).strip() == GOOD.strip()


def test_a_demonstration_at_the_end_is_cut_off() -> None:
    main = "\n\nif __name__ == '__main__':\n    import os\n    print(torch.compile(fn)(*build_inputs()))\n"
    assert check(body("a = a + 1") + main, OPERATORS).text == body("a = a + 1")


def test_programs_of_real_bug_reports_may_run() -> None:
    """The allowlist is no obstacle to what people write: nearly all cases of the exam pass."""
    cases = sorted((Path(__file__).parents[2] / "corpus" / "exam" / "cases").glob("*.py"))
    names = Operators.load_extract().by_key
    refused = {}
    for case in cases:
        try:
            check(case.read_text("utf-8"), names)
        except Unfit as why:
            refused[case.name] = str(why)
    assert len(cases) > 100 and len(refused) <= 0.04 * len(cases), refused


def test_an_answer_without_a_program() -> None:
    with pytest.raises(Unfit, match="no Python code block"):
        extract("I cannot help with that.")


def test_features_that_the_text_would_show() -> None:
    space = default_space()
    program = check(GOOD, OPERATORS)
    asked = ("dtype=float32", "dtype=bfloat16", "mode=backward", "layout=expanded", "unknown=feature")
    assert missing(program, asked, space, lambda name: "") == ["dtype=bfloat16", "mode=backward"]
