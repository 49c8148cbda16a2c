"""Proposals for a draft, the boldest first and the recorded call, which always held, last."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fuzzer.engines import fillings
from fuzzer.engines.boundary import Limit, limits
from fuzzer.engines.draft import Candidate, Draft, Facts
from fuzzer.engines.idioms import Idiom, Idioms, default_idioms, write
from fuzzer.engines.render import EFFECTS, Slots, render
from fuzzer.engines.tensors import Fresh
from fuzzer.engines.wishes import BOUNDARY_TEXT, Wishes
from fuzzer.knowledge.operators import Call, Form, Operator, Operators
from fuzzer.knowledge.patterns import Entry

#: How often each form is written, before the probe has its say.
_FORM_WEIGHTS: Mapping[str, float] = {
    "function": 1.0, "method": 0.9, "operator": 1.5, "module": 0.25, "inplace": 0.25, "statement": 0.25, "out": 0.0,
}  # fmt: skip
_CALLED = re.compile(r"\.(\w+)\(")
_REFUSALS = 6  # refused proposals without one that held, after which an operator gets its recorded calls only
_MOST_IDIOMS = 8
_ADAPTED = 0.7  # share of idioms tried on an adapted tensor where none fits as it is
#: Results without defined contents: every difference would be dismissed.
_UNINITIALISED = re.compile(r"\b(new_)?empty|resize|\bset_\b")
#: Graph breaks or shapes that depend on data: refused by a program that must be one graph.
_DATA_DEPENDENT = re.compile(
    r"\bitem\b|nonzero|masked_select|unique|argwhere|\bequal\b|allclose|tolist|histogram|bincount|repeat_interleave"
)


class Proposer:
    """Makes candidates; remembers per operator how its proposals fared."""

    def __init__(self, operators: Operators, idioms: Idioms | None = None) -> None:
        self.operators = operators
        self.idioms = idioms or default_idioms()
        self._fared: dict[str, list[int]] = {}  # operator → [held, refused] of connected proposals
        self._carrying: dict[str, list[tuple[Operator, Call]]] = {}

    def learn(self, candidates: Sequence[Candidate], chosen: int) -> None:
        """Candidates before the chosen one were refused (all of them when it is -1)."""
        held = candidates[chosen].operator if chosen >= 0 else ""
        for operator in dict.fromkeys(candidate.operator for candidate in candidates if candidate.operator):
            own = [(index, c) for index, c in enumerate(candidates) if c.operator == operator and c.connected]
            tried = [index for index, _ in own if chosen < 0 or index <= chosen]
            if tried:
                fared = self._fared.setdefault(operator, [0, 0])
                fared[0] += operator == held and candidates[chosen].connected
                fared[1] += operator != held or not candidates[chosen].connected

    def allowed(self, operator: Operator, wishes: Wishes) -> bool:
        """Is the operator's result defined, and fit for the way in which the program runs?"""
        forms = " ".join([operator.name, *(form.text for form in operator.forms)])
        if _UNINITIALISED.search(forms) or operator.family == "uninitialised":
            return False
        return not (wishes.wants("config=fullgraph") and _DATA_DEPENDENT.search(forms))

    # -- operators ----------------------------------------------------------------------------------------------

    def propose(
        self,
        operator: Operator,
        draft: Draft,
        wishes: Wishes,
        rng: random.Random,
        *,
        main: str = "",
        direct: bool = False,
        call: Call | None = None,
        limit: Limit | None = None,
        modules: bool = False,
        pure: bool = False,
    ) -> list[Candidate]:
        """Up to eight candidates for one statement.

        Args:
            main: a live tensor that it must read; then nothing is proposed that does not.
            direct: without a view or a cast between them.
            call: the recorded call to start from; by default any.
            limit: one of that call's limits, to be written in its place.
            modules: only the operator's module forms.
            pure: none of its forms that write in place.
        """
        chosen = _call_and_form(operator, wishes, draft, rng, call, modules, pure)
        if chosen is None:
            return []
        call, form = chosen if limit is None else (limit.call, chosen[1])
        held, refused = self._fared.get(operator.key, (0, 0))
        bold = held > 0 or refused < _REFUSALS or bool(main)
        makers: list[Callable[[], Slots | None]] = []
        ranked = [(main, draft.live[main])] if main in draft.live else _preferred(draft, rng)
        if ranked and call.tensors:
            # A view taken by strides must stay within what it is taken of: only the recorded tensor is known to do.
            if bold and "as_strided" not in operator.name:
                makers += [lambda: fillings.connected(operator, call, ranked, wishes, rng)] * 2
            if not direct and "as_strided" not in operator.name:
                makers += [lambda: fillings.adapted(operator, call, ranked, wishes, rng)]
                makers += [lambda: fillings.joined(call, ranked, wishes, rng)]
        if not main:
            makers += [lambda: fillings.all_fresh(operator, call, wishes, rng)] * (1 if ranked else 2)
            makers += [lambda: fillings.recorded(call, wishes)]
        candidates: list[Candidate] = []
        for make in makers:
            slots = make()
            candidate = render(operator, call, form, slots, draft, rng) if slots is not None else None
            if candidate is not None:
                candidates.append(candidate)
        return candidates

    def carrying(self, boundary: str) -> list[tuple[Operator, Call]]:
        """Recorded calls with a boundary feature among their arguments."""
        if boundary not in self._carrying:
            pattern = BOUNDARY_TEXT[boundary]
            self._carrying[boundary] = [
                (operator, call)
                for operator in self.operators
                for call in operator.calls
                if pattern.search(_arguments_text(call))
            ]
        return self._carrying[boundary]

    def at_limit(
        self,
        operator: Operator,
        draft: Draft,
        wishes: Wishes,
        rng: random.Random,
        pure: bool = False,
    ) -> list[Candidate]:
        """Candidates with one argument of a recorded call at a limit (see ``boundary``); [] where it has none."""
        call = rng.choice(operator.calls)
        found = limits(operator, call)
        if not found:
            return []
        # Kinds first: a call has many positions, and few flags.
        kind = rng.choice(sorted({limit.about for limit in found}))
        limit = rng.choice([limit for limit in found if limit.about == kind])
        return self.propose(operator, draft, wishes, rng, call=call, limit=limit, pure=pure)

    @functools.cached_property
    def orphans(self) -> tuple[Entry, ...]:
        """Subgraphs with an operator of a family that no operator of the catalogue stands for."""
        known = {*self.operators.choosable(), "other"}
        return tuple(
            entry
            for entry in self.idioms.subgraphs
            if any(
                self.operators.family_of_aten(f"aten.{name}") not in known
                for name in _CALLED.findall(entry.template.code)
            )
        )

    def by_entry(self, entries: Sequence[Entry], draft: Draft, wishes: Wishes, rng: random.Random) -> list[Candidate]:
        """One entry of knowledge as it stands, on a live tensor where one fits; META remembers its id."""
        if not entries:
            return []
        entry = rng.choice(entries)
        mode = entry.template.meta.get("mode", wishes.mode)
        if entry.template.returns == "dict" or mode != wishes.mode:
            return []
        found = [self._idiom(entry.template, draft, wishes, rng, "", way) for way in ("live", "adapted", "fresh")]
        return [replace(c, meta={**c.meta, "knowledge": [entry.id]}) for c in found if c is not None]

    # -- idioms -------------------------------------------------------------------------------------------------

    def by_idiom(
        self, key: str, draft: Draft, wishes: Wishes, rng: random.Random, *, main: str = "", fresh: bool = False
    ) -> list[Candidate]:
        """Candidates from the idioms of a feature or of ``group=NAME``, in random order; idioms without code left out.

        ``main``: the tensor to apply them to; by default any live one that fits, else one adapted, else a fresh one.
        ``fresh``: a fresh one at once.
        """
        idioms = [idiom for idiom in self.idioms.of(key) if idiom.code]
        rng.shuffle(idioms)
        candidates = []
        # Every idiom on what is there before any on a tensor of its own: programs should hang together.
        ways = ("live",) if main else ("live", "adapted", "fresh") if not fresh else ("fresh",)
        for way in ways:
            for idiom in idioms:
                candidate = self._idiom(idiom, draft, wishes, rng, main, way)
                if candidate is not None and (way != "adapted" or rng.random() < _ADAPTED):
                    candidates.append(candidate)
        return candidates[:_MOST_IDIOMS]

    def _idiom(
        self, idiom: Idiom, draft: Draft, wishes: Wishes, rng: random.Random, main: str, way: str
    ) -> Candidate | None:
        """``way``: on a ``live`` tensor as it is, on one ``adapted`` by a view or cast, or on a ``fresh`` one."""
        inputs: list[tuple[str, str]] = []
        reads: list[str] = []
        lines: list[str] = []
        bound: list[str] = []
        given = {name for name, _ in draft.inputs}
        live = [(main, draft.live[main])] if main else _preferred(draft, rng)
        if way == "fresh":
            dtype, shape = idiom.subject(rng)
            dtype = next((d for d in wishes.values("dtype") if d in idiom.dtypes), dtype)
            (x,) = draft.fresh_names(1)
            inputs.append((x, Fresh(shape, dtype, grad=fillings.graded(dtype, wishes)).text(rng)))
        elif way == "live":
            fitting = [(n, f) for n, f in live if idiom.fits(f["dtype"], f["shape"], n not in given)]
            if not fitting:
                return None
            x, facts = fitting[0]
            dtype, shape = facts["dtype"], tuple(facts["shape"])
            reads.append(x)
        else:
            adapters = [(n, idiom.adapter(f["dtype"], f["shape"])) for n, f in live]
            name, adapter = next(((n, a) for n, a in adapters if a and a[0] != "{}"), ("", None))
            if adapter is None:
                return None
            text, dtype, shape = adapter
            (x,) = draft.fresh_names(1)
            lines.append(f"{x} = {text.format(name)}")
            bound.append(x)
            reads.append(name)
        y = ""
        if idiom.needs_twin:
            twins = [n for n, f in draft.tensors() if n != x and f["dtype"] == dtype and tuple(f["shape"]) == shape]
            if twins and way == "live":
                y = rng.choice(twins)
                reads.append(y)
            else:
                (y,) = draft.fresh_names(1)
                inputs.append((y, Fresh(shape, dtype, grad=fillings.graded(dtype, wishes)).text(rng)))
        piece = write(idiom, x, dtype, shape, rng, lambda: draft.fresh_names(1)[0], y)
        binds = (*(name for name, _ in (*inputs, *piece.inputs)), *bound, *piece.binds)
        return Candidate(
            [*inputs, *piece.inputs],
            [*lines, "\n".join(piece.lines)],
            piece.results[0] if piece.results else "",
            tuple(reads),
            binds,
            "",
            written=piece.written,
            results=piece.results,
            helper=piece.helper,
            meta={**idiom.meta, **({"knowledge": [idiom.entry]} if idiom.entry else {})},
            scoped=idiom.scoped,
            kept=idiom.returns == "kept",
            connected=bool(reads),
        )


