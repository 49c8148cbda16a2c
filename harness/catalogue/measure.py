"""One operator's record, from candidate forms and calls: everything in it has run from source text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from harness.catalogue.record import Ran, empty_like, kind_of, leaves, run, same, seed
from harness.catalogue.select import Chooser, is_empty, reshaped, size, swapped
from harness.catalogue.source import retype

#: Calls kept per operator, and how many are tried for them.
MOST_CALLS = 8
MOST_TRIES = 40

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64",
    "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


class DroppedError(Exception):
    """The operator yields no record; the message says why."""


@dataclass
class Candidate:
    """What is believed of an operator before anything was tried.

    ``primary`` are forms of which the first that replays becomes the reference; ``more`` are added where they give
    the like of it. ``kinds`` holds, per call of ``calls``, a function that runs the genuine thing and gives
    the ``kind_of`` its result (empty: unknown); ``exact`` the same calls with all small tensors' values kept, to
    fall back on.
    """

    name: str
    variant: str
    primary: list[dict[str, Any]]
    more: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    main: str = "float32"
    kinds: list[Any] = field(default_factory=list)
    exact: list[dict[str, Any]] = field(default_factory=list)
    schema_names: list[str] = field(default_factory=list)
    #: The forms belong to calls: form i holds for the calls listed (modules, operators), instead of for all.
    fixed: bool = False


def measure(candidate: Candidate) -> dict[str, Any]:
    """Choose calls, replay them, try forms and dtypes.

    Raises:
        DroppedError: no call replays.
    """
    kept, forms, why = _fixed_calls(candidate) if candidate.fixed else _calls(candidate)
    if not kept:
        raise DroppedError(why or "no sample call can be recorded")
    if candidate.fixed:
        forms = _listed(forms, kept)
    else:
        kept = _with_other_shapes(forms[0], kept)
        kept.sort(key=lambda entry: _oddity(entry[0]))
    calls = [call for call, _ in kept]
    if not candidate.fixed:
        forms = [*forms, *_more_forms(candidate, forms[0], kept)]
    overloads = list(dict.fromkeys(op for _, ran in kept for op in ran.ops))
    return {
        "name": candidate.name,
        "variant": candidate.variant,
        "family": "",
        "aten": _packets(overloads),
        "forms": forms,
        "dtypes": _dtypes(candidate.main, forms[0], calls),
        "autograd": _autograd(forms[0], calls),
        "random": any(ran.drew for _, ran in kept),
        "schema": _schemas(candidate.schema_names, overloads),
        "calls": calls,
        "lowering": lowering(overloads),
    }


def _packets(overloads: list[Any]) -> list[str]:
    """Names without overloads. Autograd detaches results it saves; that is not the operator's doing."""
    packets = list(dict.fromkeys(str(op.overloadpacket) for op in overloads))
    return [name for name in packets if name != "aten.detach"] or packets


_Kept = list[tuple[dict[str, Any], Ran]]


def _calls(candidate: Candidate) -> tuple[_Kept, list[dict[str, Any]], str]:
    kept: _Kept = []
    why, primary = "", list(candidate.primary)
    chooser = Chooser(candidate.calls)
    position = {id(call): index for index, call in enumerate(candidate.calls)}
    for _ in range(MOST_TRIES):
        call = chooser.take()
        if call is None or len(kept) == MOST_CALLS:
            break
        index = position[id(call)]
        try:
            wanted = candidate.kinds[index]() if candidate.kinds else None
        except Exception as refusal:  # a sample that its own operator refuses
            why = why or f"sample: {type(refusal).__name__}: {str(refusal)[:120]}"
            continue
        exact = candidate.exact[index : index + 1]
        ways = [call, *exact, *swapped(call), *(turned for precise in exact for turned in swapped(precise))]
        found, error = _first_that_runs(primary, [*ways, *map(_without_grad, ways)], wanted)
        why = why or error
        if found is not None:
            form, variant, ran = found
            primary = [form]
            chooser.keep(call)
            kept.append((variant, ran))
    return kept, primary, why


