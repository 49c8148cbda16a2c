"""Layouts, shapes, broadcasting and dataflow from plain facts; numpy is the reference for layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.features.detect_run import broadcast_words, cast_words, layouts, mix_words, read_run, shape_words
from fuzzer.features.space import FeatureSpace
from fuzzer.observation import Observation

FAMILIES = {
    "add": "pointwise_binary", "mul": "pointwise_binary", "relu": "activation", "pow": "pointwise_binary",
    "eq": "comparison", "sum": "reduction", "argmax": "index_reduction", "t": "view", "select": "view",
    "topk": "sort", "add_": "in_place", "zero_": "in_place", "clone": "reshape_copy", "_to_copy": "cast",
    "convolution": "convolution",
}  # fmt: skip
GROUPS = FeatureSpace.load().group_of


def family_of(name: str) -> str:
    return FAMILIES.get(name.split(".")[1], "")


def tensor(*shape: int, dtype: str = "float32", stride: list[int] | None = None, offset: int = 0) -> list[Any]:
    if stride is None:
        stride = [int(np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape))]
    return [dtype, list(shape), stride, offset]


def op(name: str, inputs: list[int], tensors: list[Any] | None = None, outputs: list[Any] | None = None) -> dict:
    tensors = tensors if tensors is not None else [tensor(2, 3) for _ in inputs]
    return {
        "op": f"aten.{name}.default",
        "inputs": inputs,
        "tensors": tensors,
        "outputs": outputs if outputs is not None else tensors[:1],
    }


def run(*ops: dict, **raw: Any) -> dict[str, set[str]]:
    return read_run(Observation.from_map({"ops": list(ops), **raw}), family_of, GROUPS)


@st.composite
def views(draw) -> np.ndarray:
    """A float32 array under a random chain of slicing, transposing and expanding."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    array = np.zeros(shape, dtype=np.float32)
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["slice", "transpose", "expand"]))
        if kind == "slice":
            array = array[tuple(slice(draw(st.integers(0, n - 1)), n, draw(st.integers(1, 2))) for n in array.shape)]
        elif kind == "transpose":
            array = array.transpose(draw(st.permutations(range(array.ndim))))
        else:
            array = np.broadcast_to(array, [draw(st.integers(2, 3)) if n == 1 else n for n in array.shape])
    return array


