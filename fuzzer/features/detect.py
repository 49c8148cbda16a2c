"""Realised features: what a program really had, from its text and from what ran."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fuzzer.features.detect_run import read_run
from fuzzer.features.detect_text import Words, read_text
from fuzzer.features.space import FeatureSpace
from fuzzer.observation import Observation
from fuzzer.program import Program


@lru_cache(maxsize=1)
def default_space() -> FeatureSpace:
    """The space that ships with Eddy, read once."""
    return FeatureSpace.load()


def detect(
    program: Program,
    observation: Observation | None,
    family_of: Callable[[str], str],
    space: FeatureSpace | None = None,
) -> frozenset[str]:
    """Ids of the features that the program realised.

    Args:
        observation: facts of its run. None, or one without operators (eager never got that far): dtypes and casts are
            then taken from the text, and nothing is said of shapes, layouts, values and dataflow.
        family_of: operator name as dispatched ("aten.add.Tensor") → family; "" for an unknown one.
        space: the feature space; by default the one that ships.
    """
    space = space or default_space()
    words = read_text(program)
    if observation is not None:
        words.update(read_run(observation, family_of, space.group_of))
    else:
        words["topology"] = set()
        words["mechanism"] = set()
    if observation is None or not observation.ops:
        words["dtype"] = set(words["text_dtype"])
    _combine(words)
    lookup = space.by_detector
    return frozenset(
        feature for group, found in words.items() for word in found for feature in lookup.get((group, word), ())
    )


def _combine(words: Words) -> None:
    """Words that need both sources: a mutation written in the text is in-place even where dispatch shows a copy."""
    words["mechanism"] |= words["text_mechanism"]
    if words["mutation"] & {"setitem", "masked_setitem", "inplace_method", "fill_scalar"}:
        words["topology"].add("in_place")
    if "several" in words["results"]:
        words["topology"].add("multi_result")
    if "view_mutation" in words["topology"] and "graph_break" in words["python"]:
        words["mechanism"].add("view_mutation_break")
