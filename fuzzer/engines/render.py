"""A catalogue call as a candidate: names for its tensors, text for its statement, nothing that a person would omit."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.tensors import Fresh
from fuzzer.knowledge.operators import Call, Form, Operator

EFFECTS = ("inplace", "statement")
#: Keyword arguments that say what holds anyway.
_IMPLIED: Mapping[str, frozenset[str]] = {
    "device": frozenset({"'cpu'", '"cpu"', "torch.device('cpu')", 'torch.device("cpu")', "None"}),
    "requires_grad": frozenset({"False"}),
    "pin_memory": frozenset({"False", "None"}),
    "layout": frozenset({"torch.strided", "None"}),
    "keepdim": frozenset({"False"}),
    "groups": frozenset({"1"}),
    **dict.fromkeys(("out", "mask", "weight", "bias", "generator", "dtype", "per_sample_weights"), frozenset({"None"})),
    "memory_format": frozenset({"torch.preserve_format"}),
}
#: Modules that hold no parameters read as well where they are used as among the inputs.
_STATELESS = re.compile(
    r"torch\.nn\.(\w*(Pool|Pad|Loss|Unpool|shrink|Flatten|Fold|Shuffle|Similarity|Distance)\w*|Re?LU6?|[CSG]?ELU|SELU|"
    r"Sigmoid|Tanh|Soft\w+|Hard\w+|LogSigmoid|LogSoftmax|Mish|SiLU|Identity|Threshold|GLU|LeakyReLU|Upsample\w*)\("
)
_REAL_NUMBERS = re.compile(r"\d+\.\d{4,}(?!\d*e)")
_SINGLE = re.compile(r"'([^'\"\\]*)'")
_WHOLE = re.compile(r"(?<![\w.])\d+(?![\w.])")


@dataclass
class Slots:
    """For each tensor of a call: a live name with an adapter (an expression, ``{}`` for the name), or a fresh tensor.

    ``sizes``: sizes of the recorded call → those of this one, for sizes that the arguments spell out.
    """

    items: list[tuple[str, str] | Fresh | tuple[Fresh, str, str]] = field(default_factory=list)
    sizes: Mapping[int, int] = field(default_factory=dict)

    def use(self, name: str, adapter: str = "{}") -> None:
        self.items.append((name, adapter))

    def make(self, fresh: Fresh) -> None:
        self.items.append(fresh)

    def join(self, fresh: Fresh, name: str, number: str) -> None:
        """A fresh tensor times or plus a number made of a live one."""
        self.items.append((fresh, name, number))


def render(
    operator: Operator, call: Call, form: Form, slots: Slots, draft: Draft, rng: random.Random
) -> Candidate | None:
    """The candidate; None where the form has no text for such arguments."""
    if form.kind == "out":
        return None  # needs a tensor of the result's own shape: left to the idioms that write out=
    inputs: list[tuple[str, str]] = []
    lines: list[str] = []
    bound: list[str] = []
    reads: list[str] = []
    filled: list[str] = []
    as_method = form.kind in ("method", *EFFECTS) or form.text.startswith("torch.Tensor.")
    for position, item in enumerate(slots.items):
        if isinstance(item, Fresh):
            (name,) = draft.fresh_names(1)
            inputs.append((name, item.text(rng)))
            filled.append(name)
            continue
        if len(item) == 3:
            made, name, number = item
            source, joined = draft.fresh_names(2)
            inputs.append((source, made.text(rng)))
            bound.append(joined)
            reads.append(name)
            lines.append(f"{joined} = {source} {rng.choice('*+')} {number.format(name)}")
            filled.append(joined)
            continue
        name, adapter = item
        reads.append(name)
        if adapter == "{}":
            filled.append(name)
        elif (position == 0 and as_method) or adapter.count("(") > 1:
            (short,) = draft.fresh_names(1)
            bound.append(short)
            lines.append(f"{short} = {adapter.format(name)}")
            filled.append(short)
        else:
            filled.append(adapter.format(name))
    module = ""
    if form.kind == "module" and (draft.mode in ("train", "eval") or not _STATELESS.match(form.text)):
        (module,) = draft.fresh_names(1)
        inputs.append((module, tidied(form.text)))
    text = _text(call, form, filled, slots.sizes, module)
    if text is None:
        return None
    effect = form.kind in EFFECTS
    (target,) = draft.fresh_names(1)
    if form.kind == "statement" or (form.kind == "inplace" and rng.random() < 0.5):
        lines.append(text)
        target = ""
    else:
        lines.append(f"{target} = {text}")
    binds = (*(name for name, _ in inputs), *bound, *((target,) if target else ()))
    return Candidate(
        inputs,
        lines,
        target,
        tuple(reads),
        binds,
        operator.key,
        operator.random,
        written=filled[0] if effect and filled else "",
        connected=bool(reads),
    )


def _text(call: Call, form: Form, names: Sequence[str], sizes: Mapping[int, int], module: str) -> str | None:
    args, kwargs = _filled(call, names, sizes)
    if form.text.startswith("torch.Tensor.") and form.kind == "function":
        form = Form("method", form.text.removeprefix("torch.Tensor."))
    try:
        return tidied(form.render(args, kwargs, module=module))
    except ValueError:
        return None


def tidied(text: str) -> str:
    """Double quotes; no more digits than say something."""
    text = _SINGLE.sub(r'"\1"', text)
    text = _REAL_NUMBERS.sub(lambda number: f"{float(number[0]):.4g}", text)
    return re.sub(r"(?<=\d)e-0(?=\d)", "e-", text)


def _filled(call: Call, names: Sequence[str], sizes: Mapping[int, int]) -> tuple[list[str], dict[str, str]]:
    """The call's arguments as text, its tensors replaced by ``names`` in order of appearance."""
    bound = call.bind(prefix="\0")
    texts = {f"\0{index}": name for index, name in enumerate(names)}

    def put(text: str) -> str:
        if sizes and "\0" not in text:
            text = _WHOLE.sub(lambda number: str(sizes.get(int(number[0]), int(number[0]))), text)
        for marker in sorted(texts, key=len, reverse=True):
            text = text.replace(marker, texts[marker])
        return text

    kwargs = {name: value for name, value in bound.kwargs.items() if value not in _IMPLIED.get(name, ())}
    return [put(text) for text in bound.args], {name: put(text) for name, text in kwargs.items()}
