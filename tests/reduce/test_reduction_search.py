"""Reduction against predicates that need no torch: does it shrink to exactly this?"""

import asyncio

import pytest

from fuzzer.program import Program
from fuzzer.reduce import Fails, reduce_program

PROGRAM = """import torch

META = {"mode": "backward", "features": ["dtype=int8"], "inductor_config": {"max_fusion_size": 2}}


def build_inputs():
    torch.manual_seed(0)
    a = torch.randn(3, 4)
    b = torch.zeros(4)
    c = torch.randn(2)
    return a, b, c


def fn(a, b, c):
    d = torch.sin(a)
    e = d + b
    f = torch.argmax(e, dim=1)
    g = torch.cumsum(c, 0)
    g.add_(1)
    return f, g, e
"""


def reduced(fails: Fails, text: str = PROGRAM, budget: int = 60) -> Program:
    return asyncio.run(reduce_program(Program.parse(text), fails, budget)).program


def containing(*words: str) -> Fails:
    async def fails(program: Program) -> bool:
        return all(word in program.text for word in words)

    return fails


def body(program: Program) -> str:
    return program.text.split("def fn")[1]


def test_one_operator_is_left_of_a_forest() -> None:
    assert body(reduced(containing("argmax("))) == "(a):\n    f = torch.argmax(a)\n    return f\n"


def test_a_chain_that_is_needed_stays() -> None:
    small = body(reduced(containing("argmax(", "sin(")))
    assert small == "(a):\n    d = torch.sin(a)\n    f = torch.argmax(d)\n    return f\n"


def test_writes_in_place_are_dropped_or_kept_as_the_predicate_says() -> None:
    assert "add_" not in body(reduced(containing("cumsum(")))
    assert "add_" in body(reduced(containing("cumsum(", "add_(")))


def test_options_modes_and_the_loops_own_notes_go() -> None:
    small = reduced(containing("argmax("))
    assert small.meta == {"mode": "forward"}


def test_options_that_matter_stay() -> None:
    assert reduced(containing("max_fusion_size")).meta["inductor_config"] == {"max_fusion_size": 2}


def test_inputs_that_nothing_reads_go() -> None:
    small = reduced(containing("argmax("))
    assert "torch.randn(2)" not in small.text and "zeros" not in small.text


def test_the_program_itself_is_returned_when_nothing_smaller_fails() -> None:
    program = Program.parse(PROGRAM)

    async def only_it(candidate: Program) -> bool:
        return candidate.text == program.text

    assert asyncio.run(reduce_program(program, only_it)).program is program


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_the_result_was_always_seen_to_fail(budget: int) -> None:
    seen: list[str] = [PROGRAM]

    async def fails(candidate: Program) -> bool:
        if "argmax(" in candidate.text:
            seen.append(candidate.text)
            return True
        return False

    assert reduced(fails, budget=budget).text in seen


@pytest.mark.parametrize("budget", [1, 2, 4, 8, 16])
def test_no_budget_is_too_small_to_drop_inputs_that_nothing_reads(budget: int) -> None:
    small = reduced(containing("argmax("), budget=budget)
    build, fn = small.text.split("def fn(")
    params = fn.partition(")")[0].split(", ")
    drawn = [line.split(" = ")[0].strip() for line in build.splitlines() if " = torch." in line]
    assert sorted(drawn) == sorted(params)


@pytest.mark.parametrize("budget", [0, 3, 60])
def test_definitions_go_with_what_named_them(budget: int) -> None:
    text = (
        PROGRAM.replace(
            "import torch\n",
            'from collections import namedtuple\n\nimport torch\n\nPair = namedtuple("Pair", "x y")\n\n\n'
            "class Scale(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n",
        )
        .replace("c = torch.randn(2)", "c = Scale()")
        .replace("torch.cumsum(c, 0)", "Pair(c(b), b).x")
    )
    small = reduced(containing("argmax("), text, budget)
    if budget:
        assert not [word for word in ("Pair", "namedtuple", "Scale") if word in small.text]


def test_no_text_is_run_twice() -> None:
    seen: list[str] = []

    async def fails(candidate: Program) -> bool:
        seen.append(candidate.text)
        return "argmax(" in candidate.text

    reduced(fails)
    assert len(seen) == len(set(seen))


def test_the_second_builder_follows_the_inputs() -> None:
    two = PROGRAM.replace(
        "\n\ndef fn",
        "\n\ndef build_inputs2():\n    a = torch.randn(5, 4)\n    b = torch.zeros(4)\n    c = torch.randn(2)\n"
        "    return a, b, c\n\n\ndef fn",
    )
    small = reduced(containing("argmax(", "build_inputs2"), two)
    assert "return (a,)" in small.text.split("build_inputs2")[1].split("def fn")[0]