def _call_and_form(
    operator: Operator,
    wishes: Wishes,
    draft: Draft,
    rng: random.Random,
    call: Call | None,
    modules: bool,
    pure: bool,
) -> tuple[Call, Form] | None:
    forms = [form for form in operator.forms if form.kind == "module" or not modules]
    forms = [form for form in forms if not pure or not (form.kind in EFFECTS or form.text.endswith("_"))]
    if call is not None:
        wanted = call
        forms = [form for form in forms if any(wanted is other for other in operator.calls_of(form))]
    weights = [_weight(form, wishes) for form in forms]
    if not forms or not sum(weights):
        return None
    form = rng.choices(forms, weights)[0]
    if call is not None:
        return call, form
    calls = operator.calls_of(form)
    # Plain calls come first in the record; the power favours them without ever leaving the others out. Among three,
    # one is taken whose tensors are of a rank that a live tensor has: it is likelier to fit.
    options = [calls[int(len(calls) * rng.random() ** 1.5)] for _ in range(3)]
    ranks = {len(facts["shape"]) for name, facts in draft.made() if name not in draft.read}
    fitting = [option for option in options if option.tensors and len(option.tensors[0].shape) in ranks]
    return (fitting or options)[0], form


def _weight(form: Form, wishes: Wishes) -> float:
    weight = _FORM_WEIGHTS.get(form.kind, 0.1)
    if form.text.startswith("torch.ops."):
        weight *= 0.3  # nobody types these where there is another way
    if form.kind in EFFECTS and wishes.wants("topology=in_place"):
        return weight * 8
    return weight


def _arguments_text(call: Call) -> str:
    bound = call.bind()
    return ", ".join([*bound.args, *(f"{name}={value}" for name, value in bound.kwargs.items())])


def _preferred(draft: Draft, rng: random.Random) -> list[tuple[str, Facts]]:
    """Live tensors: results before inputs, what nothing reads yet and the latest first, with some disorder."""
    made = dict(draft.made())
    live = draft.tensors()
    inputs_first = rng.random() < 0.12

    def rank(item: tuple[int, tuple[str, Facts]]) -> tuple[bool, bool, float]:
        place, (name, _) = item
        return ((name not in made) != inputs_first, name in draft.read, -place + 3 * rng.random())

    return [item for _, item in sorted(enumerate(live), key=rank)]
