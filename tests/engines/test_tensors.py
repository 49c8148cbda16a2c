"""Texts of fresh tensors: they parse, and what they make has the shape, dtype, layout and values that were wanted."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.engines.tensors import FLOATS, LAYOUTS, SIGNED, SIZES, VALUES, Fresh, anchor, reshaped
from fuzzer.features.detect_run import layouts, shape_words

DTYPES = (*FLOATS, *SIGNED, "uint8", "uint16", "bool", "complex64", "float8_e5m2")
shapes = st.lists(st.integers(0, 6), max_size=5).map(tuple)


def fresh(seed: int) -> Fresh:
    rng = random.Random(seed)
    shape = tuple(rng.choice((1, 2, 3, 5, 8)) for _ in range(rng.randint(0, 5)))
    values = rng.choice(("", "", *VALUES))
    layout = rng.choice(LAYOUTS)
    return Fresh(shape, rng.choice(DTYPES), layout=layout, values=values, grad=rng.random() < 0.3)


@given(
    shapes, st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.sampled_from(("", *VALUES)), st.booleans(),
    st.integers(0, 99), st.tuples(st.integers(-9, 9), st.integers(0, 9)),
)  # fmt: skip
def test_a_text_is_one_expression(shape, dtype, layout, values, grad, seed, bounds) -> None:
    low, high = bounds[0], bounds[0] + bounds[1]
    if layout == "transposed" and len(set(shape)) < 1:
        layout = "contiguous"
    tensor = Fresh(shape, dtype, low, high, layout=layout, values=values, grad=grad)
    text = tensor.text(random.Random(seed))
    ast.parse(text, mode="eval")
    assert text == tensor.text(random.Random(seed)) and "'" not in text


@given(st.lists(st.lists(st.integers(1, 5), max_size=4).map(tuple), min_size=1, max_size=3), st.integers(0, 99))
def test_equal_sizes_stay_equal(shapes, seed) -> None:
    for wish in (*SIZES, "scalar", "high_rank", "large", "tall"):
        changed = reshaped(shapes, wish, random.Random(seed))
        if changed is None:
            continue
        sizes = {}
        if wish not in ("scalar", "high_rank"):
            assert [len(shape) for shape in changed] == [len(shape) for shape in shapes]
            for before, after in zip(shapes, changed):
                for old, new in zip(before, after):
                    assert sizes.setdefault(old, new) == new


@given(
    st.lists(st.sampled_from(("int8", "float16", "bool", "float8", "wide_unsigned")), max_size=2),
    st.lists(st.sampled_from((*SIZES, "scalar", "high_rank", "large", "tall")), max_size=2),
    st.lists(st.sampled_from(LAYOUTS), max_size=2),
    st.lists(st.sampled_from(VALUES), max_size=2),
    st.integers(0, 999),
)
def test_an_anchor_carries_what_it_says(dtypes, shapes, layouts_, values, seed) -> None:
    wanted = {"dtype": dtypes, "shape": shapes, "layout": layouts_, "values": values}
    tensor, carried = anchor(wanted, random.Random(seed))
    assert all(value in wanted[name] for name, value in carried.items())
    assert not any(wanted.values()) or carried
    if "shape" in carried and carried.get("layout", "contiguous") != "overlapping":
        assert carried["shape"] in shape_words(tensor.shape)
    assert tensor.layout == carried.get("layout", "contiguous") and tensor.values == carried.get("values", "")


def test_loosened_data_keeps_its_range() -> None:
    recorded = Fresh((2, 2), "int64", data=[[0, 3], [1, 2]])
    assert recorded.loosened().text(random.Random(0)) == "torch.randint(0, 4, (2, 2))"
    assert Fresh((3,), "bool", data=[True, False, True]).loosened().text(random.Random(0)) == "torch.rand(3) > 0.5"
    assert recorded.text(random.Random(0)) == "torch.tensor([[0, 3], [1, 2]])" and recorded.spelled == 4


EVALUATE = """
import json, sys, torch
for text in json.load(sys.stdin):
    t = eval(text)
    facts = [list(t.shape), list(t.stride()), t.storage_offset(), t.requires_grad, t.is_leaf]
    print(json.dumps([str(t.dtype)[6:], *facts]))
"""


@pytest.mark.torch
def test_texts_make_what_was_wanted() -> None:
    pytest.importorskip("torch")
    wanted = [fresh(seed) for seed in range(400)]
    texts = [tensor.text(random.Random(seed)) for seed, tensor in enumerate(wanted)]
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-600:]
    for tensor, text, line in zip(wanted, texts, done.stdout.splitlines(), strict=True):
        dtype, shape, stride, offset, grad, leaf = json.loads(line)
        assert (dtype, tuple(shape)) == (tensor.dtype, tensor.shape), text
        assert grad == (tensor.grad and dtype.startswith(("float16", "float32", "float64", "bfloat", "complex"))), text
        assert leaf, f"{text}: a gradient is asked of a leaf"
        visible = len(shape) >= 2 and min(shape) > 1  # a dimension of size 1 has no layout
        if tensor.layout in ("strided_slice", "expanded", "gapped", *(["overlapping"] * (len(shape) == 2))) and visible:
            assert tensor.layout in layouts(shape, stride, offset), text
