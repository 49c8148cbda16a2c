"""Which suspects probably are a finding again."""

import pytest

from fuzzer.familiar import Familiar
from fuzzer.finding import Finding
from fuzzer.signature import Signature
from fuzzer.verdict import Kind


def found(*operators, kind=Kind.WRONG_VALUE, reduced="def fn(a):\n    return a\n"):
    facts = {"operators": [f"aten.{name}.default" for name in operators]}
    return Finding(Signature("run|x", ""), kind, "text", stage="run", facts=facts, reduced=reduced)


@pytest.mark.parametrize("major, known", [
    ("run|wrong_value|add,argmin,mul,t", True),
    ("run|wrong_value|argmin", True),
    ("run|wrong_value|add,mul", False),
    ("run|metadata|add,argmin,mul", False),
    ("second|wrong_value|argmin", False),
    ("compile|compile_error|ValueError|torch/a.py:lower|argmin", False),
    ("debatable|sign of zero", False),
    ("", False),
])  # fmt: skip
def test_a_suspect_with_all_that_a_finding_needs_is_familiar(major, known):
    assert Familiar([found("argmin", "t")]).knows(major) is known


def test_a_program_that_was_not_reduced_tells_nothing_and_several_findings_count_each():
    familiar = Familiar([found("relu", reduced="")])
    assert not familiar.knows("run|wrong_value|relu")
    familiar.add(found("relu", "sum"))
    familiar.add(found("amax", kind=Kind.METADATA))
    assert familiar.knows("run|wrong_value|relu,sum") and not familiar.knows("run|wrong_value|relu")
    assert familiar.knows("run|metadata|amax,relu")