def _with_other_shapes(form: dict[str, Any], kept: _Kept) -> _Kept:
    """Elementwise operators come with one large square sample: add shapes, and let a small one stand for it."""
    if len(kept) >= MOST_CALLS // 2:
        return kept
    more: _Kept = []
    for call in reshaped(kept[0][0]):
        found, _ = _first_that_runs([form], [call], None)
        if found is not None:
            more.append((call, found[2]))
    large = len(more) > 1 and size(kept[0][0]) > 100
    return [*(kept[1:] if large else kept), *more][:MOST_CALLS]


def _oddity(call: dict[str, Any]) -> int:
    """Sorts the plain calls to the front: a reader who takes the first one wants data in it."""
    if is_empty(call):
        return 2
    return int(any(not record["shape"] for record in call["args"] if record["t"] == "tensor"))


def _first_that_runs(
    forms: list[dict[str, Any]], calls: list[dict[str, Any]], wanted: Any
) -> tuple[tuple[dict[str, Any], dict[str, Any], Ran] | None, str]:
    """The first (form, call, result) whose result is of the wanted kind, or why there is none."""
    why = ""
    for form in forms:
        for call in calls:
            try:
                ran = run(form, call)
            except Exception as error:
                why = why or f"{form['text']}: {type(error).__name__}: {str(error)[:120]}"
                continue
            got = kind_of(ran.value)
            if wanted is None or got == wanted:
                return (form, call, ran), ""
            why = why or f"{form['text']}: gives {got}, not {wanted}"
    return None, why


def _without_grad(call: dict[str, Any]) -> dict[str, Any]:
    def turn(record: dict[str, Any]) -> dict[str, Any]:
        if record["t"] == "list":
            return {**record, "items": [turn(item) for item in record["items"]]}
        return {**record, "grad": False} if record["t"] == "tensor" else record

    kwargs = {name: turn(record) for name, record in call["kwargs"].items()}
    return {"args": [turn(record) for record in call["args"]], "kwargs": kwargs}


def _fixed_calls(candidate: Candidate) -> tuple[_Kept, list[dict[str, Any]], str]:
    """Forms that name their calls: keep every pair that runs, up to three times the usual number of calls."""
    kept: _Kept = []
    forms: list[dict[str, Any]] = []
    why = ""
    slots: dict[int, int] = {}
    for form in candidate.primary:
        held = []
        for index in form["calls"]:
            call = candidate.calls[index]
            if index not in slots and len(slots) >= MOST_CALLS:
                continue
            found, error = _first_that_runs([form], [call, _without_grad(call)], None)
            why = why or error
            if found is not None:
                if index not in slots:
                    slots[index] = len(kept)
                    kept.append((found[1], found[2]))
                else:
                    ran = kept[slots[index]][1]
                    ran.ops.extend(found[2].ops)
                held.append(slots[index])
        if held:
            forms.append({**form, "calls": held})
    return kept, forms, why


def _listed(forms: list[dict[str, Any]], kept: _Kept) -> list[dict[str, Any]]:
    """``calls`` left out where a form holds for all."""
    return [{key: value for key, value in form.items() if key != "calls" or len(value) < len(kept)} for form in forms]


def _more_forms(candidate: Candidate, reference: dict[str, Any], kept: _Kept) -> list[dict[str, Any]]:
    wanted = [_reference(reference, call) for call, _ in kept]
    forms = []
    for form in candidate.more:
        if (form["form"], form["text"]) == (reference["form"], reference["text"]):
            continue
        held = [index for index, (call, _) in enumerate(kept) if _agrees(form, call, *wanted[index])]
        if held:
            forms.append(dict(form) if len(held) == len(kept) else {**form, "calls": held})
    return forms


#: Seeds the inputs of two forms that are compared.
_SEED = 1


def _reference(form: dict[str, Any], call: dict[str, Any]) -> tuple[Any, bool]:
    """The result without gradients, and whether the same inputs give it again (uninitialised memory does not)."""
    seed(_SEED)
    value = run(form, call, grad=False).value
    seed(_SEED)
    return value, same(value, run(form, call, grad=False).value)


