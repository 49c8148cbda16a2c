import asyncio
from types import SimpleNamespace

import pytest

from fuzzer.essential import Ablation, StillFails, ablations, essential_features
from fuzzer.observation import Observation
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
    "dtype=float32", "layout=contiguous", "mode=forward",
]  # fmt: skip


def without(feature: str, text: str = TEXT) -> list[str]:
    """Texts of the program without a feature."""
    return [program.text for item in ablations(Program.parse(text), [feature]) for program in item.programs]


@pytest.mark.parametrize("feature, gone, come", [
    ("dtype=float16", ["a.to(torch.float16)"], ["a.dtype in (torch.float16,)", "a.to(torch.float32)"]),
    ("layout=transposed", [], ["clone(memory_format=torch.contiguous_format)"]),
    ("shape=ones", ["torch.ones(8, 1)"], ["torch.ones(8, 2)"]),
    ("mode=backward", ["backward"], ["forward"]),
    ("config=threads2", ["cpp.threads"], []),
    ("context=no_grad", ["no_grad"], []),
    ("control=if_static", ["if c"], ["c = c * 2"]),
    ("mutation=inplace_method", ["relu_", "+="], ["c = c.relu()", "c = c + 1"]),
    ("values=ties", ["ones"], ["torch.randn(8, 1)"]),
])  # fmt: skip
def test_a_feature_is_switched_off_and_nothing_else(feature, gone, come):
    first = without(feature)[0]
    body = first.split("def fn")[1]
    assert not any(word in (body if "(" in word and feature.startswith("dtype") else first) for word in gone)
    assert all(word in first for word in come)


def test_what_cannot_be_switched_off_is_left_out_and_what_tells_most_comes_first():
    names = [item.feature for item in ablations(Program.parse(TEXT), FEATURES)]
    assert not {"dtype=float32", "layout=contiguous", "mode=forward"} & set(names)
    assert len(names) == len(FEATURES) - 3
    assert names[0] == "config=threads2" and names.index("layout=transposed") < names.index("shape=ones")
    assert names[-1] == "values=ties"


def test_needed_free_and_untold():
    async def ask(program):
        if "relu_" not in program.text:
            return None
        return "a.dtype in" not in program.text and "backward" in program.text

    found = asyncio.run(essential_features(Program.parse(TEXT), FEATURES, ask))
    assert found.needed == ("dtype=float16", "mode=backward")
    assert "layout=transposed" in found.free and "control=if_static" in found.free
    # out of place it cannot be told, apart it can
    assert "mutation=augmented" in found.free and found.executions == 13
    assert asyncio.run(essential_features(Program.parse(TEXT), FEATURES, ask, lambda: True)) is None


def test_a_feature_that_each_way_keeps_in_part_needs_all_of_them():
    text = TEXT.replace("return c", "return c, a").replace("backward", "forward")
    (item,) = ablations(Program.parse(text), ["topology=multi_result"])
    assert [program.text.rstrip().rpartition("return ")[2] for program in item.programs] == ["c", "a"]

    async def only_with(name):
        async def ask(program):
            return program.text.rstrip().endswith(f"return {name}")

        return await item.answer(ask)

    assert asyncio.run(only_with("a")) == (True, 2)  # the fault is in the second result alone
    assert asyncio.run(only_with("nothing")) == (False, 2)
    single = Ablation("dtype=float16", item.programs)
    assert asyncio.run(single.answer(lambda program: _later(False))) == (False, 1)


async def _later(answer):
    return answer


def test_a_program_that_is_no_plain_function_has_no_switches():
    text = TEXT.split("def fn")[0] + "fn = torch.sin\n"
    assert ablations(Program.parse(text), FEATURES) == []


def refused(message: str) -> Observation:
    fault = {"type": "RuntimeError", "message": message}
    return Observation.from_map({"stages": [{"name": "eager", "fault": fault}]})


@pytest.mark.parametrize("message, answer", [("index 9 is out of range", False), ("shapes differ", None)])
def test_a_check_that_both_sides_make_again_was_lost_with_the_feature(message, answer):
    async def execute(program, variant, coverage):
        return refused(message)

    same = SimpleNamespace(ask=lambda program: _later(None), worker=SimpleNamespace(execute=execute))
    asked = StillFails(same, refused("index 7 is out of range"))
    assert asyncio.run(asked(Program.parse(TEXT))) is answer
