"""What becomes of each habit of test suites. The programs of these tests are read; test_importer_torch runs them."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.seeds.importer import Imported, import_paths, import_source
from fuzzer.seeds.resolve import unbound
from fuzzer.seeds.source import SourceFile
from tests.seeds.suites import BARE, COMPARED, COMPILED, SCRIPT


def imported(text: str) -> dict[str, Imported]:
    return {item.test.rpartition(".")[2]: item for item in import_source(SourceFile.parse(text))}


@pytest.fixture(scope="module")
def compared() -> dict[str, Imported]:
    return imported(COMPARED)


@pytest.fixture(scope="module")
def compiled() -> dict[str, Imported]:
    return imported(COMPILED)


def only(item: Imported) -> Program:
    assert len(item.programs) == 1, (item.reason, item.detail)
    return item.programs[0]


def function(program: Program, name: str = "fn") -> str:
    tree = ast.parse(program.text)
    return next(ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def test_a_plain_comparison(compared: dict[str, Imported]) -> None:
    program = only(compared["test_plain"])
    assert function(program) == "def fn(a, b):\n    return (aten.add(a, b), a @ b)"
    assert "torch.manual_seed(0)" in function(program, "build_inputs")
    assert "device='cpu'" in function(program, "build_inputs")
    assert "from torch._dynamo.testing import rand_strided" in program.text
    assert program.meta["engine"] == "import" and program.meta["title"] == "CommonTemplate.test_plain"


def test_helpers_of_the_class_and_of_the_file_come_along(compared: dict[str, Imported]) -> None:
    text = only(compared["test_helpers"]).text
    assert "def scaled(x):" in text and "SCALE = 3" in text
    assert "def shift(x):\n    return x + width" in text and "width = 8" in text
    assert "self" not in text and "cuda" not in text


def test_a_module_becomes_an_input(compared: dict[str, Imported]) -> None:
    program = only(compared["test_module"])
    assert function(program) == "def fn(a, module):\n    return module(a)"
    assert "class AddOne(nn.Module):" in program.text


def test_captured_tensors_become_inputs_and_captured_numbers_stay(compared: dict[str, Imported]) -> None:
    program = only(compared["test_captured"])
    assert function(program).startswith("def fn(x, weight):\n\n    def inner(x):")
    assert "\ndim = 0\n" in program.text
    assert program.mode == "backward"


def test_a_loop_gives_a_program_a_value(compared: dict[str, Imported]) -> None:
    builds = [function(program, "build_inputs") for program in compared["test_loop"].programs]
    assert [("torch.float32" in text, "torch.int64" in text) for text in builds] == [(True, False), (False, True)]


def test_options_around_the_call_become_meta(compared: dict[str, Imported]) -> None:
    program = only(compared["test_options"])
    assert program.meta["inductor_config"] == {"max_autotune": True}  # what concerns a GPU is left out
    assert program.meta["no_grad"] is True
    assert "functools.partial(torch.sum, dim=0)(a)" in program.text


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("test_gpu_only", "the test skips itself on a CPU"),
        ("test_error", "expects an error"),
        ("test_nothing", "nothing is compiled"),
        ("test_elsewhere", "a name that the file does not explain"),
    ],
)
def test_reasons_why_there_is_no_program(compared: dict[str, Imported], test: str, reason: str) -> None:
    assert (compared[test].programs, compared[test].reason) == ((), reason)


def test_parameters_take_their_values_in_turn(compiled: dict[str, Imported]) -> None:
    programs = compiled["test_parametrized"].programs
    assert [("(2, 3)" in p.text, "dim = 0" in p.text) for p in programs] == [(True, True), (False, False)]
    assert "(4, 5)" in programs[1].text and "dim = 1" in programs[1].text
    assert programs[0].meta["compile"] == {"fullgraph": True}


def test_a_fixture_is_put_in_place(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_fixture"])
    assert "m = torch.nn.Linear(4, 4)" in function(program, "build_inputs")
    assert program.mode == "dynamic"


def test_a_second_call_of_the_same_callable(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_second_call"])
    assert "(3)" in function(program, "build_inputs") and "(5, 2)" in function(program, "build_inputs2")
    assert "torch.compile" not in program.text


def test_keyword_arguments_become_positional(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_old_spelling"])
    assert "return (x, 3.0)" in function(program, "build_inputs")
    assert program.mode == "backward" and program.meta["compile"] == {"fullgraph": True}


def test_a_helper_that_compiles_is_looked_through(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_through_helper"])
    assert function(program) == "def fn(a, b):\n    return a - b"


def test_a_runner_that_is_given_the_compiled_function_is_looked_through(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_a_runner_is_given_both"])
    assert function(program) == "def fn(x, y):\n    return x + y"
    assert "x = torch.ones(3)" in function(program, "build_inputs")


def test_another_function_called_fn_is_renamed(compiled: dict[str, Imported]) -> None:
    program = only(compiled["test_recursive_name"])
    assert function(program) == "def fn(x):\n    return inner_fn(inner_fn(x))"


def test_a_script_is_its_last_call() -> None:
    program = only(next(iter(imported(SCRIPT).values())))
    assert function(program) == "def fn(x, model):\n    return model(x)"
    assert "cuda" not in program.text


def test_a_module_and_inputs_that_are_never_brought_together() -> None:
    program = only(next(iter(imported(BARE).values())))
    assert function(program) == "def fn(x1, x2, module):\n    return module(x1, x2)"
    assert "return (x1, x2, module)" in function(program, "build_inputs")


def test_duplicates_are_told(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("import torch\n\n\ndef test_x():\n    torch.compile(torch.sin)(torch.ones(2))\n")
    (tmp_path / "broken.py").write_text("def test_x(:\n")
    found = import_paths([tmp_path])
    assert [item.reason for item in found] == ["not a readable Python file", "", "a duplicate"]


@pytest.mark.parametrize(("name", "text"), [("absent.py", None), ("broken.py", "def (:"), ("empty", "")])
def test_bad_paths_are_told_in_one_line(tmp_path, name: str, text: str | None) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / name
    if text == "":
        path.mkdir()
    elif text is not None:
        path.write_text(text)
    with pytest.raises(UserError) as error:
        import_paths([path])
    assert name in str(error.value) and "\n" not in str(error.value)


NAMES = st.sampled_from(["x", "y", "weight", "fn", "f", "dim", "inputs", "model"])


@given(
    function=NAMES,
    parameter=NAMES,
    tensor=NAMES,
    captured=NAMES,
    number=NAMES,
    how=st.sampled_from(
        ["self.common({f}, ({t},))", "torch.compile({f})({t})", "c = torch.compile({f})\n        c({t})"]
    ),
)
def test_every_program_stands_alone(
    function: str, parameter: str, tensor: str, captured: str, number: str, how: str
) -> None:
    """Whatever the names are, and however they hide one another: nothing unbound is left, or there is no program."""
    text = f"""
import torch

class T:
    def test_x(self):
        {tensor} = torch.randn(3)
        {captured} = torch.ones(3)
        {number} = 2

        def {function}({parameter}):
            return {parameter} * {captured} + {number}

        {how.format(f=function, t=tensor)}
"""
    (item,) = import_source(SourceFile.parse(text))
    assert item.programs or item.reason
    for program in item.programs:
        assert not unbound(program.text)
        compile(program.text, "program", "exec")
