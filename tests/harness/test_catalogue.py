"""The catalogue: records become text and run; a job that kills its process costs only itself."""

import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalogue import isolate, select, source

T = {"t": "tensor", "shape": [2, 3], "dtype": "float32", "low": -1.0, "high": 1.0, "grad": True, "layout": "contiguous"}


def test_source_of_a_call():
    call = {
        "args": [T, {"t": "list", "items": [T, {"t": "literal", "text": "2"}], "tuple": True}],
        "kwargs": {"dim": {"t": "literal", "text": "-1"}},
    }
    bound = source.bind(call)
    assert [name for name, _ in bound.inputs] == ["x0", "x1"]
    assert bound.inputs[0][1] == "torch.empty((2, 3)).uniform_(-1.0, 1.0).requires_grad_()"
    assert (bound.args, bound.kwargs) == (["x0", "(x1, 2)"], {"dim": "-1"})


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"form": "function", "text": "torch.f"}, "torch.f(x0, 2, k=3)"),
        ({"form": "method", "text": "f"}, "x0.f(2, k=3)"),
        ({"form": "out", "text": "torch.f"}, "torch.f(x0, 2, k=3, out=o)"),
        ({"form": "module", "text": "torch.nn.F()"}, "m(x0, 2, k=3)"),
    ],
)
def test_invocation(form, text):
    assert source.invocation(form, ["x0", "2"], {"k": "3"}, out="o", module="m") == text


def test_invocation_refuses_what_has_no_text():
    with pytest.raises(ValueError, match="first argument"):
        source.invocation({"form": "method", "text": "f"}, ["2"], {})
    with pytest.raises(ValueError, match="more than 1"):
        source.invocation({"form": "operator", "text": "{0} + {1}"}, ["x0"], {})


def test_retype_keeps_other_dtypes_and_fits_the_range():
    index = {**T, "dtype": "int64", "data": [0, 1], "low": 0, "high": 1}
    call = {
        "args": [{**T, "low": -3.5, "high": 300.0}, index],
        "kwargs": {"dtype": {"t": "literal", "text": "torch.float32"}},
    }
    turned = source.retype(call, "float32", "uint8")
    assert turned["args"][0]["dtype"] == "uint8" and (turned["args"][0]["low"], turned["args"][0]["high"]) == (0, 100)
    assert turned["args"][1] == index
    assert turned["kwargs"]["dtype"]["text"] == "torch.uint8"


def test_the_chooser_prefers_new_structure_and_stops():
    plain = {"args": [T], "kwargs": {}}
    twin = {"args": [{**T, "shape": [5, 5]}], "kwargs": {}}
    keyword = {"args": [T], "kwargs": {"dim": {"t": "literal", "text": "0"}}}
    empty = {"args": [{**T, "shape": [0, 3]}], "kwargs": {}}
    chooser = select.Chooser([empty, plain, twin, keyword])
    taken = []
    while (call := chooser.take()) is not None:
        chooser.keep(call)
        taken.append(call)
    assert taken == [keyword, empty]  # the keyword's call shows all that the plain ones would


def test_a_job_that_dies_or_raises_costs_only_itself():
    def boom():
        raise RuntimeError("no")

    jobs = [lambda: {"n": 0}, lambda: os.kill(os.getpid(), signal.SIGKILL), boom, lambda: {"n": 3}]
    seen = list(isolate.run_all(jobs))
    assert [result for _, result, _ in seen] == [{"n": 0}, None, None, {"n": 3}]
    assert f"signal {int(signal.SIGKILL)}" in seen[1][2] and seen[2][2] == "RuntimeError: no"


def test_a_job_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(isolate, "PATIENCE", 0.3)
    seen = list(isolate.run_all([lambda: time.sleep(60), lambda: {"n": 1}]))
    assert seen[0][1] is None and "no answer" in seen[0][2]
    assert seen[1][1] == {"n": 1}


_shape = st.lists(st.integers(0, 4), max_size=4)
_dtype = st.sampled_from(
    ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "complex64", "complex128"]
)


@pytest.mark.torch
@given(_shape, _dtype, st.sampled_from(["contiguous", "strided"]), st.booleans())
def test_tensor_source_makes_what_the_record_says(shape, dtype, layout, grad):
    torch = pytest.importorskip("torch")
    record = {"t": "tensor", "shape": shape, "dtype": dtype, "low": 1, "high": 3, "grad": grad, "layout": layout}
    made = eval(source.tensor_source(record), {"torch": torch})
    assert list(made.shape) == shape and made.dtype == getattr(torch, dtype)
    assert made.requires_grad == (grad and (made.is_floating_point() or made.is_complex()))
    if dtype == "int64" and made.numel():
        assert int(made.min()) >= 1 and int(made.max()) <= 3
    if layout == "strided" and min(shape, default=0) > 1:
        assert not made.is_contiguous()


@pytest.mark.torch
def test_records_of_values_round_trip():
    torch = pytest.importorskip("torch")
    from harness.catalogue import record

    for value in (
        None,
        True,
        -3,
        0.5,
        float("inf"),
        complex(1, -2),
        "mean",
        (1, (2.0,)),
        [1],
        slice(1, None, 2),
        torch.float16,
        torch.channels_last,
        ...,
    ):
        assert eval(record.describe(value)["text"], {"torch": torch}) == value
    indices = torch.tensor([[3, 1]])
    assert record.describe(indices)["data"] == [[3, 1]]
    assert record.describe(torch.ones(2, 3).t())["layout"] == "strided"
    for odd in (len, torch.ones(2).to_sparse(), torch.Generator()):
        with pytest.raises(record.UnrecordableError):
            record.describe(odd)


@pytest.mark.torch
def test_measuring_tells_what_works():
    torch = pytest.importorskip("torch")
    from harness.catalogue import measure

    forms = [{"form": "function", "text": "torch.no_such_thing"}, {"form": "function", "text": "torch.exp"}]
    more = [
        {"form": kind, "text": text}
        for kind, text in (("method", "exp"), ("inplace", "exp_"), ("out", "torch.exp"), ("method", "sum"))
    ]
    found = measure.measure(
        measure.Candidate("exp", "", forms, more, [{"args": [T], "kwargs": {}}], schema_names=["exp"])
    )
    assert [(form["form"], form["text"]) for form in found["forms"]] == [
        ("function", "torch.exp"), ("method", "exp"), ("inplace", "exp_"), ("out", "torch.exp"),
    ]  # fmt: skip
    assert found["aten"] == ["aten.exp"] and found["lowering"] == "lowered"
    assert found["autograd"] and not found["random"]
    assert "float16" in found["dtypes"] and {len(call["args"][0]["shape"]) for call in found["calls"]} >= {0, 2, 3}
    dropout = measure.Candidate(
        "d", "", [{"form": "function", "text": "torch.nn.functional.dropout"}], [], [{"args": [T], "kwargs": {}}]
    )
    assert measure.measure(dropout)["random"]
    with pytest.raises(measure.DroppedError, match="no_such_thing"):
        measure.measure(measure.Candidate("x", "", forms[:1], [], [{"args": [T], "kwargs": {}}]))
    del torch


@pytest.mark.torch
def test_a_derivation_streams_and_can_be_left():
    pytest.importorskip("torch")
    from harness import catalogue

    lines = []
    stream = catalogue.operators("cpu", lines.append)
    first = next(stream)
    stream.close()
    assert first["name"] == "abs" and first["calls"]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
