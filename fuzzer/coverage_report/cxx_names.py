"""C++ names made readable: which part of torch a function belongs to, and a short form of its name."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator

#: Namespaces that are told apart by their second level; of all others the first is enough.
_TWO_LEVELS = ("at", "c10", "torch", "caffe2")

#: How a call reaches a kernel: wrappers that the dispatcher instantiates for each operator, and the dispatcher itself.
_DISPATCHER = re.compile(
    rb"^_ZN[KRO]*3c10(?:4impl6detail24WrapFunctionIntoFunctor_|"
    rb"4impl\d+(?:wrap_kernel_functor_unboxed_|make_boxed_from_unboxed_functor|"
    rb"call_functor_with_args_from_stack_?|BoxedKernelWrapper|\w*return_to_stack)|"
    rb"10Dispatcher|14OperatorHandle|19TypedOperatorHandle|12BoxedKernel|14KernelFunction)"
)
#: Carriers that say nothing by themselves: a callback or a container belongs to what it is made for.
_CARRIER = re.compile(
    rb"^_ZN[KRO]*(?:3c1012function_ref|3c1013intrusive_ptr|3c106detail|St|S[absiod])|^_Z(?:N[KRO]*)?S[tabsiod]"
)
_INSIDE = re.compile(rb"N[KRO]*(?=2at\d|5torch\d|3c10\d|4dnnl\d|6caffe2\d|6fbgemm)")
_SOURCE_NAME = re.compile(rb"\d+")
_PREFIX = re.compile(rb"^_Z(?:T[hv][n\d]*_(?:n?\d+_)?)?Z*(?:N[KRO]*)?")

#: Functions of C libraries that libtorch links in.
_C_PREFIXES = (
    ("mkl", "mkl"), ("owng", "mkl"), ("Sleef", "sleef"), ("aoti_torch", "aoti_torch"), ("dnnl", "dnnl"),
    ("xnn_", "xnnpack"), ("cblas", "mkl"), ("omp_", "openmp"), ("GOMP", "openmp"), ("Py", "python bindings"),
    ("THP", "python bindings"),
)  # fmt: skip

NO_SYMBOL = "(no symbol)"
COLD = "(cold parts)"


def namespace(mangled: bytes) -> str:
    """``at::native``, ``torch::autograd``, ``dispatcher``, ``mkl``, … of a mangled name.

    A callback or container of the standard library counts for what it carries. Parts that the compiler split off a
    function (``.cold``) are ``(cold parts)``, functions without C++ name of no known library ``C functions``.
    """
    if not mangled:
        return NO_SYMBOL
    if b".cold" in mangled:
        return COLD
    if not mangled.startswith(b"_Z"):
        text = mangled.decode(errors="replace")
        return next((name for prefix, name in _C_PREFIXES if text.startswith(prefix)), "C functions")
    if _DISPATCHER.match(mangled):
        return "dispatcher"
    if _CARRIER.match(mangled):
        if b"2at6native" in mangled or b"_6native" in mangled:  # also inside a loop of at::TensorIterator
            return "at::native"
        inside = _INSIDE.search(mangled, 3)
        return _levels(_components(mangled, inside.end())) if inside else "std"
    prefix = _PREFIX.match(mangled)
    return _levels(_components(mangled, prefix.end() if prefix else 2)) or "C++ functions"


def _components(mangled: bytes, at: int) -> list[str]:
    """Up to three leading source names, as far as they stand one behind the other."""
    parts: list[str] = []
    while len(parts) < 3:
        if mangled[at : at + 2] == b"St":
            parts.append("std")
            at += 2
            continue
        at += mangled[at : at + 1] == b"L"  # internal linkage
        length = _SOURCE_NAME.match(mangled, at)
        if length is None:
            break
        end = length.end() + int(length.group())
        parts.append(mangled[length.end() : end].decode(errors="replace"))
        at = end
    return parts


def _levels(parts: list[str]) -> str:
    """Namespaces begin in lower case, classes do not; the last name is the function's own."""
    names = parts[:-1] if len(parts) < 3 else parts[:2]
    if not names or names[0].startswith("_GLOBAL_"):
        return ""
    second = names[1] if len(names) > 1 else ""
    if names[0] not in _TWO_LEVELS or not second or second[0].isupper() or second.startswith("_GLOBAL_"):
        return names[0]
    return f"{names[0]}::{second}"


