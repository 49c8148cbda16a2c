"""Answers against schemas, whatever a server let through."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import value_of

from fuzzer.llm import advice, steps
from fuzzer.llm.schema import NoJson, choice, fault, listing, read_json, record

POINT = record(name=choice(("a", "b")), size=listing({"type": "integer"}, 2, 1))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"name": "a", "size": [1]}, ""),
        ({"name": "c", "size": [1]}, "not one of those"),
        ({"name": "a"}, "'size' is missing"),
        ({"name": "a", "size": []}, "0 items"),
        ({"name": "a", "size": [1, 2, 3]}, "3 items"),
        ({"name": "a", "size": [True]}, "type integer"),
        ({"name": "a", "size": [1.5]}, "type integer"),
        ({"name": "a", "size": [1], "more": 1}, "unknown key"),
        ([], "type object"),
    ],
)
def test_faults_are_named(value: object, why: str) -> None:
    found = fault(value, POINT)
    assert why in found and bool(found) == bool(why)


@pytest.mark.parametrize("text", ["{}", "Sure:\n```json\n{}\n```", "I choose {} because.", " \n{}\n "])
def test_json_is_found_in_prose(text: str) -> None:
    value = {"name": "a", "size": [1, 2]}
    assert read_json(text.replace("{}", json.dumps(value)), POINT) == value


@pytest.mark.parametrize("text", ["", "no", "{", '{"name": "a", "size": [1', "[" * 100_000])
def test_no_json(text: str) -> None:
    with pytest.raises(NoJson):
        read_json(text, POINT)


@given(st.integers(0, 10**6))
def test_whatever_fits_the_schema_is_a_step_list(number: int) -> None:
    form = steps.schema(("sin", "sum", "cat"), ("dim", "keepdim"))
    value = value_of(form, random.Random(number))
    assert fault(value, form) == ""
    parsed = steps.StepList.parse(json.dumps(value), form)
    assert parsed.inputs and len(parsed.steps) == len(value["steps"])
    for fresh in parsed.inputs.values():
        size = 1
        for extent in fresh.shape:
            size *= extent
        assert 0 <= size <= 1 << 14


def test_advice_is_bounded() -> None:
    form = advice.schema(("mutate", "sum"))
    rows = [{"arm": "mutate", "factor": 99, "why": "a\nb"}, {"arm": "sum", "factor": -3, "why": ""}]
    found = advice.read(json.dumps({"advice": rows}), form)
    assert found.factors == {"mutate": 4.0, "sum": 0.25} and found.reasons["mutate"] == "a b"
    with pytest.raises(NoJson):
        advice.read(json.dumps({"advice": [{"arm": "stranger", "factor": 1, "why": ""}]}), form)
