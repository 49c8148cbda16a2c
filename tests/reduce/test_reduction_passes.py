"""Every proposal of every pass parses, keeps the contract, and is smaller by the measure."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzer.engines.view import ProgramView
from fuzzer.program import Program
from fuzzer.reduce import PASSES, reduce_program
from fuzzer.reduce.measure import measure, statements
from fuzzer.reduce.search import sound, unbound

CASES = sorted((Path(__file__).parents[2] / "corpus" / "exam" / "cases").glob("*.py"))

UNARY = ["torch.sin({a})", "{a}.t()", "{a}.relu_()", "{a}.sum(dim=-1, keepdim=True)", "torch.nn.functional.gelu({a})"]
BINARY = ["{a} + {b}", "torch.maximum({a}, {b})", "torch.cat([{a}, {b}], dim=1)", "torch.where({a} > 0, {b}, 1.5)"]
NESTED = [
    "if {a}.shape[0] > 2:\n    {t} = {a} * 2\nelse:\n    {t} = {b}",
    "with torch.no_grad():\n    {t} = {a} - 1\n    {t} = {t} * {b}",
    "for i in range(3):\n    {a} = {a} + i\n    {a} = {a} * 2",
]
INPUTS = [
    "torch.randn(4, 9)", "torch.randn(9, 4).t()", "torch.randint(0, 5, (4, 9), dtype=torch.uint8)",
    "torch.ones(1, 9).expand(4, 9)", "torch.arange(72.0).reshape(8, 9)[::2]", "torch.zeros(4, 9, dtype=torch.float16)",
    "torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(9, 9))", "torch.randn(4, 9, requires_grad=True)",
]  # fmt: skip
METAS = [
    {"mode": "forward"},
    {"mode": "backward", "random": True},
    {"mode": "dynamic", "inductor_config": {"cpp.threads": 2, "freezing": True}, "features": ["dtype=int8"]},
    {"mode": "train", "compile": {"fullgraph": True}, "no_grad": False},
]


@st.composite
def programs(draw):
    names = ["a", "b", "c"]
    made = [draw(st.sampled_from(INPUTS)) for _ in names]
    lines, bound = [], list(names)
    for number in range(draw(st.integers(1, 12))):
        form = draw(st.sampled_from(UNARY + BINARY + NESTED))
        target = f"v{number}"
        parts = {"a": draw(st.sampled_from(bound)), "b": draw(st.sampled_from(bound)), "t": target}
        if "\n" in form:
            lines.append(form.format(**parts))
            bound += [target] if "{t}" in form else []
        else:
            lines.append(f"{target} = " + form.format(**parts))
            bound.append(target)
    results = draw(st.lists(st.sampled_from(bound), min_size=1, max_size=4, unique=True))
    build = "".join(f"    {name} = {text}\n" for name, text in zip(names, made))
    body = "".join(f"    {line}\n" for text in lines for line in text.split("\n"))
    return Program.parse(
        f"import torch\n\nMETA = {draw(st.sampled_from(METAS))!r}\n\n\ndef build_inputs():\n    torch.manual_seed(0)\n"
        f"{build}    return a, b, c\n\n\ndef fn(a, b, c):\n{body}    return {', '.join(results)}\n"
    )


@settings(max_examples=60, deadline=None)
@given(programs())
def test_every_proposal_is_a_smaller_program(program):
    view = ProgramView.of(program).normalise()
    size, proposed = measure(view), 0
    for reducer in PASSES:
        for smaller, made in sound(reducer(view), size):
            proposed += 1
            assert measure(smaller) < size
            assert Program.parse(made.text).text == made.text
            assert not unbound(smaller)
            assert len(smaller.params) == len(smaller.build_returns.items)
    assert proposed


@settings(max_examples=40, deadline=None)
@given(programs(), st.sampled_from(["torch.", "sum(", "+", "for ", "9"]))
def test_a_reduction_ends_deterministically_in_something_that_failed(program, word):
    def run():
        failed = [program.text]

        async def fails(candidate):
            if word in candidate.text.split("def fn")[1]:
                failed.append(candidate.text)
                return True
            return False

        return asyncio.run(reduce_program(program, fails, 100_000)), failed

    (first, failed), (second, _) = run(), run()
    assert first == second and first.complete
    assert first.program.text in failed
    if first.program is not program:
        assert measure(ProgramView.of(first.program)) < measure(ProgramView.of(program).normalise())
        again = asyncio.run(reduce_program(first.program, lambda _candidate: _no(), 100_000))
        assert again.program is first.program


async def _no():
    return False


@pytest.mark.parametrize("path", CASES[::6], ids=lambda path: path.stem)
def test_no_pass_breaks_on_programs_from_bug_reports(path):
    program = Program.parse(path.read_text(), path.name)
    view = ProgramView.of(program).normalise()
    for reducer in PASSES:
        list(reducer(view))  # a pass that raises would hide its later proposals
    assert statements(program) >= 1


LONG = """import torch

