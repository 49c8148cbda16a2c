"""Classes of generated kernels: the shape of a kernel's loop nest as a short text, without its numbers and names.

Two kernels of one class came through the same paths of code generation, more or less; a class never seen is new
behaviour of the code generator that line coverage alone does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

#: An outer loop nest or more of this many is "many": beyond it, more fusion is not another shape.
_MANY = 4

_CPP_KERNEL = re.compile(r'extern\s+"C"[^{};()]*?\bvoid\s+(\w+)\s*\(([^)]*)\)\s*\{')
_CPP_LOOP = re.compile(r"\bfor\s*\(\s*(?:int64_t|long|int)\s+x\d+\s*=\s*([^;]*);")
_POINTER = re.compile(r"(?:const\s+)?([\w:]+)\s*\*")
_ACCUMULATE = re.compile(r"\b\w*tmp_acc\d+\w*(?:\[\w+\])?\s*=\s*([^;]*);")

#: Right-hand sides of an assignment to an accumulator, most specific first.
_CPP_REDUCTIONS = (
    ("argmax", re.compile(r"\bargmax_combine")),
    ("argmin", re.compile(r"\bargmin_combine")),
    ("welford", re.compile(r"\bwelford_combine")),
    ("max", re.compile(r"\b(?:max_propagate_nan|max_masked_reduce|at::vec::maximum)\b")),
    ("min", re.compile(r"\b(?:min_propagate_nan|min_masked_reduce|at::vec::minimum)\b")),
    ("prod", re.compile(r"\bprod_masked_reduce\b|^\s*\w*tmp_acc\w*(?:\[\w+\])?\s*\*")),
    ("xor_sum", re.compile(r"\bxor_sum_masked_reduce\b|^\s*\w*tmp_acc\w*(?:\[\w+\])?\s*\^")),
    ("any", re.compile(r"\bany_masked_reduce\b|^\s*\w*tmp_acc\w*(?:\[\w+\])?\s*\|")),
    ("sum", re.compile(r"\bcascade_sum_combine\b|\bsum_masked_reduce\b|^\s*\w*tmp_acc\w*(?:\[\w+\])?\s*\+")),
)

_CPP_FLAGS = (
    ("vec", re.compile(r"at::vec::")),
    ("cascade", re.compile(r"\bcascade_sum_combine\b")),
    ("convert", re.compile(r"at::vec::convert<")),
    ("mask", re.compile(r"at::vec::VecMask")),
    ("transpose", re.compile(r"\btranspose_mxn")),
    ("atomic_add", re.compile(r"\batomic_add")),
    ("omp", re.compile(r"#pragma omp (?:parallel|for)")),
    ("check", re.compile(r"\bTORCH_CHECK\b|\bAOTI_TORCH_CHECK\b")),
    ("random", re.compile(r"\b(?:normalized_rand_cpu|randn_cpu|randint64_cpu)\b")),
    ("gemm", re.compile(r"_micro_gemm|\bcpublas_brgemm")),
    ("symbolic", re.compile(r"\bks\d+\b")),
)

_TRITON_KERNEL = re.compile(r"@triton\.jit\s+def\s+(\w+)\s*\(")
_TRITON_LITERAL = re.compile(r"async_compile\.triton\([^,]*,\s*r?'''(.*?)'''", re.DOTALL)
_TRITON_KIND = re.compile(r"triton_heuristics\.(\w+)\(")
_TRITON_DTYPE = re.compile(r"'\*(\w+)'")
_TRITON_DIMENSION = re.compile(r"\b([xyz]|r\d+_?|r)index\s*=")
_TRITON_REDUCTION = re.compile(
    r"\b(?:tl|triton_helpers)\.(sum|max2|min2|max|min|prod|any|xor_sum|reduce|max_with_index|min_with_index|"
    r"welford(?:_reduce|_combine)?|online_softmax_\w+|associative_scan|exclusive_scan\w*|sort_with_index)\("
)
_TRITON_FLAGS = (
    ("loop", re.compile(r"\bfor \w+ in (?:tl\.)?range\(")),
    ("atomic_add", re.compile(r"\btl\.atomic_add\(")),
    ("dot", re.compile(r"\btl\.dot\(")),
    ("check", re.compile(r"\btl\.device_assert\(")),
    ("random", re.compile(r"\btl\.rand|\btriton_helpers\.rand")),
    ("symbolic", re.compile(r"\bks\d+\b")),
)

#: Calls out of generated code: what no kernel was generated for.
_EXTERN = re.compile(r"\b(extern_kernels\.\w+|torch\.ops\.\w+\.\w+(?:\.\w+)?|aoti_torch_(?:cpu|cuda|xpu|mps)_\w+)\(")


def kernel_classes(texts: Iterable[str]) -> list[str]:
    """One class a kernel in the order of generation, then one a call to a kernel that was not generated, sorted.

    ``texts`` are what Inductor generates for a graph: a Python module with its kernels in literals, a C++ wrapper, or
    bare kernel sources. Examples: ``cpp loops=2 nests=1 vec tail red=argmax dtypes=float,int64_t``,
    ``triton reduction dims=r0_,x red=sum dtypes=fp32``, ``extern extern_kernels.mm``. Text without kernels gives [].
    """
    classes: list[str] = []
    calls: set[str] = set()
    for text in texts:
        classes += [_cpp_class(signature, body) for signature, body in _cpp_kernels(text)]
        classes += [_triton_class(source) for source in _triton_kernels(text)]
        calls.update(f"extern {call.removeprefix('torch.ops.')}" for call in _EXTERN.findall(text))
    return classes + sorted(calls)


def kernel_sources(texts: Iterable[str]) -> list[str]:
    """Source of every kernel in what Inductor generated, in order: C++ functions whole, Triton kernels with what
    decorates them. For people to read."""
    found: list[str] = []
    for text in texts:
        found += [text[match.start() : end].strip() for match, end in _cpp_spans(text)]
        found += [source.strip() for source in _triton_kernels(text)]
    return found


def _cpp_kernels(text: str) -> list[tuple[str, str]]:
    """(parameters, body) of each C++ kernel that is defined in the text."""
    return [(match.group(2), text[match.end() : end]) for match, end in _cpp_spans(text)]


def _cpp_spans(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Each C++ kernel's head, and where its body ends."""
    for match in _CPP_KERNEL.finditer(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield match, end


def _cpp_class(parameters: str, body: str) -> str:
    depth, nests, tail = _loops(body)
    words = [f"cpp loops={depth}", f"nests={nests if nests < _MANY else 'many'}"]
    words += [name for name, pattern in _CPP_FLAGS if pattern.search(body) or pattern.search(parameters)]
    if tail or "C10_UNLIKELY(x" in body:
        words.append("tail")
    kinds = {_reduction(right) for right in _ACCUMULATE.findall(body)} - {""}
    if kinds:
        words.append(f"red={','.join(sorted(kinds))}")
    pointers = {name.split("::")[-1] for name in _POINTER.findall(parameters)}
    words.append(f"dtypes={','.join(sorted(pointers)) or 'none'}")
    return " ".join(words)


def _loops(body: str) -> tuple[int, int, bool]:
    """(deepest nesting, number of outermost nests, whether a loop starts past zero) of the loops over ``x0, x1, …``.

    A loop is open from its header to the end of the block, or of the statement, that follows it.
    """
    deepest = nests = brace = 0
    tail = False
    open_loops: list[int] = []  # brace depth outside each open loop
    headers = {match.start(): match for match in _CPP_LOOP.finditer(body)}
    position = 0
    while position < len(body):
        header = headers.get(position)
        if header is not None:
            nests += not open_loops
            open_loops.append(brace)
            deepest = max(deepest, len(open_loops))
            # older code generation: a second loop for the tail, from a number that is not zero
            tail |= bool(re.search(r"\(\s*[1-9]|^\s*[1-9]", header.group(1)))
            position = _close(body, body.index("(", position))
            continue
        character = body[position]
        if character == "{":
            brace += 1
        elif character == "}":
            brace -= 1
        if character in "};":
            while open_loops and open_loops[-1] >= brace:
                open_loops.pop()
        position += 1
    return deepest, nests, tail


def _close(text: str, position: int) -> int:
    """One past the parenthesis that closes the one at ``position``; the end of the text where none does."""
    depth = 0
    for index in range(position, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return len(text)


def _reduction(right: str) -> str:
    return next((name for name, pattern in _CPP_REDUCTIONS if pattern.search(right)), "")


def _triton_kernels(text: str) -> list[str]:
    literals = _TRITON_LITERAL.findall(text)
    if literals:
        return literals
    # a bare source, or one of another wrapper: from one decorated function to the next
    starts = [match.start() for match in _TRITON_KERNEL.finditer(text)]
    first = text.rfind("@triton_heuristics", 0, starts[0]) if starts else -1
    edges = [first if first >= 0 else starts[0], *starts[1:], len(text)] if starts else []
    return [text[low:high] for low, high in pairwise(edges)]


def _triton_class(source: str) -> str:
    kind = _TRITON_KIND.search(source)
    words = [f"triton {kind.group(1) if kind else 'kernel'}"]
    words.append(f"dims={','.join(sorted(set(_TRITON_DIMENSION.findall(source)))) or 'none'}")
    words += [name for name, pattern in _TRITON_FLAGS if pattern.search(source)]
    kinds = set(_TRITON_REDUCTION.findall(source))
    if kinds:
        words.append(f"red={','.join(sorted(kinds))}")
    words.append(f"dtypes={','.join(sorted(set(_TRITON_DTYPE.findall(source)))) or 'none'}")
    return " ".join(words)
