"""Candidates that no database lists: Python's operators on tensors, indexing, and modules without samples."""

from __future__ import annotations

from typing import Any

from harness.catalogue.measure import Candidate


def _tensor(dtype: str, low: float, high: float, shape: tuple[int, ...], **more: Any) -> dict[str, Any]:
    record = {"t": "tensor", "shape": list(shape), "dtype": dtype, "low": low, "high": high, "grad": False}
    return {**record, "layout": "contiguous", **more}


def _f(*shape: int) -> dict[str, Any]:
    return _tensor("float32", -3.0, 3.0, shape)


def _positive(*shape: int) -> dict[str, Any]:
    return _tensor("float32", 0.5, 3.0, shape)


def _i(*shape: int) -> dict[str, Any]:
    return _tensor("int64", 1, 5, shape)


def _b(*shape: int) -> dict[str, Any]:
    return _tensor("bool", 0, 1, shape)


def _index(*values: int) -> dict[str, Any]:
    return _tensor("int64", min(values), max(values), (len(values),), data=list(values))


def _mask(*values: bool) -> dict[str, Any]:
    return _tensor("bool", 0, 1, (len(values),), data=list(values))


def _lit(text: str) -> dict[str, Any]:
    return {"t": "literal", "text": text}


def _call(*args: dict[str, Any], **kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


_FLOATS = [_call(_f(2, 3), _f(2, 3)), _call(_f(4, 1, 5), _f(3, 1)), _call(_f(), _f(4)), _call(_f(2, 3), _lit("2"))]
_POWERS = [_call(_positive(2, 3), _positive(3)), _call(_f(2, 3), _lit("2")), _call(_positive(4), _lit("-0.5"))]
_WHOLES = [_call(_i(2, 3), _i(2, 3)), _call(_i(4, 1), _i(3)), _call(_i(5), _lit("3"))]
_BITS = [*_WHOLES, _call(_b(2, 3), _b(3))]
_MATRICES = [
    _call(_f(2, 3), _f(3, 4)),
    _call(_f(5, 2, 3), _f(3)),
    _call(_f(3), _f(3)),
    _call(_f(2, 1, 2, 3), _f(4, 3, 2)),
]

#: name, text, calls, dtype of the calls
_BINARY: list[tuple[str, str, list[dict[str, Any]], str]] = [
    ("add", "{0} + {1}", _FLOATS, "float32"),
    ("sub", "{0} - {1}", _FLOATS, "float32"),
    ("mul", "{0} * {1}", _FLOATS, "float32"),
    ("truediv", "{0} / {1}", _FLOATS, "float32"),
    ("floordiv", "{0} // {1}", _FLOATS, "float32"),
    ("mod", "{0} % {1}", _FLOATS, "float32"),
    ("pow", "{0} ** {1}", _POWERS, "float32"),
    ("matmul", "{0} @ {1}", _MATRICES, "float32"),
    ("eq", "{0} == {1}", _FLOATS, "float32"),
    ("ne", "{0} != {1}", _FLOATS, "float32"),
    ("lt", "{0} < {1}", _FLOATS, "float32"),
    ("le", "{0} <= {1}", _FLOATS, "float32"),
    ("gt", "{0} > {1}", _FLOATS, "float32"),
    ("ge", "{0} >= {1}", _FLOATS, "float32"),
    ("and", "{0} & {1}", _BITS, "int64"),
    ("or", "{0} | {1}", _BITS, "int64"),
    ("xor", "{0} ^ {1}", _BITS, "int64"),
    ("lshift", "{0} << {1}", _WHOLES, "int64"),
    ("rshift", "{0} >> {1}", _WHOLES, "int64"),
    ("radd", "2 + {0}", [_call(_f(2, 3))], "float32"),
    ("rsub", "1.5 - {0}", [_call(_f(2, 3))], "float32"),
    ("rmul", "3 * {0}", [_call(_f(2, 3))], "float32"),
    ("rtruediv", "1 / {0}", [_call(_positive(2, 3))], "float32"),
    ("rpow", "2 ** {0}", [_call(_f(2, 3))], "float32"),
    ("neg", "-{0}", [_call(_f(2, 3)), _call(_f()), _call(_f(0, 3))], "float32"),
    ("abs", "abs({0})", [_call(_f(2, 3)), _call(_f())], "float32"),
    ("invert", "~{0}", [_call(_i(2, 3)), _call(_b(4))], "int64"),
]

#: In-place operators are statements: they change their first argument.
_INPLACE: list[tuple[str, str, list[dict[str, Any]], str]] = [
    (f"i{name}", text.replace(" {1}", "= {1}"), calls, dtype)
    for name, text, calls, dtype in _BINARY
    if name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
]

_INDEXED = [
    _call(_f(5)),
    _call(_f(4, 5)),
    _call(_f(3, 4, 5)),
    _call(_f(5), _index(3, 0, 0, -1)),
    _call(_f(4, 5), _index(2, 1, 3)),
    _call(_f(4, 5), _mask(True, False, True, True)),
]
_ALL, _TALL, _DEEP = [0, 1, 2], [1, 2], [2]

#: text, indices into ``_INDEXED``
_READS: list[tuple[str, list[int]]] = [
    ("{0}[0]", _ALL),
    ("{0}[-1]", _ALL),
    ("{0}[1:]", _ALL),
    ("{0}[:-1]", _ALL),
    ("{0}[::2]", _ALL),
    ("{0}[3:1]", _ALL),
    ("{0}[None]", _ALL),
    ("{0}[..., None]", _ALL),
    ("{0}[..., 0]", _ALL),
    ("{0}[..., 1:-1]", _ALL),
    ("{0}[:, 1]", _TALL),
    ("{0}[:, ::2]", _TALL),
    ("{0}[1:, 1:]", _TALL),
    ("{0}[:, None]", _TALL),
    ("{0}[0, -1]", _TALL),
    ("{0}[0, ..., 1]", _DEEP),
    ("{0}[:, [0, 2, 1]]", _TALL),
    ("{0}[[1, 0], [2, 2]]", _TALL),
    ("{0}[{0} > 0]", _ALL),
    ("{0}[{1}]", [3, 4, 5]),
    ("{0}[..., {1}]", [4]),
    ("{0}[{1}, 1:]", [4]),
    ("{0}[None, {1}]", [3, 4]),
    ("{0}[{1}, {1}]", [4]),
    ("{0}[...]", _ALL),
]
_WRITES: list[tuple[str, list[int]]] = [
    ("{0}[0] = 1.5", _ALL),
    ("{0}[1:] = 0", _ALL),
    ("{0}[...] = -1", _ALL),
    ("{0}[..., ::2] = 2", _ALL),
    ("{0}[:, 0] = 1", _TALL),
    ("{0}[{0} > 0] = 0", _ALL),
    ("{0}[{1}] = 2.5", [3, 4, 5]),
    ("{0}[:, {1}] = 1", [4]),
    ("{0}[1:] = {0}[:-1].clone()", _ALL),
    ("{0}[0] += 1", _ALL),
    ("{0}[..., 0] = {0}[..., -1]", _ALL),
]

#: Modules that the module database leaves out: text of construction, calls.
_MODULES: list[tuple[str, list[str], list[dict[str, Any]]]] = [
    ("Identity", ["torch.nn.Identity()"], [_call(_f(2, 3))]),
    ("Flatten", ["torch.nn.Flatten()", "torch.nn.Flatten(0, -2)"], [_call(_f(2, 3, 4)), _call(_f(2, 3, 4, 5))]),
    ("Unflatten", ["torch.nn.Unflatten(1, (2, 3))"], [_call(_f(2, 6))]),
    ("Dropout", ["torch.nn.Dropout(0.5)", "torch.nn.Dropout(0.1).eval()"], [_call(_f(2, 3)), _call(_f(2, 3, 4))]),
    ("Dropout1d", ["torch.nn.Dropout1d(0.5)"], [_call(_f(2, 3, 4))]),
    ("Dropout2d", ["torch.nn.Dropout2d(0.5)"], [_call(_f(2, 3, 4, 4))]),
    ("Dropout3d", ["torch.nn.Dropout3d(0.5)"], [_call(_f(1, 2, 3, 4, 4))]),
    ("AlphaDropout", ["torch.nn.AlphaDropout(0.5)", "torch.nn.AlphaDropout().eval()"], [_call(_f(2, 3))]),
    ("Hardsigmoid", ["torch.nn.Hardsigmoid()"], [_call(_f(2, 3)), _call(_f())]),
    ("RReLU", ["torch.nn.RReLU()", "torch.nn.RReLU(0.1, 0.3).eval()"], [_call(_f(2, 3))]),
    ("PixelShuffle", ["torch.nn.PixelShuffle(2)"], [_call(_f(1, 8, 3, 3)), _call(_f(4, 2, 3))]),
    ("PixelUnshuffle", ["torch.nn.PixelUnshuffle(2)"], [_call(_f(1, 2, 4, 6))]),
    ("ChannelShuffle", ["torch.nn.ChannelShuffle(2)"], [_call(_f(1, 4, 3, 3))]),
    (
        "Upsample",
        [
            "torch.nn.Upsample(scale_factor=2)",
            "torch.nn.Upsample(size=(5, 7), mode='bilinear')",
            "torch.nn.Upsample(scale_factor=1.5, mode='bicubic', align_corners=True)",
        ],
        [_call(_f(1, 2, 3, 4))],
    ),
    ("UpsamplingNearest2d", ["torch.nn.UpsamplingNearest2d(scale_factor=2)"], [_call(_f(1, 2, 3, 4))]),
    ("UpsamplingBilinear2d", ["torch.nn.UpsamplingBilinear2d(size=(4, 6))"], [_call(_f(1, 2, 3, 4))]),
    ("Fold", ["torch.nn.Fold((4, 5), (2, 2))"], [_call(_f(1, 12, 12)), _call(_f(12, 12))]),
    (
        "Unfold",
        ["torch.nn.Unfold((2, 2))", "torch.nn.Unfold(2, dilation=2, padding=1, stride=2)"],
        [_call(_f(1, 3, 4, 5))],
    ),
    (
        "CosineSimilarity",
        ["torch.nn.CosineSimilarity()", "torch.nn.CosineSimilarity(dim=0)"],
        [_call(_f(3, 4), _f(3, 4))],
    ),
    (
        "PairwiseDistance",
        ["torch.nn.PairwiseDistance()", "torch.nn.PairwiseDistance(p=1, keepdim=True)"],
        [_call(_f(3, 4), _f(3, 4))],
    ),
    ("TripletMarginLoss", ["torch.nn.TripletMarginLoss()"], [_call(_f(3, 4), _f(3, 4), _f(3, 4))]),
    (
        "FractionalMaxPool2d",
        [
            "torch.nn.FractionalMaxPool2d(2, output_ratio=0.5)",
            "torch.nn.FractionalMaxPool2d((2, 3), output_size=(3, 3))",
        ],
        [_call(_f(1, 2, 7, 8))],
    ),
    ("FractionalMaxPool3d", ["torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)"], [_call(_f(1, 2, 6, 6, 6))]),
    (
        "TransformerEncoder",
        ["torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)"],
        [_call(_f(2, 3, 4))],
    ),
    (
        "MaxUnpool2d",
        ["torch.nn.MaxUnpool2d(2)"],
        [_call(_f(1, 1, 2, 2), _tensor("int64", 0, 15, (1, 1, 2, 2), data=[[[[0, 3], [8, 15]]]]))],
    ),
    (
        "EmbeddingBag",
        ["torch.nn.EmbeddingBag(6, 3)", "torch.nn.EmbeddingBag(6, 3, mode='max')"],
        [_call(_tensor("int64", 0, 5, (2, 3), data=[[0, 5, 2], [1, 1, 4]]))],
    ),
    (
        "Sequential",
        [
            "torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))",
            "torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.GELU())",
        ],
        [_call(_f(5, 3))],
    ),
    (
        "Sequential.conv",
        [
            "torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())",
            "torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4).eval(), torch.nn.SiLU())",
        ],
        [_call(_f(2, 2, 5, 5))],
    ),
]


def candidates() -> list[Candidate]:
    """All of them; each form lists the calls it is meant for."""
    found = [_simple("operator", *row) for row in _BINARY]
    found += [_simple("statement", *row) for row in _INPLACE]
    found.append(_indexing("getitem", "operator", _READS))
    found.append(_indexing("setitem", "statement", _WRITES))
    for name, texts, calls in _MODULES:
        forms = [{"form": "module", "text": text, "calls": list(range(len(calls)))} for text in texts]
        found.append(Candidate(f"nn.{name}", "", forms, [], calls, fixed=True))
    return found


def _simple(kind: str, name: str, text: str, calls: list[dict[str, Any]], dtype: str) -> Candidate:
    form = {"form": kind, "text": text, "calls": list(range(len(calls)))}
    return Candidate(f"operator.{name}", "", [form], [], calls, dtype, schema_names=[], fixed=True)


def _indexing(name: str, kind: str, table: list[tuple[str, list[int]]]) -> Candidate:
    forms = [{"form": kind, "text": text, "calls": held} for text, held in table]
    return Candidate(f"operator.{name}", "", forms, [], _INDEXED, fixed=True)
