import asyncio

import pytest

from fuzzer.essential import essential_features, switches
from fuzzer.program import Program

TEXT = """import torch

META = {"mode": "backward", "inductor_config": {"cpp.threads": 2}, "no_grad": True}


def build_inputs():
    torch.manual_seed(0)
    a = torch.randn(1, 8, dtype=torch.float16).t()
    b = torch.ones(8, 1)
    return a, b


def fn(a, b):
    c = a.to(torch.float16) + b
    c.relu_()
    if c.shape[0] > 2:
        c = c * 2
    c += 1
    return c
"""
FEATURES = [
    "dtype=float16", "layout=transposed", "shape=ones", "mode=backward", "config=threads2", "context=no_grad",
    "control=if_static", "mutation=inplace_method", "mutation=augmented", "values=ties", "op_family=pointwise",
    "dtype=float32", "layout=contiguous",
]  # fmt: skip


@pytest.mark.parametrize("feature, gone, come", [
    ("dtype=float16", ["float16"], ["torch.float32"]),
    ("layout=transposed", [".t()"], ["torch.randn(8, 1, dtype=torch.float16)"]),
    ("shape=ones", ["torch.ones(8, 1)"], ["torch.ones(8, 2)"]),
    ("mode=backward", ["backward"], ["forward"]),
    ("config=threads2", ["cpp.threads", "inductor_config"], []),
    ("context=no_grad", ["no_grad"], []),
    ("control=if_static", ["if c"], ["c = c * 2"]),
    ("mutation=inplace_method", ["relu_", "+="], ["c = c.relu()", "c = c + 1"]),
    ("values=ties", ["ones"], ["torch.randn(8, 1)"]),
])  # fmt: skip
def test_a_feature_is_switched_off_and_nothing_else(feature, gone, come):
    ((name, changed),) = switches(Program.parse(TEXT), [feature])
    assert name == feature
    assert not any(word in changed.text for word in gone)
    assert all(word in changed.text for word in come)


def test_what_cannot_be_switched_off_is_left_out():
    names = [name for name, _changed in switches(Program.parse(TEXT), FEATURES)]
    assert "op_family=pointwise" not in names and "dtype=float32" not in names and "layout=contiguous" not in names
    assert len(names) == 10


def test_needed_free_and_untold():
    async def ask(program):
        if "relu_" not in program.text:
            return None
        return "float16" in program.text and "backward" in program.text

    found = asyncio.run(essential_features(Program.parse(TEXT), FEATURES, ask))
    assert found.needed == ("dtype=float16", "mode=backward")
    assert found.untold == ("mutation=augmented", "mutation=inplace_method")
    assert "layout=transposed" in found.free and "control=if_static" in found.free
    assert found.executions == 10
    assert asyncio.run(essential_features(Program.parse(TEXT), FEATURES, ask, lambda: True)) is None


def test_a_program_that_is_no_plain_function_has_no_switches():
    text = TEXT.split("def fn")[0] + "fn = torch.sin\n"
    assert switches(Program.parse(text), FEATURES) == []
