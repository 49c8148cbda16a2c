"""Recorded calls as programs: text of calls, chains along the data flow, sizes kept or scaled."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.seeds.recorded import Call, Recording, expression, programs_of, read_recording, tensor_text, write_program


def leaf(number: int, *shape: int, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    stride, step = [], 1
    for size in reversed(shape):
        stride.insert(0, step)
        step *= size
    return {"t": "tensor", "leaf": number, "shape": list(shape), "stride": stride, "dtype": dtype, **more}


def _from(call: int, output: int, *shape: int) -> dict[str, Any]:
    record = leaf(0, *shape)
    del record["leaf"]
    return {**record, "from": [call, output]}


def literal(text: str) -> dict[str, Any]:
    return {"t": "literal", "text": text}


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "text"),
    [
        ("torch.nn.functional.relu", ["a"], {"inplace": "True"}, "torch.nn.functional.relu(a, inplace=True)"),
        ("torch.Tensor.sum", ["a"], {"dim": "1"}, "a.sum(dim=1)"),
        ("torch.Tensor.__add__", ["a", "2"], {}, "a + 2"),
        ("torch.Tensor.__rsub__", ["a", "2"], {}, "2 - a"),
        ("torch.Tensor.__imul__", ["a", "b"], {}, "a.mul_(b)"),
        ("torch.Tensor.__invert__", ["a"], {}, "~a"),
        ("torch.Tensor.__getitem__", ["a", "(slice(None, 3, None), ..., -1)"], {}, "a[:3, ..., -1]"),
        ("torch.Tensor.__setitem__", ["a", "slice(1, None, 2)", "0"], {}, "a[1::2] = 0"),
        ("torch.Tensor.mT", ["a"], {}, "a.mT"),
        ("torch._C._nn.gelu", ["a"], {}, "torch.nn.functional.gelu(a)"),
        ("torch._C._linalg.linalg_norm", ["a"], {}, "torch.linalg.norm(a)"),
        ("torch._C._secret", ["a"], {}, None),
    ],
)
def test_a_call_reads_as_a_person_writes_it(op: str, args: list[str], kwargs: dict[str, str], text: str) -> None:
    assert expression(op, args, kwargs) == text


CHAIN = [
    Call(0, "torch.nn.functional.linear", (leaf(0, 4, 8, grad=True), leaf(1, 6, 8, grad=True)), {}),
    Call(1, "torch.Tensor.chunk", (_from(0, -1, 4, 6), literal("2")), {"dim": literal("-1")}),
    Call(2, "torch.Tensor.mul", (_from(1, 0, 4, 3), _from(1, 1, 4, 3)), {}),
    Call(3, "torch.sin", (leaf(2, 5, low=0.0, high=0.5),), {}),
]


def test_a_chain_follows_the_data_and_every_call_is_in_some_program() -> None:
    programs = programs_of(Recording(list(CHAIN)), "train.py")
    chain = programs[0]
    assert chain.meta["title"] == "linear → chunk → mul" and chain.mode == "backward"
    assert (
        "e = d[0].mul(d[1])\n    return e" in chain.text.replace("d = c.chunk(2, dim=-1)\n    ", "")
        or "[0].mul(" in chain.text
    )
    assert {"linear", "chunk", "mul", "sin"} <= {word for p in programs for word in p.meta["title"].split(" → ")}
    assert "uniform_(0.0, 0.5)" in programs[-1].text  # the range of the values that were seen


def test_a_result_that_was_read_is_no_result() -> None:
    program = write_program(CHAIN[:2], "s.py", 1)
    assert program is not None and program.text.count("return") == 2
    assert program.text.rstrip().endswith("return d") or program.text.rstrip().endswith("return e")


def test_large_inputs_are_scaled_alike_everywhere() -> None:
    big = Call(
        0, "torch.nn.functional.embedding", (leaf(0, 4, 3, dtype="int64", low=0, high=49999), leaf(1, 50000, 64)), {}
    )
    program = write_program([big], "s.py", 1)
    assert program is not None
    assert "50000" not in program.text and "torch.randn((12500, 64))" in program.text
    assert "torch.randint(0, 12500, (4, 3), dtype=torch.int64)" in program.text


def test_small_inputs_keep_their_sizes() -> None:
    program = write_program([Call(0, "torch.cumsum", (leaf(0, 1000, 999), literal("0")), {})], "s.py", 1)
    assert program is not None and "(1000, 999)" in program.text


def test_calls_without_gradient_are_run_so() -> None:
    step = Call(0, "torch.Tensor.mul_", (leaf(0, 3, grad=True), literal("0.9")), {}, True)
    program = write_program([step], "s.py", 1)
    assert program is not None and program.meta["no_grad"] is True and "requires_grad" not in program.text


def test_alike_programs_are_few() -> None:
    calls = [Call(n, "torch.sin", (leaf(n, n + 1),), {}) for n in range(50)]
    assert len(programs_of(Recording(calls), "s.py")) == 4


def test_a_torn_record_keeps_its_whole_lines(tmp_path: Path) -> None:
    line = json.dumps({"n": 0, "op": "torch.sin", "args": [leaf(0, 2)], "kwargs": {}})
    (tmp_path / "r").write_text(line + "\n" + line[:30])
    recording = read_recording(tmp_path / "r")
    assert [call.op for call in recording.calls] == ["torch.sin"] and recording.end == {}


@given(st.permutations(range(3)), st.lists(st.integers(2, 5), min_size=3, max_size=3))
def test_permuted_memory_is_written_as_a_permutation(order: list[int], sizes: list[int]) -> None:
    """The strides of the text, worked out here by hand, are those of the record."""
    stride = [0, 0, 0]
    step = 1
    for axis in reversed(order):
        stride[axis] = step
        step *= sizes[axis]
    text = tensor_text({**leaf(0, *sizes), "stride": stride}, {})
    if order == [0, 1, 2]:
        assert "permute" not in text
        return
    base, _, back = text.partition(".permute(")
    assert base == f"torch.randn(({', '.join(str(sizes[axis]) for axis in order)}))"
    assert [order[int(axis)] for axis in back.rstrip(")").split(", ")] == [0, 1, 2]


def test_expanded_memory_is_written_as_an_expansion() -> None:
    record = {**leaf(0, 4, 3), "stride": [0, 1]}
    assert tensor_text(record, {}) == "torch.randn((1, 3)).expand(4, 3)"
