"""Imported programs run, give what the test's own function gives, and make fresh inputs at every call."""

import pytest

torch = pytest.importorskip("torch")

from fuzzer.program import Program  # noqa: E402
from fuzzer.seeds.importer import import_source  # noqa: E402
from fuzzer.seeds.source import SourceFile  # noqa: E402
from tests.seeds.suites import BARE, COMPARED, COMPILED, SCRIPT  # noqa: E402

pytestmark = pytest.mark.torch

PROGRAMS = [
    program
    for text in (COMPARED, COMPILED, SCRIPT, BARE)
    for item in import_source(SourceFile.parse(text))
    for program in item.programs
]


def _names(program: Program) -> dict[str, object]:
    names: dict[str, object] = {"__name__": "program"}
    exec(program.text, names)
    return names


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: str(program.meta["title"]))
def test_it_runs_on_fresh_inputs(program: Program) -> None:
    names = _names(program)
    first, second = names["build_inputs"](), names["build_inputs"]()  # type: ignore[operator]
    for a, b in zip(first, second):
        if isinstance(a, torch.Tensor):
            assert a is not b and torch.equal(a, b)
    result = names["fn"](*first)  # type: ignore[operator]
    assert isinstance(result, (torch.Tensor, tuple))
    if "build_inputs2" in names:
        names["fn"](*names["build_inputs2"]())  # type: ignore[operator]


def test_the_value_is_the_tests_own() -> None:
    program = next(p for p in PROGRAMS if p.meta["title"] == "test_custom_operator")
    names = _names(program)
    assert names["fn"](*names["build_inputs"]()).tolist() == [-2.0, -2.0, -2.0]  # type: ignore[operator]