def _agrees(form: dict[str, Any], call: dict[str, Any], wanted: Any, repeatable: bool) -> bool:
    """Whether another form gives the same result from the same inputs."""
    try:
        out = empty_like(wanted) if form["form"] == "out" else None
        seed(_SEED)
        other = run(form, call, grad=False, out=out)
    except Exception:  # whatever it is: this form does not take this call
        return False
    if form["form"] == "inplace" and other.value is not other.first:
        return False
    return same(other.value, wanted) if repeatable else kind_of(other.value) == kind_of(wanted)


def _dtypes(main: str, form: dict[str, Any], calls: list[dict[str, Any]]) -> list[str]:
    useful = [call for call in calls if not is_empty(call)]
    if not useful:  # an operator on empty tensors takes anything
        return [main]
    held = form.get("calls")
    useful = [call for call in useful if held is None or calls.index(call) in held][:4]
    return [dtype for dtype in DTYPES if any(_takes(form, call, main, dtype) for call in useful)]


def _takes(form: dict[str, Any], call: dict[str, Any], main: str, dtype: str) -> bool:
    turned = retype(call, main, dtype)
    if dtype != main and turned == call:
        return False
    try:
        run(form, turned, cast=dtype)
    except Exception:  # refusing a dtype takes any form
        return False
    return True


def _autograd(form: dict[str, Any], calls: list[dict[str, Any]]) -> bool:
    held = form.get("calls")
    for index, call in enumerate(calls):
        if held is not None and index not in held:
            continue
        try:
            value = run(form, call, grad=True).value
        except Exception:  # an operator without autograd may refuse in any way
            continue
        if any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves(value)):
            return True
    return False


def _schemas(names: list[str], overloads: list[Any]) -> list[str]:
    """Up to two functional schemas: of the operator's own name, else of the first overload that it dispatched."""
    for name in names:
        found = [str(schema) for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")]
        functional = [text for text in found if "!" not in text and "Dimname" not in text]
        if functional:
            return functional[:2]
    return [str(op._schema) for op in overloads[:1]]


#: Views and copies around the real work; they do not decide how an operator is lowered.
_AROUND = {
    "aten.detach.default",
    "aten.alias.default",
    "aten.clone.default",
    "aten.view.default",
    "aten.empty.memory_format",
}


def lowering(overloads: list[Any]) -> str:
    """How Inductor takes the overloads: ``fallback`` if it calls eager for one of them on purpose, ``none`` if it
    has no rule for one, ``decomposed`` if one is rewritten first, else ``lowered``."""
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.lowering import fallbacks, lowerings

    decompositions = select_decomp_table()
    essential = [op for op in overloads if str(op) not in _AROUND]
    states = {_rule(op, decompositions, fallbacks, lowerings) for op in essential}
    return next((state for state in ("fallback", "none", "decomposed") if state in states), "lowered")


#: A Python kernel under one of these keys rewrites the operator while it is traced.
_AT_TRACING = frozenset({torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd})


def _rule(op: Any, decompositions: Any, fallbacks: Any, lowerings: Any) -> str:
    if op in decompositions or not _AT_TRACING.isdisjoint(op.py_kernels):
        return "decomposed"
    if op in fallbacks or op.overloadpacket in fallbacks:
        return "fallback"
    if op in lowerings or op.overloadpacket in lowerings:
        return "lowered"
    functional = getattr(torch.ops.aten, str(op.overloadpacket).removeprefix("aten.").rstrip("_"), None)
    if str(op.overloadpacket).endswith("_") and functional is not None:  # tracing makes it functional first
        overloads = [getattr(functional, name) for name in functional.overloads()]
        if any(other in decompositions for other in overloads):
            return "decomposed"
        if functional in fallbacks or any(other in fallbacks for other in overloads):
            return "fallback"
        if functional in lowerings or any(other in lowerings for other in overloads):
            return "lowered"
    return "none"


def main_dtype(supported: set[torch.dtype]) -> torch.dtype | None:
    """The dtype to take samples in: the most usual one supported."""
    order = [getattr(torch, name) for name in ("float32", "int64", "bool", "complex64", *DTYPES)]
    return next((dtype for dtype in order if dtype in supported), None)
