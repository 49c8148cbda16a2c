"""Templates, what they are told, and how they are held under a budget."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.features.detect import default_space
from fuzzer.knowledge.operators import Operators
from fuzzer.llm import retrieve
from fuzzer.llm.prompts import FOLDER, FORMS, WRITING, Context, render, tokens, version, writing_prompt

OPERATORS = Operators.load_extract()
FEATURES = ("layout=expanded", "dtype=bfloat16", "mode=backward")
KEYS = ("sum", "argmax", "cat", "nn.functional.conv2d", "cumsum", "softmax.with_dtype", "add", "mul")


def context(form: str = "free") -> Context:
    rng, space = random.Random(3), default_space()
    return Context(
        form=form,
        features=retrieve.wishes(FEATURES, space),
        entries=retrieve.entries(FEATURES, ("matmul",), space, rng),
        operators=retrieve.examples(OPERATORS, KEYS),
        seed="import torch  # the seed",
        pattern=retrieve.pattern(FEATURES, (), rng),
        neighbour=retrieve.neighbour(OPERATORS, ("sum",), {"mean"}, rng),
        unreached=({"name": "aten.cumsum", "source": "def lowering(): ...\n" * 40},),
    )


def test_every_template_has_a_version() -> None:
    families = [path.stem for path in FOLDER.glob("*.j2")]
    assert {"fresh", "mutate", "transfer", "repair", "plateau", "advice", "classify_issue"} <= set(families)
    assert {"induce_pattern", "hypothesis", "reproduce"} <= set(families)
    assert all(version(family) >= 1 for family in families)


def test_a_template_without_a_version_or_with_a_stranger_is_named(tmp_path: Path) -> None:
    (tmp_path / "fresh.j2").write_text("{{ stranger }}")
    with pytest.raises(UserError, match="must begin with"):
        version("fresh", tmp_path)
    with pytest.raises(UserError, match="stranger"):
        render("fresh", tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", WRITING)
def test_prompts_say_what_is_asked_in_words(family: str, form: str) -> None:
    system, user = writing_prompt(family, context(form), 10_000)
    assert "expanded tensors (stride 0)" in user and "bfloat16 tensors" in user
    assert "torch.argmax(x0, dim=-1, keepdim=False) with x0 float32" in user
    assert user.count("for example: ") == 3
    assert ("build_inputs()" in system) == (form == "free") and ("JSON object" in user) == (form == "steps")
    assert ("the seed" in user) == (family == "mutate")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("family", WRITING)
def test_prompts_shrink_to_their_budget_and_keep_what_is_asked(family: str, form: str) -> None:
    whole = context(form)
    lengths = []
    for budget in (10_000, 1_000, 700, 1):
        system, user = writing_prompt(family, whole, budget)
        lengths.append(tokens(system) + tokens(user))
        assert budget < 700 or lengths[-1] <= budget or form == "steps"
        assert "expanded tensors (stride 0)" in user
        assert form == "free" or all(example.key in user for example in whole.operators)
    assert lengths == sorted(lengths, reverse=True) and lengths[-1] < lengths[0]


def test_the_language_is_of_worded_output_only() -> None:
    plain = render("advice", summary="s", most=3, language="en")
    assert "in Chinese" in render("advice", summary="s", most=3, language="zh") and "Chinese" not in plain
    assert writing_prompt("fresh", replace(context(), language="zh"), 9999) == writing_prompt("fresh", context(), 9999)


def test_untried_neighbours_come_first() -> None:
    rng = random.Random(0)
    near = [key.key for key in OPERATORS.neighbours(OPERATORS.by_key["sum"]) if not key.private]
    found = {retrieve.neighbour(OPERATORS, ("sum",), near[:-2], rng) for _ in range(20)}
    assert found == set(near[-2:])


def test_lowerings_never_reached() -> None:
    never = retrieve.unreached(OPERATORS, [], random.Random(1), most=5)
    assert len(never) == 5 and all(OPERATORS.by_key[key].lowering == "lowered" for key in never)
    executed = [name for operator in OPERATORS for name in operator.aten]
    assert retrieve.unreached(OPERATORS, executed, random.Random(1)) == []


def test_sources_of_lowerings() -> None:
    text = "@register_lowering([aten.cumsum, prims.cumsum])\ndef cumsum(x):\n    return x\n\n\ndef other():\n    pass\n"
    assert retrieve.lowering_sources(text, ["aten.cumsum", "aten.sum"]) == {
        "aten.cumsum": "def cumsum(x):\n    return x"
    }
    assert retrieve.lowering_sources("not python (", ["aten.cumsum"]) == {}
