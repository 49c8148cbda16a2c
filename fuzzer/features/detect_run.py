"""Facts read from what ran: operators, dataflow, dtypes, shapes, layouts, broadcasting, values.

The input is ``Observation.ops`` (see ``harness.wire.OpMap``): operators in the order of their dispatch, with the
dtype, shape, stride and offset of every tensor argument, and the indices of the operators that produced them.
Layouts are computed from shape, stride and offset alone, so they hold for any backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

from fuzzer.features.detect_text import Words, vocabulary
from fuzzer.observation import Observation

_FLOATS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_SIGNED = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
_UNSIGNED = {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8}
_INTEGERS = {**_SIGNED, **_UNSIGNED}
_VECTOR_WIDTHS = (8, 16, 32)  # float32 lanes of AVX2 and AVX-512, and int8/uint8 lanes of AVX2
_LARGE = 4096  # elements; Inductor's CPU code goes parallel and splits reductions beyond this order of size

#: Groups that this module fills, each with every word it can report; None: any word (names of families, of groups).
RUN_DETECTORS: Mapping[str, frozenset[str] | None] = {
    "family": None,
    "adjacency": None,
    "dtype": frozenset(_FLOATS)
    | frozenset(_INTEGERS)
    | vocabulary("bool complex32 complex64 complex128")
    | vocabulary("float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"),
    "dtype_mix": vocabulary("int_float half_float float_double half_bfloat int_width bool_number complex_real"),
    "cast": vocabulary(
        "float_down float_up float_to_int int_to_float to_bool from_bool int_down int_up to_unsigned round_trip complex"
    ),
    "shape": vocabulary(
        "scalar empty ones odd vector_multiple vector_minus_one vector_plus_one large high_rank long_row tall"
    ),
    "layout": vocabulary("contiguous transposed expanded strided_slice gapped offset channels_last overlapping"),
    "broadcast": vocabulary("scalar_tensor missing_dim ones_dim mutual two_missing"),
    "value": vocabulary("nan inf zero negative huge denormal extreme ties"),
    "topology": vocabulary(
        "chain deep diamond fan_out multi_output multi_result in_place alias residual input_reuse self_pair "
        "view_mutation wide"
    ),
    "mechanism": vocabulary(
        "strided_index_reduction clone_zero_view pow_chain scalar_reduction permuted_conv_weight "
        "cast_before_equality expanded_mutation empty_reduction"
    ),
}

_CAST_OPERATORS = frozenset({"_to_copy", "to", "type_as", "convert_element_type"})
_EQUALITY = frozenset({"eq", "ne", "equal", "isclose", "isin"})


# --- one tensor ---------------------------------------------------------------------------------------------------


def layouts(shape: Sequence[int], stride: Sequence[int], offset: int) -> set[str]:
    """Layout words of one tensor. Sizes and strides in elements; dims of size 1 carry no layout; empty: no word.

    ``contiguous`` row-major and dense · ``channels_last`` dense with dim 1 innermost (rank 4 or 5) · ``transposed``
    another order of dims · ``expanded`` stride 0 · ``strided_slice`` innermost step above 1 · ``gapped`` holes
    between rows · ``overlapping`` two indices share an address, without stride 0 · ``offset`` starts inside a storage.
    """
    words: set[str] = set()
    if 0 in shape or len(stride) != len(shape):  # a sparse tensor has no strides
        return words
    if offset > 0:
        words.add("offset")
    dims = [(size, step) for size, step in zip(shape, stride) if size != 1]
    expected, dense_row_major = 1, True
    for size, step in reversed(dims):
        if step != expected:
            dense_row_major = False
            break
        expected *= size
    if dense_row_major:
        words.add("contiguous")
        return words
    live = [(size, step) for size, step in dims if step != 0]
    if len(live) != len(dims):
        words.add("expanded")
    steps = [step for _, step in live]
    ordered = sorted(live, key=lambda dim: dim[1])
    if ordered and ordered[0][1] > 1:
        words.add("strided_slice")
    reach = pitch = 1  # elements spanned by the dims seen so far, without and with the step after the last one
    dense = True
    for size, step in ordered:
        if step < reach:
            words.add("overlapping")
        if step != reach:
            dense = False
        if step > pitch > 1:
            words.add("gapped")
        reach, pitch = (size - 1) * step + reach, max(pitch, size * step)
    if any(left < right for left, right in pairwise(steps)):
        rank = len(shape)
        if dense and rank in (4, 5) and len(live) == len(dims) and _channels_last(shape, stride):
            words.add("channels_last")
        else:
            words.add("transposed")
    return words


def _channels_last(shape: Sequence[int], stride: Sequence[int]) -> bool:
    expected = 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[dim] != 1:
            if stride[dim] != expected:
                return False
            expected *= shape[dim]
    return True


def shape_words(shape: Sequence[int]) -> set[str]:
    """Shape classes of one tensor (a tensor has several)."""
    if not shape:
        return {"scalar"}
    if 0 in shape:
        return {"empty"}
    words: set[str] = set()
    last = shape[-1]
    if 1 in shape:
        words.add("ones")
    if any(size % 2 and size > 1 for size in shape):
        words.add("odd")
    for width in _VECTOR_WIDTHS:
        if last == width:
            words.add("vector_multiple")
        elif last == width - 1:
            words.add("vector_minus_one")
        elif last == width + 1:
            words.add("vector_plus_one")
    if last > 32 and last % 8 == 0:
        words.add("vector_multiple")
    if prod(shape) > _LARGE:
        words.add("large")
    if len(shape) >= 5:
        words.add("high_rank")
    if last >= 1024:
        words.add("long_row")
    if len(shape) >= 2 and shape[0] >= 256 and last <= 8:
        words.add("tall")
    return words


# --- one operator -------------------------------------------------------------------------------------------------


def cast_words(source: str, target: str) -> set[str]:
    """Cast classes of a conversion from one dtype name to another; empty when they are equal."""
    if source == target:
        return set()
    if "complex" in source or "complex" in target:
        return {"complex"}
    if target == "bool":
        return {"to_bool"}
    if source == "bool":
        return {"from_bool"}
    from_float, to_float = source not in _INTEGERS, target not in _INTEGERS
    words: set[str] = {"to_unsigned"} if target in _UNSIGNED else set()
    if from_float and to_float:
        words.add("float_up" if _FLOATS.get(target, 1) > _FLOATS.get(source, 1) else "float_down")
    elif from_float:
        words.add("float_to_int")
    elif to_float:
        words.add("int_to_float")
    else:
        words.add("int_up" if _INTEGERS[target] > _INTEGERS[source] else "int_down")
    return words


def mix_words(dtypes: set[str]) -> set[str]:
    """What differs among the dtypes of the tensor arguments of one operator."""
    words: set[str] = set()
    if len(dtypes) < 2:
        return words
    floats, integers = dtypes & _FLOATS.keys(), dtypes & _INTEGERS.keys()
    if floats and integers:
        words.add("int_float")
    if len(integers) > 1:
        words.add("int_width")
    if "bool" in dtypes:
        words.add("bool_number")
    half = floats & {"float16", "bfloat16"}
    if half and floats - half:
        words.add("half_float")
    if len(half) > 1:
        words.add("half_bfloat")
    if "float64" in floats and "float32" in floats:
        words.add("float_double")
    is_complex = {dtype for dtype in dtypes if dtype.startswith("complex")}
    if is_complex and dtypes - is_complex:
        words.add("complex_real")
    return words


def broadcast_words(left: Sequence[int], right: Sequence[int]) -> set[str]:
    """How two shapes broadcast; empty when they are equal or do not broadcast."""
    if list(left) == list(right):
        return set()
    if not left or not right:
        return {"scalar_tensor"}
    expands_left = expands_right = False
    for a, b in zip(reversed(left), reversed(right)):
        if a == b:
            continue
        if a == 1:
            expands_left = True
        elif b == 1:
            expands_right = True
        else:
            return set()
    words: set[str] = set()
    missing = abs(len(left) - len(right))
    if missing:
        words.add("missing_dim")
    if missing >= 2:
        words.add("two_missing")
    if expands_left or expands_right:
        words.add("ones_dim")
    expands_left |= len(left) < len(right)
    expands_right |= len(right) < len(left)
    if expands_left and expands_right:
        words.add("mutual")
    return words


def _base(name: str) -> str:
    """The name without namespace and overload: ``aten.add_.Tensor`` → ``add_``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else name