META = {"mode": "backward", "compile": {"dynamic": True, "fullgraph": True}, "random": True}


def build_inputs():
    torch.manual_seed(0)
    a = torch.randn(8, 17, dtype=torch.float64).t()[1:]
    b = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.MaxPool2d(2, 2))
    c = torch.randint(0, 9, (16, 8), dtype=torch.uint8)
    return a, b, c


def fn(a, b, c):
    d = torch.sin(a)
    if d.shape[0] > 2:
        d = d * 2
    e = b(d)
    f = e.argmax(dim=-1, keepdim=True)
    with torch.no_grad():
        g = c.sum()
    h = f + 7
    i = h.relu()
    return {"x": i, "y": g}
"""


@pytest.mark.parametrize("needed, left", [
    (["argmax(", "def fn(a"], "a = torch.ones(1)|f = a.argmax()|return f"),
    (["torch.uint8", "c.sum("], "c = torch.ones(1, dtype=torch.uint8)|g = c.sum()"),
    (["argmax(", "keepdim", "def fn(a"], "a = torch.ones(1)|f = a.argmax(keepdim=True)|return f"),
    (["argmax(", "torch.randn(", ".t()", "def fn(a"], "a = torch.randn(1, 1).t()|f = a.argmax()|return f"),
    (["no_grad", "c.sum()"], "with torch.no_grad():|g = c.sum()"),
])  # fmt: skip
def test_it_shrinks_to_exactly_this(needed, left):
    async def fails(program):
        return all(word in program.text for word in needed)

    made = asyncio.run(reduce_program(Program.parse(LONG), fails, 2000))
    lines = [line.strip() for line in made.program.text.splitlines()]
    for part in left.split("|"):
        assert any(part in line for line in lines), made.program.text
    assert made.program.meta == {"mode": "forward"} and made.complete
    assert statements(made.program) <= 2


def test_a_long_program_takes_few_executions():
    lines = "".join(f"    v{n} = torch.sin({'a' if not n else f'v{n - 1}'})\n" for n in range(40))
    lines = lines.replace("v17 = torch.sin(", "v17 = torch.cumsum(").replace("(v16)", "(v16, 0)")
    text = (
        'import torch\n\nMETA = {"mode": "forward"}\n\n\n'
        "def build_inputs():\n    a = torch.ones(3)\n    return (a,)\n\n\n"
        f"def fn(a):\n{lines}    return v39\n"
    )

    async def fails(program):
        return "cumsum(" in program.text

    made = asyncio.run(reduce_program(Program.parse(text), fails, 1000))
    assert statements(made.program) == 1 and made.executions <= 40


def test_enough_ends_it_with_the_best_so_far():
    asked = []

    async def fails(program):
        asked.append(program)
        return "argmax(" in program.text

    made = asyncio.run(reduce_program(Program.parse(LONG), fails, 1000, lambda: len(asked) >= 3))
    assert not made.complete and made.executions == 3 and "argmax(" in made.program.text
