"""Realised features: what a program really had, from its text and from what ran."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
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
        observation: facts of its run. None, or one without operators (eager never got that far): dtypes, casts and
            families of operators are then taken from the text, and nothing is said of shapes, layouts and dataflow.
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
        words["dtype"] = words["text_dtype"] | _implied_dtypes(program)
        names = _called(program)
        words["family"] = {family_of(f"aten.{name}") for name in names | {name.rstrip("_") for name in names}}
    _combine(words)
    lookup = space.by_detector
    return frozenset(
        feature for group, found in words.items() for word in found for feature in lookup.get((group, word), ())
    )


def _called(program: Program) -> set[str]:
    """Last parts of what the text calls outside its builders."""
    names = set()
    for node in ast.parse(program.text).body:
        if not (isinstance(node, ast.FunctionDef) and node.name.startswith("build_inputs")):
            calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
            names |= {function.attr for function in calls if isinstance(function, ast.Attribute)}
    return names


#: Calls whose result has this dtype, unless they say otherwise.
_DTYPE_OF: Mapping[str, str] = {
    "half": "float16", "bfloat16": "bfloat16", "double": "float64", "long": "int64", "randint": "int64",
    "randperm": "int64", "randn": "float32", "rand": "float32", "arange": "int64", "zeros": "float32",
    "ones": "float32",
}  # fmt: skip


def _implied_dtypes(program: Program) -> set[str]:
    """Dtypes of tensors that the text makes without naming them."""
    found = set()
    for node in ast.walk(ast.parse(program.text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, named = node.func.attr, any(keyword.arg == "dtype" for keyword in node.keywords)
        if name in _DTYPE_OF and not named:
            found.add(_DTYPE_OF[name])
        elif name in ("tensor", "full") and node.args and not named:
            value = node.args[-1] if name == "full" else node.args[0]
            kinds = {type(inner.value) for inner in ast.walk(value) if isinstance(inner, ast.Constant)}
            found |= (
                {"bool"}
                if kinds == {bool}
                else {"int64"}
                if kinds == {int}
                else {"float32"}
                if float in kinds
                else set()
            )
    return found


def _combine(words: Words) -> None:
    """Words that need both sources: a mutation written in the text is in-place even where dispatch shows a copy."""
    words["mechanism"] |= words["text_mechanism"]
    if words["mutation"] & {"setitem", "masked_setitem", "inplace_method", "fill_scalar"}:
        words["topology"].add("in_place")
    if "several" in words["results"]:
        words["topology"].add("multi_result")
    if "view_mutation" in words["topology"] and "graph_break" in words["python"]:
        words["mechanism"].add("view_mutation_break")