def _is_inplace(base: str) -> bool:
    return base.endswith("_") and not base.endswith("__")


# --- the run ------------------------------------------------------------------------------------------------------


def read_run(observation: Observation, family_of: Callable[[str], str], group_of: Mapping[str, str]) -> Words:
    """Words per group of ``RUN_DETECTORS`` for one observation.

    Args:
        family_of: operator name as dispatched ("aten.add.Tensor") → family.
        group_of: family → group of families, the vocabulary of adjacency; a family without a group has no edges.
    """
    words: Words = {group: set() for group in RUN_DETECTORS}
    ops = _without_detach(observation.ops)
    names = [str(op["op"]) for op in ops]
    bases = [_base(name) for name in names]
    families = [family_of(name) for name in names]
    groups = [_groups(base, family, group_of) for base, family in zip(bases, families)]
    words["family"].update(family for family in families if family)
    for index, op in enumerate(ops):
        _operator(op, bases[index], groups[index], words)
    _dataflow(ops, bases, groups, words)
    _results(observation, words)
    return words


def _without_detach(ops: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The operators without ``detach``, whose readers read its source: autograd inserts it wherever it saves a value,
    so it says nothing of the program."""
    kept: list[Mapping[str, Any]] = []
    place: list[int] = []  # old index → index of the operator that made the value
    for op in ops:
        sources = [place[source] if source >= 0 else source for source in op.get("inputs", ()) if source < len(place)]
        if _base(str(op["op"])) == "detach" and len(sources) == 1:
            place.append(sources[0])
            continue
        place.append(len(kept))
        kept.append({**op, "inputs": sources})
    return kept


def _groups(base: str, family: str, group_of: Mapping[str, str]) -> tuple[str, ...]:
    group = "cast" if base in _CAST_OPERATORS else group_of.get(family, "")
    if not _is_inplace(base) or group == "inplace":
        return (group,) if group else ()
    return (group, "inplace") if group else ("inplace",)


def _operator(op: Mapping[str, Any], base: str, groups: tuple[str, ...], words: Words) -> None:
    tensors = [*op.get("tensors", ()), *op.get("outputs", ())]
    inputs = op.get("tensors", ())
    for dtype, shape, stride, offset in tensors:
        words["dtype"].add(dtype)
        words["shape"] |= shape_words(shape)
        words["layout"] |= layouts(shape, stride, offset)
    outputs = op.get("outputs", ())
    words["dtype_mix"] |= mix_words({tensor[0] for tensor in inputs})
    if base in _CAST_OPERATORS and inputs and outputs:
        words["cast"] |= cast_words(inputs[0][0], outputs[0][0])
    if len(inputs) >= 2 and ("pointwise" in groups or "inplace" in groups):
        for right in inputs[1:]:
            words["broadcast"] |= broadcast_words(inputs[0][1], right[1])
    if len(outputs) >= 2:
        words["topology"].add("multi_output")
    if _is_inplace(base) or base == "out" or str(op["op"]).endswith(".out"):
        words["topology"].add("in_place")
        if inputs and "expanded" in layouts(*inputs[0][1:4]):
            words["mechanism"].add("expanded_mutation")
    if inputs:
        _operator_mechanisms(base, groups, inputs, words["mechanism"])


def _operator_mechanisms(base: str, groups: tuple[str, ...], inputs: Sequence[Any], found: set[str]) -> None:
    shape, stride, offset = inputs[0][1:4]
    if "reduction" in groups or "index_reduction" in groups:
        if not shape:
            found.add("scalar_reduction")
        elif 0 in shape:
            found.add("empty_reduction")
    if "index_reduction" in groups and shape and 0 not in shape and "contiguous" not in layouts(shape, stride, offset):
        found.add("strided_index_reduction")
    if "convolution" in base and len(inputs) > 1:
        weight = layouts(*inputs[1][1:4])
        if weight and not weight & {"contiguous", "channels_last"}:
            found.add("permuted_conv_weight")


def _dataflow(ops: Sequence[Mapping[str, Any]], bases: list[str], groups: list[tuple[str, ...]], words: Words) -> None:
    """Edges, paths and joins. ``above`` holds bit sets over inputs and operators, so a join costs one ``and``."""
    topology, mechanism, adjacency = words["topology"], words["mechanism"], words["adjacency"]
    lowest = min((source for op in ops for source in op.get("inputs", ())), default=0)
    shift = max(0, -lowest)  # bits below it are the program's inputs
    readers: dict[int, int] = {}
    above: list[int] = []
    depth: list[int] = []
    for index, op in enumerate(ops):
        sources = [source for source in op.get("inputs", ()) if source < index]
        distinct = sorted(set(sources))
        if len(distinct) < len(sources):
            topology.add("self_pair")
        closures: list[tuple[int, int]] = []  # (own bit, everything upstream of it)
        longest = 0
        for source in distinct:
            readers[source] = readers.get(source, 0) + 1
            closures.append((1 << (source + shift), above[source] if source >= 0 else 0))
            if source < 0:
                continue
            longest = max(longest, depth[source])
            adjacency.update(f"{left}>{right}" for left in groups[source] for right in groups[index])
            _edge(bases, groups, source, index, words)
        topology |= _joins(closures)
        union = 0
        for own, upstream in closures:
            union |= own | upstream
        above.append(union)
        depth.append(longest + 1)
        if bases[index] == "zero_" and any(
            base == "clone" and union >> (i + shift) & 1 for i, base in enumerate(bases)
        ):
            mechanism.add("clone_zero_view")
    if depth:
        topology.update(word for word, least in (("chain", 4), ("deep", 10)) if max(depth) >= least)
        if depth.count(1) >= 4:
            topology.add("wide")
    if any(count >= 3 for source, count in readers.items() if source >= 0):
        topology.add("fan_out")
    if any(count >= 2 for source, count in readers.items() if source < 0):
        topology.add("input_reuse")


def _joins(closures: list[tuple[int, int]]) -> set[str]:
    """``residual``: one argument lies upstream of another; ``diamond``: two arguments have an ancestor in common."""
    found: set[str] = set()
    for position, (own, upstream) in enumerate(closures):
        for other, other_upstream in closures[:position]:
            if upstream & other or other_upstream & own:
                found.add("residual")
            elif upstream & other_upstream:
                found.add("diamond")
    return found


def _edge(bases: list[str], groups: list[tuple[str, ...]], source: int, index: int, words: Words) -> None:
    left, right = bases[source], bases[index]
    if _is_inplace(right) and "view" in groups[source]:
        words["topology"].add("view_mutation")
    if left in _CAST_OPERATORS:
        if right in _CAST_OPERATORS:
            words["cast"].add("round_trip")
        if right in _EQUALITY:
            words["mechanism"].add("cast_before_equality")
    if left.startswith("pow") and right.startswith("pow"):
        words["mechanism"].add("pow_chain")


def _results(observation: Observation, words: Words) -> None:
    raw = observation.raw
    for per_input in raw.get("values", ()):
        words["value"].update(per_input)
    words["value"] &= RUN_DETECTORS["value"] or frozenset()
    groups = raw.get("aliases", {}).get("eager", ())
    if any(len(group) > 1 for group in groups):
        words["topology"].add("alias")
    results = [leaf for leaf in observation.leaves if str(leaf.get("path", "")).startswith("out")]
    if len(results) > 1:
        words["topology"].add("multi_result")
