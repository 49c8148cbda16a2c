"""Exploding compile times: the rule on points, and the scaling of a program's parameters."""

import pytest

from fuzzer.growth import explodes, scaled
from fuzzer.program import Program

PROGRAM = """import torch


def build_inputs():
    return (torch.ones(3505),)


def fn(x):
    return torch.diff(x, n=30, dim=0)
"""


@pytest.mark.parametrize("base", [1.4, 2.0])
def test_exponential_cost_explodes(base: float) -> None:
    assert explodes([(share, 0.6 + 0.01 * base ** (30 * share)) for share in (0.2, 0.35, 0.5, 0.65)])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_polynomial_cost_and_a_loaded_machine_do_not(power: float) -> None:
    assert not explodes([(share, 0.6 + 5.0 * share**power) for share in (0.2, 0.35, 0.5, 0.65, 0.8)])


def test_too_few_points_prove_nothing() -> None:
    assert not explodes([(0.2, 0.5), (0.35, 30.0)])


def test_only_the_parameters_of_fn_are_scaled() -> None:
    smaller = scaled(Program.parse(PROGRAM), 0.5)
    assert smaller is not None
    assert "n=15, dim=0" in smaller.text and "3505" in smaller.text


def test_a_program_without_parameters_cannot_be_scaled() -> None:
    assert scaled(Program.parse(PROGRAM.replace("n=30", "n=3")), 0.5) is None
