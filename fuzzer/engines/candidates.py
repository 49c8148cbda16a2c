"""Proposals of one operator for a draft, the boldest first and the recorded call, which always held, last."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuzzer.engines.draft import Candidate, Draft, Facts
from fuzzer.engines.tensors import COMPLEX, FLOATS, SIGNED, UNSIGNED, Fresh, Shape, reshaped
from fuzzer.engines.wishes import BOUNDARY_TEXT, Wishes
from fuzzer.knowledge.operators import Call, Form, Operator, Operators, Tensor

#: How often each form is written, before the probe has its say.
_FORM_WEIGHTS: Mapping[str, float] = {
    "function": 1.0, "method": 0.9, "operator": 1.5, "module": 0.25, "inplace": 0.25, "statement": 0.25, "out": 0.05,
}  # fmt: skip
_EFFECTS = ("inplace", "statement")
_REFUSALS = 6  # refused proposals without one that held, after which an operator gets its recorded calls only


class Proposer:
    """Makes candidates; remembers per operator how its proposals fared."""

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self._fared: dict[str, list[int]] = {}  # operator → [held, refused] of connected proposals

    def learn(self, candidates: Sequence[Candidate], chosen: int) -> None:
        """Candidates before the chosen one were refused (all of them when it is -1)."""
        if candidates:
            fared = self._fared.setdefault(candidates[0].operator, [0, 0])
            fared[0] += 0 <= chosen < len(candidates) - 1
            fared[1] += (len(candidates) if chosen < 0 else chosen) > 0

    def propose(self, operator: Operator, draft: Draft, wishes: Wishes, rng: random.Random) -> list[Candidate]:
        """Up to seven candidates for one statement."""
        call, form = _call_and_form(operator, wishes, draft, rng)
        held, refused = self._fared.get(operator.key, (0, 0))
        bold = held > 0 or refused < _REFUSALS
        makers = []
        live = draft.tensors()
        if live and call.tensors:
            if bold:
                makers += [lambda: _connected(call, draft, wishes, rng)] * 2
            makers += [lambda: _adapted(call, draft, wishes, rng)]
        makers += [lambda: _fresh(operator, call, wishes, rng)] * (1 if live else 2)
        makers += [lambda: _recorded(call, wishes)]
        candidates: list[Candidate] = []
        for make in makers:
            plan = make()
            candidate = _render(operator, call, form, plan, draft, rng) if plan is not None else None
            if candidate is not None and all(candidate.text() != other.text() for other in candidates):
                candidates.append(candidate)
        return candidates


class _Slots:
    """For each tensor of a call: a live name (with an adapter expression, or as it is) or a fresh tensor."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str] | Fresh] = []  # (name, adapter with {} for the name) or Fresh

    def use(self, name: str, adapter: str = "{}") -> None:
        self.items.append((name, adapter))

    def make(self, fresh: Fresh) -> None:
        self.items.append(fresh)


def _call_and_form(operator: Operator, wishes: Wishes, draft: Draft, rng: random.Random) -> tuple[Call, Form]:
    forms = list(operator.forms)
    weights = [_weight(form, wishes, draft) for form in forms]
    form = rng.choices(forms, weights)[0]
    calls = operator.calls_of(form)
    for boundary in wishes.calls:
        carrying = [call for call in calls if BOUNDARY_TEXT[boundary].search(_arguments_text(call))]
        if carrying:
            return rng.choice(carrying), form
    # Plain calls come first in the record; the square favours them without ever leaving the others out.
    return calls[int(len(calls) * rng.random() ** 1.5)], form


def _weight(form: Form, wishes: Wishes, draft: Draft) -> float:
    weight = _FORM_WEIGHTS.get(form.kind, 0.1)
    if form.kind in _EFFECTS and wishes.values("topology") and wishes.wants("topology=in_place"):
        return weight * 8
    if form.kind == "module" and wishes.mode in ("train", "eval"):
        return weight * 30
    return weight


def _arguments_text(call: Call) -> str:
    bound = call.bind()
    return ", ".join([*bound.args, *(f"{name}={value}" for name, value in bound.kwargs.items())])


# -- ways to fill the slots -------------------------------------------------------------------------------------------


