"""Source text of fresh tensors, as a person would write it, with the layout and the values that are wanted."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuzzer.knowledge.operators import Tensor

FLOATS = ("float32", "float64", "float16", "bfloat16")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")

#: Layouts and classes of values that a fresh tensor can be given.
LAYOUTS = ("contiguous", "transposed", "expanded", "strided_slice", "gapped", "offset", "channels_last", "overlapping")
VALUES = ("nan", "inf", "zero", "negative", "huge", "denormal", "extreme", "ties")

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Fresh:
    """A tensor to make: what the operator needs (range, data) and what the features ask for (layout, values)."""

    shape: Shape
    dtype: str
    low: float = -9.0
    high: float = 9.0
    data: object = None
    layout: str = "contiguous"
    values: str = ""
    grad: bool = False

    @classmethod
    def of(cls, tensor: Tensor) -> Fresh:
        return cls(tensor.shape, tensor.dtype, tensor.low, tensor.high, tensor.data, grad=tensor.grad)

    def loosened(self) -> Fresh:
        """Recorded data replaced by its range: any values within it, which is what most operators accept."""
        if self.data is None or self.dtype == "bool":
            return replace(self, data=None)
        numbers = [float(number) for number in _flat(self.data)] or [0.0]
        return replace(self, data=None, low=min(numbers), high=max(numbers))

    @property
    def spelled(self) -> int:
        """How many numbers its text spells out."""
        return 0 if self.data is None else len(_flat(self.data))

    def text(self, rng: random.Random) -> str:
        """One expression, valid after ``import torch``."""
        stored, suffix = _stored(self.shape, self.layout, rng)
        text = replace(self, shape=stored)._plain(rng)
        graded = self.grad and self.dtype in (*FLOATS, *COMPLEX)
        if (suffix or graded) and (text.startswith("-") or not text.endswith(")")):
            text = f"({text})"
        text += suffix
        if graded:
            plain = not suffix and text.startswith(("torch.randn(", "torch.rand(", "torch.zeros(", "torch.ones("))
            simple = plain and text.count("(") == 1
            text = text[:-1] + ", requires_grad=True)" if simple else text + ".requires_grad_()"
        return text

    # -- values -------------------------------------------------------------------------------------------------

    def _plain(self, rng: random.Random) -> str:
        sizes = ", ".join(map(str, self.shape))
        suffix = "" if self.dtype == "float32" else f", dtype=torch.{self.dtype}"
        if not self.shape:
            sizes = "()"
        if self.data is not None:
            implied = self.dtype in ("int64", "bool") and self.spelled
            return f"torch.tensor({self.data!r}{'' if implied else f', dtype=torch.{self.dtype}'})"
        if self.values:
            text = self._special(sizes, suffix)
            if text:
                return text
        if self.dtype == "bool":
            return f"torch.rand({sizes}) > 0.5"
        if self.dtype in FLOAT8:
            return f"torch.randn({sizes}).to(torch.{self.dtype})"
        if self.dtype in COMPLEX:
            return f"torch.randn({sizes}, dtype=torch.{self.dtype})"
        if self.dtype in FLOATS:
            return self._floats(sizes, suffix)
        return self._integers()

    def _floats(self, sizes: str, suffix: str) -> str:
        low, high = self.low, self.high
        if low == high and not self.shape:
            return f"torch.tensor({_short(low, True)}{suffix})"
        if low == high:  # one recorded element says little of the range
            low, high = min(low, 0.5 * low), max(high, 1.5 * high)
        if low >= 0.0:
            if high <= 1.0:
                return f"torch.rand({sizes}{suffix})"
            least = "" if low < 0.05 else f" + {_short(low)}"
            return f"torch.rand({sizes}{suffix}) * {_short(high - low)}{least}"
        if low >= -1.0 and high <= 1.0:
            return f"torch.rand({sizes}{suffix}) * 2 - 1"
        return f"torch.randn({sizes}{suffix})"

    def _integers(self) -> str:
        low, high = int(self.low), int(self.high)
        if low == high < 0:  # one recorded element says little of the range
            low, high = -9, 9
        if self.dtype in UNSIGNED:
            low, high = max(low, 0), max(high, 1)
        if self.dtype in ("int8", "uint8"):
            low, high = max(low, -100), min(high, 100)
        shape = f"({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"
        text = f"torch.randint({low}, {high + 1}, {shape}"
        if self.dtype in ("uint16", "uint32", "uint64"):
            return f"{text}).to(torch.{self.dtype})"
        return f"{text})" if self.dtype == "int64" else f"{text}, dtype=torch.{self.dtype})"

    def _special(self, sizes: str, suffix: str) -> str:
        """Text for a class of values; empty where the class means nothing for this dtype."""
        shape = f"({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"
        floating = self.dtype in FLOATS
        if self.values == "zero":
            return f"torch.zeros({sizes}{suffix})"
        if self.values == "ties" and self.dtype not in (*COMPLEX, *FLOAT8, "bool", "uint16", "uint32", "uint64"):
            text = f"torch.randint({max(0, int(self.low))}, {max(0, int(self.low)) + 3}, {shape}"
            return text + (f", dtype=torch.{self.dtype})" if self.dtype != "int64" else ")")
        if self.values == "negative" and floating and self.low < 0:
            return f"-torch.rand({sizes}{suffix})"
        if self.values == "negative" and self.dtype in SIGNED and self.low < 0:
            return f"torch.randint(-9, 0, {shape}, dtype=torch.{self.dtype})"
        if self.values == "huge" and floating:
            return f"torch.randn({sizes}{suffix}) * {'1e4' if self.dtype == 'float16' else '1e30'}"
        if self.values == "denormal" and floating:
            tiny = {"float64": "1e-310", "float16": "1e-6"}.get(self.dtype, "1e-40")
            return f"torch.randn({sizes}{suffix}) * {tiny}"
        if self.values in ("nan", "inf") and floating and self.shape:
            return f'torch.where(torch.rand({sizes}) > 0.5, torch.randn({sizes}{suffix}), float("{self.values}"))'
        if self.values == "extreme" and self.dtype in ("int8", "int16", "int32", "int64", "uint8"):
            bits = int(self.dtype.lstrip("uint"))
            top = 2**bits - 1 if self.dtype == "uint8" else 2 ** (bits - 1) - 1
            return f"torch.full({shape}, {top}, dtype=torch.{self.dtype})"
        return ""


def _short(number: float, floating: bool = False) -> str:
    """At most three digits; with a point where the text alone must say that it is no integer."""
    text = f"{number:.3g}"
    return text + ".0" if floating and text.lstrip("-").isdigit() else text


def _flat(data: object) -> list[Any]:
    if isinstance(data, (list, tuple)):
        return [number for item in data for number in _flat(item)]
    return [data]


def _stored(shape: Shape, layout: str, rng: random.Random) -> tuple[Shape, str]:
    """(shape to store, suffix that views it as ``shape`` in the wanted layout); unchanged where it cannot be had."""
    rank = len(shape)
    if layout == "contiguous" or rank == 0:
        return shape, ""
    if layout == "transposed" and rank >= 2:
        if rank == 2:
            return shape[::-1], ".t()"
        if rng.random() < 0.5:
            return (*shape[:-2], shape[-1], shape[-2]), ".transpose(-2, -1)"
        order = list(range(rank))
        while order == list(range(rank)):
            rng.shuffle(order)
        stored = [0] * rank
        for position, axis in enumerate(order):
            stored[axis] = shape[position]
        return tuple(stored), f".permute({', '.join(map(str, order))})"
    if layout == "expanded" and any(size > 1 for size in shape):
        axis = rng.choice([axis for axis, size in enumerate(shape) if size > 1])
        return (*shape[:axis], 1, *shape[axis + 1 :]), f".expand({', '.join(map(str, shape))})"
    if layout == "strided_slice":
        return (*shape[:-1], 2 * shape[-1]), "[..., ::2]" if rank > 1 else "[::2]"
    if layout == "gapped" and rank >= 2:
        return (*shape[:-1], shape[-1] + 2), f"[..., 1:{shape[-1] + 1}]"
    if layout in ("offset", "gapped"):
        return (shape[0] + 1, *shape[1:]), "[1:]"
    if layout == "channels_last" and rank in (4, 5):
        return shape, f".to(memory_format=torch.channels_last{'_3d' if rank == 5 else ''})"
    if layout == "overlapping" and rank == 2 and shape[0] > 0 and shape[1] > 0:
        return (shape[0] + shape[1] - 1,), f".unfold(0, {shape[1]}, 1)"
    return shape, ""


#: Size classes of the feature dimension "shape" that change one size of a tensor.
SIZES: dict[str, Sequence[int]] = {
    "empty": (0,),
    "ones": (1,),
    "odd": (3, 5, 7, 11, 13),
    "vector_multiple": (8, 16, 32, 64),
    "vector_minus_one": (7, 15, 31),
    "vector_plus_one": (9, 17, 33),
    "long_row": (1024, 1100),
}


#: No tensor is made larger than this many elements: memory traffic tests no compiler.
LARGEST = 1 << 17


def reshaped(shapes: Sequence[Shape], wish: str, rng: random.Random) -> list[Shape] | None:
    """The shapes of one call with the wish brought about, sizes that were equal staying equal; None: impossible."""
    wanted = _reshaped(shapes, wish, rng)
    if wanted is None or any(math.prod(shape) > LARGEST for shape in wanted):
        return None
    return wanted


def _reshaped(shapes: Sequence[Shape], wish: str, rng: random.Random) -> list[Shape] | None:
    if wish == "scalar":
        return [() for _ in shapes] if len(set(shapes)) == 1 else None
    if wish == "high_rank":
        if len(set(shapes)) > 1 or not shapes or len(shapes[0]) > 4:
            return None
        extra = (2, 1, 2, 3, 2)[: 5 - len(shapes[0])]
        return [(*extra, *shape) for shape in shapes]
    sizes = sorted({size for shape in shapes for size in shape})
    if not sizes:
        return None
    if wish in ("large", "tall"):
        leading = [shape[0] for shape in shapes if len(shape) >= 2]
        old = rng.choice(leading) if leading else rng.choice(sizes)
        new = 520 if wish == "tall" else 4100 // max(1, _rest(shapes, old)) + 7
        return [tuple(new if size == old else size for size in shape) for shape in shapes]
    if wish not in SIZES:
        return None
    last = [shape[-1] for shape in shapes if shape]
    old = rng.choice(last if wish.startswith(("vector", "long")) else sizes)
    new = rng.choice(list(SIZES[wish]))
    return [tuple(new if size == old else size for size in shape) for shape in shapes]


def _rest(shapes: Sequence[Shape], old: int) -> int:
    best = 1
    for shape in shapes:
        if old in shape:
            product = 1
            for size in shape:
                product *= size if size != old else 1
            best = max(best, product)
    return best


# -- tensors made for the features alone ------------------------------------------------------------------------------

_COMMON_SHAPES: Mapping[int, Sequence[Shape]] = {
    0: ((),),
    1: ((6,), (10,)),
    2: ((3, 4), (4, 6), (6, 8), (2, 5)),
    3: ((2, 3, 4), (4, 2, 6), (2, 5, 8)),
    4: ((2, 3, 4, 5), (2, 4, 6, 6)),
}
_NEEDS_FLOAT = frozenset({"nan", "inf", "huge", "denormal"})


def anchor(wanted: Mapping[str, Sequence[str]], rng: random.Random) -> tuple[Fresh, dict[str, str]]:
    """A tensor that carries as many of the wanted values as go together, one a dimension.

    Args:
        wanted: dimension (dtype, shape, layout, values) → values still to be brought about.

    Returns:
        the tensor, and what it carries.
    """
    chosen = {name: rng.choice(list(values)) for name, values in wanted.items() if values}
    dtype = chosen.get("dtype", "")
    dtype = {"float8": "float8_e5m2", "wide_unsigned": rng.choice(UNSIGNED[1:])}.get(dtype, dtype)
    if chosen.get("shape") == "scalar":
        chosen.pop("layout", None)
    if chosen.get("shape") == "empty":
        chosen.pop("layout", None)
        chosen.pop("values", None)
    values = chosen.get("values", "")
    if not dtype:
        dtype = rng.choice(("int32", "int64", "int8")) if values == "extreme" else "float32"
    if values and not _takes(dtype, values):
        chosen.pop("values")
        values = ""
    layout = chosen.get("layout", "contiguous")
    rank = {"channels_last": 4, "overlapping": 2, "transposed": rng.choice((2, 3)), "gapped": 2}.get(
        layout, rng.choice((1, 2, 2, 3))
    )
    shape = _shape_with(chosen.get("shape", ""), rank, rng)
    return Fresh(shape, dtype, layout=layout, values=values), chosen


def _takes(dtype: str, values: str) -> bool:
    if values in _NEEDS_FLOAT:
        return dtype in FLOATS
    if values == "extreme":
        return dtype in SIGNED
    if values == "negative":
        return dtype in (*FLOATS, *SIGNED)
    return dtype in (*FLOATS, *SIGNED, "uint8")


def _shape_with(wish: str, rank: int, rng: random.Random) -> Shape:
    if wish == "scalar":
        return ()
    if wish == "high_rank":
        return rng.choice(((2, 1, 3, 2, 4), (2, 2, 1, 2, 3), (1, 2, 3, 2, 2)))
    shape = rng.choice(_COMMON_SHAPES[rank])
    if wish == "tall":
        return (520, *shape[1:-1], rng.choice((2, 3, 5))) if rank >= 2 else (520, 3)
    if wish == "large":
        return (*shape[:-1], 4100 // max(1, math.prod(shape[:-1])) + 7)
    if wish in ("empty", "ones"):
        axis = rng.randrange(rank)
        return (*shape[:axis], *SIZES[wish], *shape[axis + 1 :])
    if wish in SIZES:
        return (*shape[:-1], rng.choice(list(SIZES[wish])))
    return shape
