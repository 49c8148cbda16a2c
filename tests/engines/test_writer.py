"""Long lines of programs that the template engine writes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fuzzer.engines.writer import WIDTH, broken

LONG = (
    "    n, o = torch.nn.functional.max_pool1d(m[:2, :3, :4], kernel_size=3, stride=2, ceil_mode=True, padding=0, "
    "dilation=1, return_indices=True)"
)


def test_the_arguments_of_a_long_call_get_a_line_of_their_own() -> None:
    lines = broken(LONG).split("\n")
    assert lines[0] == "    n, o = torch.nn.functional.max_pool1d(" and lines[2] == "    )"
    assert all(len(line) <= WIDTH for line in lines)
    assert ast.dump(ast.parse(broken(LONG).strip())) == ast.dump(ast.parse(LONG.strip()))
    assert broken(broken(LONG)) == broken(LONG)


@pytest.mark.parametrize(
    "line",
    [
        "    a = torch.sin(b)",
        "    a = " + " + ".join(["b"] * 40),
        "    a = f(" + ", ".join(["b"] * 60) + ")",  # the arguments alone are too long
        '    a = f("(' + "x" * 120 + '")',
        "    a, b = (" + ", ".join(["b"] * 34) + ")",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert broken(line) == line


def test_strings_without_brackets_do_no_harm() -> None:
    line = LONG.replace("ceil_mode=True", 'mode="nearest"')
    assert broken(line).count("\n") == 2


def test_a_program_means_the_same_afterwards() -> None:
    seeds = sorted((Path(__file__).parents[2] / "corpus" / "seeds").rglob("*.py"))
    assert len(seeds) > 100
    for seed in seeds:
        text = seed.read_text(encoding="utf-8")
        assert ast.dump(ast.parse(broken(text))) == ast.dump(ast.parse(text))
