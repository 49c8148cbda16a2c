from __future__ import annotations

import ast
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation_base import PROGRAMS

from fuzzer.engines.mutate import MUTATIONS, MutationContext, mutate
from fuzzer.engines.mutate.base import MAX_LINES, undefined
from fuzzer.engines.mutate.guess import guess_inputs, guess_names
from fuzzer.engines.mutate.order import independent
from fuzzer.engines.view import ProgramView
from fuzzer.exits import UserError
from fuzzer.program import Program


@dataclass(frozen=True)
class FakeForm:
    kind: str
    text: str


@dataclass
class FakeOperator:
    key: str
    family: str
    forms: list[FakeForm]


@dataclass
class FakeOperators:
    by_key: dict[str, FakeOperator] = field(default_factory=dict)

    def neighbours(self, operator: FakeOperator) -> list[FakeOperator]:
        return [other for other in self.by_key.values() if other is not operator]

    __hash__ = object.__hash__


def operator(name: str) -> FakeOperator:
    return FakeOperator(name, "f", [FakeForm("function", f"torch.{name}"), FakeForm("inplace", f"{name}_")])


OPERATORS = FakeOperators({name: operator(name) for name in ("sin", "erfinv")})


def context(seed: int, donor: str = "norm", **more) -> MutationContext:
    return MutationContext(random.Random(seed), donor=ProgramView.of(PROGRAMS[donor]), **more)


def first(name: str, base: str, **more) -> list[Program]:
    """The children that forty seeds give."""
    children = (mutate(PROGRAMS[base], name, context(seed, **more)) for seed in range(40))
    return [child for child in children if child is not None]


programs = st.sampled_from(sorted(PROGRAMS))


@pytest.mark.parametrize("name", sorted(MUTATIONS))
@settings(max_examples=25, deadline=None)
@given(base=programs, donor=programs, seed=st.integers(0, 10**6), again=st.sampled_from(sorted(MUTATIONS)))
def test_a_child_is_a_sound_program(name: str, base: str, donor: str, seed: int, again: str) -> None:
    program = PROGRAMS[base]
    child = mutate(program, name, context(seed, donor, operators=OPERATORS))
    same = mutate(program, name, context(seed, donor, operators=OPERATORS))
    assert (child and child.text) == (same and same.text), "a seed gives one child"
    if child is None:
        return
    assert Program.parse(child.text) == child
    assert ProgramView.of(child).normalise() != ProgramView.of(program).normalise()
    assert child.meta["engine"] == f"mutate:{name}" and child.meta["parents"][0] == program.id
    assert len(child.meta["parents"]) == (2 if name == "splice" else 1)
    assert child.text.count("\n") <= MAX_LINES
    view = ProgramView.of(child)
    assert view.to_text() == child.text and not undefined(view)
    assert len(view.inputs) == len(view.params), "fn takes what build_inputs gives"
    grandchild = mutate(child, again, context(seed + 1, donor))
    assert grandchild is None or grandchild.meta["parents"][0] == child.id


def test_there_are_enough_mutations_and_each_is_described() -> None:
    assert len(MUTATIONS) >= 16
    assert all(len(m.description.split()) >= 4 for m in MUTATIONS.values())
    assert all("=" in aim and "*" not in aim for m in MUTATIONS.values() for aim in m.aims)


def test_an_unknown_mutation_is_named() -> None:
    with pytest.raises(UserError, match="no mutation 'x'"):
        mutate(PROGRAMS["alias"], "x", context(0))


def test_what_was_said_of_the_parent_is_not_said_of_the_child() -> None:
    text = PROGRAMS["alias"].text.replace('"mode": "forward"', '"mode": "forward", "issue": 7, "expect_zero": True')
    child = mutate(Program.parse(text), "insert_dead", context(0, features=("dtype=int8",)))
    assert child is not None and set(child.meta) == {"mode", "parents", "engine", "features"}


def test_a_catalogue_decides_the_neighbours_in_the_same_form() -> None:
    texts = {c.text for c in first("replace_operator", "alias", operators=OPERATORS)}
    assert any("torch.erfinv(a)" in text for text in texts)
    assert not any("torch.cos" in text for text in texts)
    built_in = "".join(child.text for child in first("replace_operator", "alias"))
    assert any(f"c = torch.{name}(a)" in built_in for name in ("cos", "tanh", "erf", "sinc")), "without a catalogue"