def _connected(call: Call, draft: Draft, wishes: Wishes, rng: random.Random) -> _Slots | None:
    """A live tensor in one slot, the other slots shaped after it."""
    usable = [index for index, tensor in enumerate(call.tensors) if tensor.data is None]
    live = _preferred(draft, rng)
    if not usable or not live:
        return None
    main = rng.choice(usable) if rng.random() < 0.3 else usable[0]
    recorded = call.tensors[main]
    same_kind = [item for item in live if _kind(item[1]["dtype"]) == _kind(recorded.dtype)]
    same_rank = [item for item in same_kind if len(item[1]["shape"]) == len(recorded.shape)]
    name, facts = (same_rank or same_kind or live)[0]
    slots = _Slots()
    sizes = dict(zip(recorded.shape, facts["shape"])) if len(facts["shape"]) == len(recorded.shape) else {}
    for index, tensor in enumerate(call.tensors):
        if index == main:
            slots.use(name)
            continue
        shape = tuple(facts["shape"]) if tensor.shape == recorded.shape else _mapped(tensor.shape, sizes)
        dtype = facts["dtype"] if tensor.dtype == recorded.dtype and tensor.data is None else tensor.dtype
        twin = [other for other, known in live if tuple(known["shape"]) == shape and known["dtype"] == dtype]
        if twin and tensor.data is None and rng.random() < 0.6:
            slots.use(rng.choice(twin[:4]))
        elif tensor.data is not None:
            slots.make(Fresh.of(tensor))
        else:
            slots.make(replace(Fresh.of(tensor), shape=shape, dtype=dtype, grad=_graded(dtype, wishes)))
    return slots


def _adapted(call: Call, draft: Draft, wishes: Wishes, rng: random.Random) -> _Slots | None:
    """A live tensor brought to the recorded shape and kind of dtype by a view and a cast."""
    usable = [index for index, tensor in enumerate(call.tensors) if tensor.data is None]
    if not usable:
        return None
    main = rng.choice(usable)
    recorded = call.tensors[main]
    for name, facts in _preferred(draft, rng):
        adapter = _adapter(tuple(facts["shape"]), recorded.shape, rng)
        if adapter is None:
            continue
        if _kind(facts["dtype"]) != _kind(recorded.dtype):
            if _kind(recorded.dtype) == "int" or _kind(facts["dtype"]) == "complex":
                continue  # indices and lengths made from arbitrary floats would be refused, or undefined
            adapter += f".to(torch.{recorded.dtype})"
        slots = _Slots()
        for index, tensor in enumerate(call.tensors):
            if index == main:
                slots.use(name, adapter)
            else:
                slots.make(replace(Fresh.of(tensor), grad=_graded(tensor.dtype, wishes)))
        return slots
    return None


def _adapter(have: Shape, want: Shape, rng: random.Random) -> str | None:
    """A view expression from one shape to another, ``{}`` standing for the tensor; None where there is none."""
    if have == want:
        return "{}"
    if _numel(have) == _numel(want):
        return "{}.reshape(" + ", ".join(map(str, want)) + ")" if want else "{}.reshape(())"
    if len(have) == len(want) and all(h >= w for h, w in zip(have, want)):
        cuts = [f":{w}" if h != w else ":" for h, w in zip(have, want)]
        return "{}[" + ", ".join(cuts) + "]"
    if len(have) <= len(want) and all(h in (1, w) for h, w in zip(reversed(have), reversed(want))):
        return "{}.expand(" + ", ".join(map(str, want)) + ")"
    if _numel(have) > _numel(want) > 0:
        flat = "{}.flatten()[:" + str(_numel(want)) + "]"
        return flat if len(want) == 1 else flat + ".reshape(" + ", ".join(map(str, want)) + ")" if want else None
    return None


def _fresh(operator: Operator, call: Call, wishes: Wishes, rng: random.Random) -> _Slots | None:
    """All slots fresh, with the dtype, shape, layout and values that the features ask for."""
    tensors = list(call.tensors)
    if not tensors:
        return _Slots()
    shapes = [tensor.shape for tensor in tensors]
    for wish in wishes.values("shape"):
        shapes = reshaped(shapes, wish, rng) or shapes
    dtype = _wanted_dtype(operator, wishes, rng)
    layouts = wishes.values("layout")
    values = wishes.values("values")
    marked = rng.randrange(len(tensors))
    slots = _Slots()
    for index, (tensor, shape) in enumerate(zip(tensors, shapes)):
        fresh = Fresh.of(tensor)
        if tensor.data is not None and shape != tensor.shape:
            return None
        if tensor.data is None:
            fresh = replace(fresh, shape=shape, dtype=_swapped(tensor, dtype))
            if layouts and (index == marked or rng.random() < 0.4):
                fresh = replace(fresh, layout=rng.choice(layouts))
            if values and index == marked:
                fresh = replace(fresh, values=rng.choice(values))
        slots.make(replace(fresh, grad=_graded(fresh.dtype, wishes)))
    return slots


