"""Inputs of a second call: the same tensors with one size changed everywhere, or with other values."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

Inputs = list[tuple[str, str]]

_MOST = 10


def second_inputs(inputs: Sequence[tuple[str, str]], live: Mapping[str, Any], rng: random.Random) -> list[Inputs]:
    """Inputs to try, the boldest first; the last differ in nothing but the seed.

    Sizes that are equal stay equal, for equal sizes usually mean the same thing; numbers elsewhere in the
    expressions (bounds of positions) follow too.
    """
    sizes = {size for name, _ in inputs for size in live.get(name, {}).get("shape", ()) if size > 1}
    proposals: list[Inputs] = []
    for old in rng.sample(sorted(sizes), len(sizes)):
        others = [size for size in (old + 1, old + 3, 2 * old, old - 1) if size > 1]
        for new in rng.sample(others, min(2, len(others))):
            changed = [(name, _resized(text, old, new)) for name, text in inputs]
            if changed != list(inputs):
                proposals.append(changed)
    return [*proposals[:_MOST], list(inputs)]


def _resized(text: str, old: int, new: int) -> str:
    if text.startswith("torch.nn."):
        return text  # a module's sizes belong to its parameters, which a second call shares
    return re.sub(rf"(?<![\w.-]){old}(?![\w.])", str(new), text)