def demangler() -> Callable[[bytes], str]:
    """Mangled → C++ name by the runtime library's ``__cxa_demangle``; the name as it is where that is absent."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return lambda name: name.decode(errors="replace")
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    demangle.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    status = ctypes.c_int(0)

    def plain(name: bytes) -> str:
        text = demangle(name, None, None, ctypes.byref(status)) if name.startswith(b"_Z") else None
        if text:
            name = ctypes.cast(text, ctypes.c_char_p).value or name
            free(text)
        return name.decode(errors="replace")

    return plain


_ANONYMOUS = "(anonymous namespace)::"
_CAPABILITY = re.compile(r"\b(?:AVX2|AVX512|DEFAULT|SVE256|ZVECTOR|VSX|NEON)::")
#: The function whose lambda a callback or wrapper carries, or whose address it holds.
_CARRIED = re.compile(r"(?:at|torch|c10)::[\w:]*?(?=\(|>, |_?>)")
_POINTED = re.compile(r"&((?:at|torch|c10)::[\w:]+)")
_CARRIERS = ("c10::function_ref<", "c10::impl::wrap_kernel", "c10::impl::make_boxed", "std::_Function_handler<")
_KERNEL = re.compile(r"(?<!cpu_serial)_kernel(?:_impl)?$")
_QUALIFIERS = re.compile(r"(?:\s|\bconst$|&)+$|\s+const\s*&*\s*$")
_LAMBDA = re.compile(r"::\{lambda.*|::'lambda.*")


def short(name: str) -> str:
    """A demangled name without return type, template arguments, parameters and vector-instruction namespaces.

    ``void at::native::AVX2::foo<float>(int)::{lambda()#1}::operator()() const`` → ``at::native::foo``. A wrapper that
    the dispatcher or a loop instantiates is named by the function that it carries: all instances of one function in
    the source have one short name.
    """
    text = _CAPABILITY.sub("", name.replace(_ANONYMOUS, ""))
    if any(carrier in text[:120] for carrier in _CARRIERS):
        carried = _POINTED.search(text) or _CARRIED.search(text)
        if carried:
            return carried.group(carried.lastindex or 0).rstrip("_").rstrip(":")
    if text.startswith("_Z"):  # the demangler refuses some
        kernel = next((name for name in _source_names(text) if _KERNEL.search(name)), "")
        return f"at::native::{kernel}" if kernel and "6native" in text else text[:80]
    text = _QUALIFIERS.sub("", _LAMBDA.sub("", _without_groups(text)))
    if "operator" not in text:
        text = text.rpartition(" ")[2]
    else:
        head, _, tail = text.partition("operator")
        text = f"{head.rpartition(' ')[2]}operator{tail}"
    return text.lstrip("*&")


def _source_names(mangled: str) -> Iterator[str]:
    """Whatever reads as a length and a name of that length."""
    for match in re.finditer(r"(?<!\d)[1-9]\d?(?=[A-Za-z_])", mangled):
        yield mangled[match.end() : match.end() + int(match.group())]


def _without_groups(text: str) -> str:
    """Without anything in round, angle or square brackets; operators that are spelt with such stay."""
    kept: list[str] = []
    depth = 0
    at = 0
    while at < len(text):
        if depth == 0 and text.startswith("operator", at):
            symbol = re.match(r"operator(?:\(\)|->\*?|<<=?|>>=?|<=>|[<>]=?|\[\])", text[at:])
            if symbol:
                kept.append(symbol.group())
                at += symbol.end()
                continue
        character = text[at]
        if character in "(<[":
            depth += 1
        elif character in ")>]":
            if not (character == ">" and text[at - 1] == "-"):
                depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
        at += 1
    return "".join(kept)