def _spans(array: np.ndarray) -> tuple[list[int], list[int]]:
    return list(array.shape), [step // array.itemsize for step in array.strides]


@given(views())
def test_layouts_agree_with_numpy(array: np.ndarray) -> None:
    shape, stride = _spans(array)
    words = layouts(shape, stride, 0)
    addresses = np.zeros(shape, dtype=np.int64)
    for dim, (size, step) in enumerate(zip(shape, stride)):
        addresses += (np.arange(size) * step).reshape([-1 if i == dim else 1 for i in range(len(shape))])
    assert ("contiguous" in words) == array.flags.c_contiguous
    assert ("expanded" in words) == any(step == 0 and size > 1 for size, step in zip(shape, stride))
    if "expanded" not in words:  # slices, transposes and no expansion: every element has an address of its own
        assert len(np.unique(addresses)) == array.size
        assert "overlapping" not in words
        span = int(addresses.max()) + 1
        assert (span > array.size) == bool(words & {"gapped", "strided_slice"})
    assert words


@pytest.mark.parametrize(
    "shape, stride, offset, expected",
    [
        ([3, 4], [4, 1], 0, {"contiguous"}),
        ([3, 4], [4, 1], 5, {"contiguous", "offset"}),
        ([3, 4], [1, 3], 0, {"transposed"}),
        ([3, 4], [0, 1], 0, {"expanded"}),
        ([3, 4], [8, 2], 0, {"strided_slice"}),
        ([3, 4], [6, 1], 1, {"gapped", "offset"}),
        ([2, 3, 4, 5], [60, 1, 15, 3], 0, {"channels_last"}),
        ([2, 3, 4, 5, 6], [360, 1, 90, 18, 3], 0, {"channels_last"}),
        ([4, 3], [1, 1], 0, {"overlapping"}),  # unfold with step 1
        ([1, 4], [77, 1], 0, {"contiguous"}),  # the stride of a size-1 dimension means nothing
        ([], [], 0, {"contiguous"}),
        ([0, 4], [1, 9], 3, set()),
        ([3, 4], [], 0, set()),  # sparse: no strides
    ],
)
def test_layouts(shape: list[int], stride: list[int], offset: int, expected: set[str]) -> None:
    assert layouts(shape, stride, offset) == expected


@pytest.mark.parametrize(
    "shape, expected",
    [
        ([], {"scalar"}),
        ([2, 0], {"empty"}),
        ([1, 8], {"ones", "vector_multiple"}),
        ([2, 15], {"odd", "vector_minus_one"}),
        ([2, 33], {"odd", "vector_plus_one"}),
        ([2, 2, 2, 2, 2], {"high_rank"}),
        ([4, 1030], {"large", "long_row"}),
        ([512, 4], {"tall"}),
        ([2, 6], set()),
    ],
)
def test_shape_words(shape: list[int], expected: set[str]) -> None:
    assert shape_words(shape) == expected


shapes = st.lists(st.integers(1, 3), max_size=4)


@given(shapes, shapes)
def test_broadcasting_agrees_with_numpy(left: list[int], right: list[int]) -> None:
    words = broadcast_words(left, right)
    assert words == broadcast_words(right, left)
    try:
        result = list(np.broadcast_shapes(tuple(left), tuple(right)))
    except ValueError:
        assert words == set()
        return
    assert bool(words) == (left != right)
    if words and "scalar_tensor" not in words:
        assert ("mutual" in words) == (result not in (left, right))


def test_casts_and_mixes() -> None:
    assert cast_words("float32", "bfloat16") == {"float_down"}
    assert cast_words("float16", "float64") == {"float_up"}
    assert cast_words("float32", "uint8") == {"float_to_int", "to_unsigned"}
    assert cast_words("int64", "int8") == {"int_down"}
    assert cast_words("int64", "float32") == {"int_to_float"}
    assert cast_words("int64", "bool") == {"to_bool"}
    assert cast_words("int8", "int8") == set()
    assert mix_words({"float32", "int8", "bool"}) == {"int_float", "bool_number"}
    assert mix_words({"float16", "float32"}) == {"half_float"}
    assert mix_words({"float32"}) == set()


def test_topology() -> None:
    chain = run(op("relu", [-1]), op("relu", [0]), op("relu", [1]), op("relu", [2]))["topology"]
    assert chain == {"chain"}
    assert "diamond" in run(op("relu", [-1]), op("mul", [0]), op("pow", [0]), op("add", [1, 2]))["topology"]
    residual = run(op("relu", [-1]), op("add", [0, -1]))["topology"]
    assert residual == {"residual", "input_reuse"}
    assert "fan_out" in run(op("relu", [-1]), op("mul", [0]), op("pow", [0]), op("add", [0, 1]))["topology"]
    two = op("topk", [-1], outputs=[tensor(2), tensor(2, dtype="int64")])
    assert run(two)["topology"] == {"multi_output"}
    assert "alias" in run(aliases={"eager": [["in[0]", "out"]]})["topology"]
    assert "multi_result" in run(leaves=[{"path": "out[0]"}, {"path": "out[1]"}])["topology"]
    written = run(op("select", [-1]), op("add_", [0]))
    assert {"in_place", "view_mutation"} <= written["topology"]
    assert "view>inplace" in written["adjacency"]


def test_adjacency_follows_dataflow_not_order() -> None:
    words = run(op("t", [-1]), op("relu", [-1]), op("argmax", [0]))
    assert words["adjacency"] == {"view>index_reduction"}
    assert words["family"] == {"view", "activation", "index_reduction"}


def test_mechanisms() -> None:
    def found(*ops: dict) -> set[str]:
        return run(*ops)["mechanism"]

    assert found(op("argmax", [-1], [tensor(3, 4, stride=[1, 3])])) == {"strided_index_reduction"}
    assert found(op("argmax", [-1], [tensor(3, 4)])) == set()
    assert found(op("sum", [-1], [tensor()])) == {"scalar_reduction"}
    assert found(op("sum", [-1], [tensor(0, 3)])) == {"empty_reduction"}
    assert found(op("pow", [-1]), op("pow", [0])) == {"pow_chain"}
    assert found(op("_to_copy", [-1]), op("eq", [0, -2])) == {"cast_before_equality"}
    assert found(op("clone", [-1]), op("zero_", [0])) == {"clone_zero_view"}
    weight = tensor(4, 3, 2, 2, stride=[1, 4, 24, 12])
    assert found(op("convolution", [-1, -2], [tensor(1, 3, 8, 8), weight])) == {"permuted_conv_weight"}
    assert found(op("add_", [-1, -2], [tensor(3, 4, stride=[0, 1]), tensor(4)])) == {"expanded_mutation"}


def test_casts_dtypes_values() -> None:
    down = op("_to_copy", [-1], [tensor(2)], [tensor(2, dtype="float16")])
    up = op("_to_copy", [0], [tensor(2, dtype="float16")], [tensor(2)])
    words = run(down, up, values=[["nan", "no such word"], ["ties"]])
    assert words["cast"] == {"float_down", "float_up", "round_trip"}
    assert words["dtype"] == {"float16", "float32"}
    assert words["value"] == {"nan", "ties"}
    assert run(op("add", [-1, -2], [tensor(3, 1), tensor(1, 4)]))["broadcast"] == {"ones_dim", "mutual"}
    assert run(op("add", [-1, -2], [tensor(3), tensor(3, dtype="int8")]))["dtype_mix"] == {"int_float"}
