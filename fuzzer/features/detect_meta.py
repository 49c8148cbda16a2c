"""Facts read from a program's META: mode, context, options of the compiler away from their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Words = dict[str, set[str]]


def vocabulary(text: str) -> frozenset[str]:
    """The words of a text: a list of many short words reads better as one string."""
    return frozenset(text.split())


CONFIG_WORDS = vocabulary(
    """threads2 scalar vector256 freezing cpp_wrapper max_autotune no_epilogue_fusion no_inplace_buffers small_fusion
    aggressive_fusion no_pattern_matcher no_layout_optimization free_output_stride no_split_reductions no_tail_vec
    emulate_casts memory_planning small_chunks fullgraph compile_dynamic static_shapes capture_scalars
    capture_dynamic_shapes specialize_int unspecialize_nn no_cse aggressive_recompute"""
)


def _flatten(options: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in options.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        else:
            yield name, value


def _falsy(value: Any) -> bool:
    return not value


def _at_least_two(value: Any) -> bool:
    return isinstance(value, int) and value >= 2


#: option of META → (word, test of its value). Names are those of torch's own config modules.
OPTIONS: dict[str, tuple[tuple[str, Callable[[Any], bool]], ...]] = {
    "cpp.threads": (("threads2", _at_least_two),),
    "cpp.simdlen": (("scalar", lambda v: v in (0, 1)), ("vector256", lambda v: v == 256)),
    "cpp.min_chunk_size": (("small_chunks", lambda v: isinstance(v, int) and v < 512),),
    "cpp.enable_loop_tail_vec": (("no_tail_vec", _falsy),),
    "freezing": (("freezing", bool),),
    "cpp_wrapper": (("cpp_wrapper", bool),),
    "max_autotune": (("max_autotune", bool),),
    "epilogue_fusion": (("no_epilogue_fusion", _falsy),),
    "inplace_buffers": (("no_inplace_buffers", _falsy),),
    "max_fusion_size": (("small_fusion", lambda v: isinstance(v, int) and v < 16),),
    "aggressive_fusion": (("aggressive_fusion", bool),),
    "pattern_matcher": (("no_pattern_matcher", _falsy),),
    "layout_optimization": (("no_layout_optimization", _falsy),),
    "keep_output_stride": (("free_output_stride", _falsy),),
    "split_reductions": (("no_split_reductions", _falsy),),
    "emulate_precision_casts": (("emulate_casts", bool),),
    "memory_planning": (("memory_planning", bool),),
    "capture_scalar_outputs": (("capture_scalars", bool),),
    "capture_dynamic_output_shape_ops": (("capture_dynamic_shapes", bool),),
    "specialize_int": (("specialize_int", bool),),
    "inline_inbuilt_nn_modules": (("unspecialize_nn", _falsy),),
    "cse": (("no_cse", _falsy),),
    "aggressive_recomputation": (("aggressive_recompute", bool),),
    "fullgraph": (("fullgraph", bool),),
    "dynamic": (("compile_dynamic", lambda v: v is True), ("static_shapes", lambda v: v is False)),
    "mode": (("max_autotune", lambda v: isinstance(v, str) and v.startswith("max-autotune")),),
}


def read_meta(meta: Mapping[str, Any], words: Words) -> None:
    words["mode"].add(str(meta.get("mode", "forward")))
    for key, word in (("no_grad", "no_grad"), ("random", "random"), ("check_stride", "strict_stride")):
        if meta.get(key):
            words["context"].add(word)
    for key in ("inductor_config", "dynamo_config", "functorch_config", "compile", "compile_kwargs"):
        options = meta.get(key)
        if not isinstance(options, Mapping):
            continue
        for name, value in _flatten(options):
            for word, holds in OPTIONS.get(name.removeprefix("options."), ()):
                if holds(value):
                    words["config"].add(word)
