"""Ways to fill the tensor slots of a recorded call: live tensors as they are, adapted, joined; fresh ones; recorded."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuzzer.engines.draft import Facts
from fuzzer.engines.render import Slots
from fuzzer.engines.tensors import COMPLEX, FLOATS, LARGEST, SIGNED, UNSIGNED, Fresh, Shape, reshaped
from fuzzer.engines.wishes import Wishes
from fuzzer.knowledge.operators import Call, Operator, Tensor

_SPELLED = 24  # numbers of a literal tensor: beyond, nobody would type them
_SHIFT = re.compile(r"shift|<<|>>")


def _usable(operator: Operator, call: Call) -> list[int]:
    """Slots that may hold any numbers: not positions, masks, or amounts to shift by."""
    usable = [index for index, tensor in enumerate(call.tensors) if tensor.data is None]
    if any(_SHIFT.search(form.text) for form in operator.forms):
        return [0] if call.tensors else []
    return usable


def _loose(operator: Operator, tensor: Tensor, index: int) -> Fresh:
    fresh = Fresh.of(tensor).loosened()
    if index and any(_SHIFT.search(form.text) for form in operator.forms):
        fresh = replace(fresh, low=0, high=7)
    return fresh


def connected(
    operator: Operator, call: Call, ranked: Sequence[tuple[str, Facts]], wishes: Wishes, rng: random.Random
) -> Slots | None:
    """A live tensor in one slot, the other slots shaped after it."""
    usable = _usable(operator, call)
    if not usable:
        return None
    main = rng.choice(usable) if rng.random() < 0.3 else usable[0]
    recorded = call.tensors[main]
    same_kind = [item for item in ranked if _kind(item[1]["dtype"]) == _kind(recorded.dtype)]
    same_rank = [item for item in same_kind if len(item[1]["shape"]) == len(recorded.shape)]
    name, facts = (same_rank or same_kind or ranked)[0]
    sizes = dict(zip(recorded.shape, facts["shape"])) if len(facts["shape"]) == len(recorded.shape) else {}
    slots = Slots(sizes={old: new for old, new in sizes.items() if old > 2} if rng.random() < 0.5 else {})
    for index, tensor in enumerate(call.tensors):
        if index == main:
            slots.use(name)
            continue
        shape = tuple(facts["shape"]) if tensor.shape == recorded.shape else _mapped(tensor.shape, sizes)
        if math.prod(shape) > LARGEST:
            return None
        dtype = facts["dtype"] if tensor.dtype == recorded.dtype and tensor.data is None else tensor.dtype
        twin = [other for other, known in ranked if tuple(known["shape"]) == shape and known["dtype"] == dtype]
        if twin and index in usable and rng.random() < 0.6:
            slots.use(rng.choice(twin[:4]))
        else:
            fresh = replace(_loose(operator, tensor, index), shape=shape, dtype=dtype, grad=graded(dtype, wishes))
            slots.make(fresh)
    return slots


def adapted(
    operator: Operator, call: Call, ranked: Sequence[tuple[str, Facts]], wishes: Wishes, rng: random.Random
) -> Slots | None:
    """A live tensor brought to the recorded shape and kind of dtype by a view and a cast."""
    usable = _usable(operator, call)
    if not usable:
        return None
    main = rng.choice(usable)
    recorded = call.tensors[main]
    for name, facts in ranked:
        adapter = _adapter(tuple(facts["shape"]), recorded.shape)
        if adapter is None:
            continue
        if facts["dtype"] != recorded.dtype and _kind(facts["dtype"]) != _kind(recorded.dtype):
            if _kind(recorded.dtype) == "int" or _kind(facts["dtype"]) == "complex":
                continue  # indices and lengths made from arbitrary floats would be refused, or undefined
            adapter += f".to(torch.{recorded.dtype})"
        slots = Slots()
        for index, tensor in enumerate(call.tensors):
            if index == main:
                slots.use(name, adapter)
            else:
                slots.make(replace(_loose(operator, tensor, index), grad=graded(tensor.dtype, wishes)))
        return slots
    return None


def joined(call: Call, ranked: Sequence[tuple[str, Facts]], wishes: Wishes, rng: random.Random) -> Slots | None:
    """The recorded call, one of whose floats also depends on a live tensor, whatever its shape."""
    usable = [i for i, tensor in enumerate(call.tensors) if tensor.data is None and tensor.dtype in FLOATS]
    floats = [(name, facts) for name, facts in ranked if facts["dtype"] in FLOATS and 0 not in facts["shape"]]
    if not usable or not floats:
        return None
    main = rng.choice(usable)
    name, facts = floats[0]
    slots = Slots()
    for index, tensor in enumerate(call.tensors):
        fresh = replace(Fresh.of(tensor).loosened(), grad=graded(tensor.dtype, wishes))
        if index == main:
            number = "{}.mean()" if facts["shape"] else "{}"
            slots.join(fresh, name, number if facts["dtype"] == tensor.dtype else f"{number}.to(torch.{tensor.dtype})")
        else:
            slots.make(fresh)
    return slots


def _adapter(have: Shape, want: Shape) -> str | None:
    """A view expression from one shape to another, ``{}`` standing for the tensor; None where there is none."""
    if have == want:
        return "{}"
    sizes = ", ".join(map(str, want))
    if _numel(have) == _numel(want):
        return f"{{}}.reshape({sizes or '()'})"
    if len(have) == len(want) and all(h >= w for h, w in zip(have, want)):
        cuts = [f":{w}" if h != w else ":" for h, w in zip(have, want)]
        while cuts[-1] == ":":
            cuts.pop()
        return "{}[" + ", ".join(cuts) + "]"
    if len(have) <= len(want) and all(h in (1, w) for h, w in zip(reversed(have), reversed(want))):
        return f"{{}}.expand({sizes})"
    if _numel(have) > _numel(want) > 0 and want:
        flat = "{}.flatten()[:" + f"{_numel(want)}]"
        return flat if len(want) == 1 else f"{flat}.reshape({sizes})"
    return None


def all_fresh(operator: Operator, call: Call, wishes: Wishes, rng: random.Random) -> Slots | None:
    """All slots fresh, with the dtype, shape, layout and values that the features ask for."""
    tensors = list(call.tensors)
    if not tensors:
        return Slots()
    shapes = [tensor.shape for tensor in tensors]
    for wish in wishes.values("shape"):
        shapes = reshaped(shapes, wish, rng) or shapes
    dtype = _wanted_dtype(operator, wishes, rng)
    layouts = wishes.values("layout")
    values = wishes.values("values")
    marked = rng.randrange(len(tensors))
    slots = Slots()
    for index, (tensor, shape) in enumerate(zip(tensors, shapes)):
        if tensor.data is not None and shape != tensor.shape:
            return None
        fresh = _loose(operator, tensor, index)
        if tensor.data is None:
            fresh = replace(fresh, shape=shape, dtype=_swapped(tensor, dtype))
            if layouts and (index == marked or rng.random() < 0.4):
                fresh = replace(fresh, layout=rng.choice(layouts))
            if values and index == marked:
                fresh = replace(fresh, values=rng.choice(values))
        slots.make(replace(fresh, grad=graded(fresh.dtype, wishes)))
    return slots


def recorded(call: Call, wishes: Wishes) -> Slots | None:
    slots = Slots()
    for tensor in call.tensors:
        fresh = replace(Fresh.of(tensor), grad=graded(tensor.dtype, wishes))
        if fresh.spelled > _SPELLED:
            return None
        slots.make(fresh)
    return slots


# -- helpers --------------------------------------------------------------------------------------------------------


def _wanted_dtype(operator: Operator, wishes: Wishes, rng: random.Random) -> str:
    wanted = [dtype for dtype in wishes.values("dtype") if dtype in operator.dtypes]
    wanted += [
        dtype
        for group, members in (("float8", ("float8_e4m3fn", "float8_e5m2")), ("wide_unsigned", UNSIGNED[1:]))
        if group in wishes.values("dtype")
        for dtype in members
        if dtype in operator.dtypes
    ]
    if wanted:
        return rng.choice(wanted)
    if wishes.values("dtype"):
        return ""
    # Without a wish most programs stay in the recorded dtype; some move, for every dtype is somebody's.
    common = [dtype for dtype in operator.dtypes if not dtype.startswith(("float8", "uint16", "uint32", "uint64"))]
    return rng.choice(common) if common and rng.random() < 0.2 else ""


def _swapped(tensor: Tensor, dtype: str) -> str:
    """The wanted dtype where the slot holds numbers to compute with, not positions or masks."""
    if not dtype or tensor.dtype not in (*FLOATS, *COMPLEX):
        return tensor.dtype
    return dtype


def graded(dtype: str, wishes: Wishes) -> bool:
    return wishes.mode in ("backward", "train") and dtype in (*FLOATS, *COMPLEX)


def _kind(dtype: str) -> str:
    if dtype.startswith(("float", "bfloat")):
        return "float"
    if dtype.startswith("complex"):
        return "complex"
    return "bool" if dtype == "bool" else "int" if dtype in (*SIGNED, *UNSIGNED) else "other"


def _mapped(shape: Shape, sizes: Mapping[int, int]) -> Shape:
    return tuple(sizes.get(size, size) for size in shape)


def _numel(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