def _recorded(call: Call, wishes: Wishes) -> _Slots:
    slots = _Slots()
    for tensor in call.tensors:
        slots.make(replace(Fresh.of(tensor), grad=_graded(tensor.dtype, wishes)))
    return slots


# -- helpers ----------------------------------------------------------------------------------------------------------


def _preferred(draft: Draft, rng: random.Random) -> list[tuple[str, Facts]]:
    """Live tensors, those that nothing reads yet and the latest first, with some disorder."""
    live = draft.tensors()
    ranked = sorted(
        enumerate(live), key=lambda item: (item[1][0] in draft.read, -item[0] + 3 * rng.random()), reverse=False
    )
    return [item for _, item in ranked]


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
    return rng.choice(operator.dtypes) if operator.dtypes and rng.random() < 0.25 else ""


def _swapped(tensor: Tensor, dtype: str) -> str:
    """The wanted dtype where the slot holds numbers to compute with, not positions or masks."""
    if not dtype or tensor.dtype not in (*FLOATS, *COMPLEX):
        return tensor.dtype
    return dtype


def _graded(dtype: str, wishes: Wishes) -> bool:
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


def _render(
    operator: Operator, call: Call, form: Form, slots: _Slots, draft: Draft, rng: random.Random
) -> Candidate | None:
    """Names for the fresh tensors, text for the statement; None where the form has no text for such arguments."""
    module = form.kind == "module" and draft.mode in ("train", "eval")
    fresh = [item for item in slots.items if isinstance(item, Fresh)]
    names = draft.fresh_names(len(fresh) + 1 + len(slots.items) + module)
    inputs: list[tuple[str, str]] = []
    lines: list[str] = []
    bound_names: list[str] = []
    reads: list[str] = []
    filled: list[str] = []
    take = iter(names)
    for position, item in enumerate(slots.items):
        if isinstance(item, Fresh):
            name = next(take)
            inputs.append((name, item.text(rng)))
            filled.append(name)
            continue
        name, adapter = item
        reads.append(name)
        if adapter == "{}":
            filled.append(name)
        elif position == 0 and form.kind in ("method", "inplace", "statement"):
            bound = next(take)
            bound_names.append(bound)
            lines.append(f"{bound} = {adapter.format(name)}")
            filled.append(bound)
        else:
            filled.append(adapter.format(name))
    args, kwargs = _filled(call, filled)
    module_name = ""
    if module:
        module_name = next(take)
        inputs.append((module_name, form.text))
    target = next(take)
    try:
        if form.kind == "out":
            return None  # needs a tensor of the result's own shape: left to the mutation that adds out=
        text = form.render(args, kwargs, module=module_name)
    except ValueError:
        return None
    if '"' not in text:
        text = text.replace("'", '"')
    effect = form.kind in _EFFECTS
    if form.kind == "statement" or (form.kind == "inplace" and rng.random() < 0.5):
        lines.append(text)
        target = ""
    else:
        lines.append(f"{target} = {text}")
    written = filled[0] if effect and filled else ""
    binds = (*(name for name, _ in inputs), *bound_names, *((target,) if target else ()))
    return Candidate(inputs, lines, target, tuple(reads), binds, operator.key, operator.random, written)


def _filled(call: Call, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The call's arguments as text, its tensors replaced by ``names`` in order of appearance."""
    bound = call.bind(prefix="\0")
    texts = {f"\0{index}": name for index, name in enumerate(names)}

    def put(text: str) -> str:
        for marker in sorted(texts, key=len, reverse=True):
            text = text.replace(marker, texts[marker])
        return text

    return [put(text) for text in bound.args], {name: put(text) for name, text in bound.kwargs.items()}