def test_wanted_features_steer_the_choice() -> None:
    for child in first("input_dtype", "reduce", features=("dtype=bfloat16",)):
        assert "torch.randn(8, 16, dtype=torch.bfloat16)" in child.text
    assert all(".expand(8, 16)" in c.text for c in first("input_layout", "reduce", features=("layout=expanded",)))
    for child in first("inductor_config", "reduce", features=("config=threads2",)):
        assert child.meta["inductor_config"] == {"cpp.threads": 2}


def test_equal_sizes_follow_together() -> None:
    texts = [child.text for child in first("input_shape", "matmul")]
    both = [t for t in texts if "torch.randn(8, 5)" not in t and "torch.randn(4, 8)" not in t]
    assert both and all(guess_names(ProgramView.of(Program.parse(t)).normalise())["d"].shape is not None for t in both)


def test_conversions_to_integers_are_defined() -> None:
    for child in first("insert_cast", "reduce"):
        if "torch.int" in child.text or "torch.uint" in child.text:
            assert "nan_to_num" in child.text and ".clamp(" in child.text
    for child in first("input_values", "bits"):
        assert "inf" not in child.text and "nan" not in child.text


def test_backward_asks_for_gradients_of_every_float_and_takes_them_back() -> None:
    child = first("toggle_backward", "matmul")[0]
    assert child.mode == "backward" and child.text.count(".requires_grad_()") == 3
    back = mutate(child, "toggle_backward", context(0))
    assert back is not None and back.mode == "forward" and "requires_grad" not in back.text
    assert first("toggle_backward", "write") == [], "a leaf must not be written"


def test_dynamic_has_a_second_call_of_another_size() -> None:
    for child in first("toggle_dynamic", "matmul"):
        view = ProgramView.of(child)
        assert view.mode == "dynamic" and view.build2 is not None
        shapes = [g.shape for g in guess_inputs(view).values()]
        second = ProgramView.of(
            Program.parse(child.text.replace("build_inputs()", "unused()").replace("inputs2", "inputs"))
        )
        assert [g.shape for g in guess_inputs(second).values()] != shapes


def test_splice_renames_the_donor_and_connects_it() -> None:
    for child in first("splice", "reduce"):
        view = ProgramView.of(child)
        own = {name for statement in view.body[:4] for name in statement.targets} | {view.params[0]}
        donated = [s for s in view.body if "rsqrt" in s.text]
        assert donated and not own & set(donated[0].targets)
        assert any(s.reads & own for s in view.body[4:])
        assert child.meta["parents"][1] == PROGRAMS["norm"].id


def test_splice_without_donor_does_not_apply() -> None:
    assert mutate(PROGRAMS["alias"], "splice", MutationContext(random.Random(0))) is None


@pytest.mark.parametrize(
    ("one", "two", "free"),
    [
        ("b = x + 1", "c = x + 2", True),
        ("b = x + 1", "c = b + 2", False),
        ("b = x + 1", "x = y + 2", False),
        ("b = x + 1", "x.add_(1)", False),
        ("b = y + 1", "x.add_(1)", True),
        ("b = torch.rand(2)", "c = torch.rand(2)", False),
        ("print(x)", "print(y)", False),
    ],
)
def test_independence(one: str, two: str, free: bool) -> None:
    text = f"import torch\ndef build_inputs():\n    return (1, 2)\ndef fn(x, y):\n    {one}\n    {two}\n    return x\n"
    view = ProgramView.of(Program.parse(text))
    assert independent(view.body[0], view.body[1], view.components()) is free


def test_guesses() -> None:
    names = guess_names(ProgramView.of(PROGRAMS["norm"]).normalise())
    assert names["x"].shape == (3, 5, 7) and names["x"].floating
    names = guess_names(ProgramView.of(PROGRAMS["matmul"]).normalise())
    assert names["f"].shape == (4, 5) and names["f"].dtype == "float32"
    names = guess_names(ProgramView.of(PROGRAMS["bits"]).normalise())
    assert names["d"].dtype == "uint8" and names["e"].dtype == "int32"
    names = guess_names(ProgramView.of(PROGRAMS["loop"]).normalise())
    assert not names["c"].tensor, "max with a dim gives a pair"


def test_options_are_taken_back_too() -> None:
    meta = '"mode": "forward", "inductor_config": {"epilogue_fusion": False}'
    program = Program.parse(PROGRAMS["alias"].text.replace('"mode": "forward"', meta))
    children = [mutate(program, "inductor_config", context(seed)) for seed in range(40)]
    assert any(child is not None and "inductor_config" not in child.meta for child in children)


def test_configuration_values_are_literals() -> None:
    for child in first("inductor_config", "alias"):
        assert ast.literal_eval(repr(child.meta["inductor_config"])) == child.meta["inductor_config"]
