"""Inductor's CPU kernels without a C++ compiler: the loop-level IR of each, executed on torch tensors.

Runs in the target. ``installed()`` lets Inductor do all that it does, code generation included; only where a kernel
would be compiled it gives back a function that walks the kernel's loop bodies, each over its whole iteration space at
once. What is wrong in lowering, scheduling or loop bodies is wrong here as well; what is wrong in the C++ is not.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import sympy
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.utils import Placeholder
from torch._inductor.virtualized import V
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis


class NotInterpreted(Exception):
    """An operation that this interpreter has no words for. ``str()`` names it."""


class Counts:
    """What was interpreted: kernels, and names of operations that could not be."""

    def __init__(self) -> None:
        self.kernels = 0
        self.seconds = 0.0  # of processor time
        self.refused: list[str] = []


_SPECIAL: dict[str, Callable[..., Any]] = {
    "truediv": torch.true_divide,
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "int_truediv": torch.true_divide,
    "div_rn": torch.true_divide,
    "mod": torch.fmod,
    "and_": torch.bitwise_and,
    "or_": torch.bitwise_or,
    "invert": torch.bitwise_not,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
    "libdevice_abs": torch.abs,
    "fma": lambda a, b, c: a * b + c,
    "mul_rn": torch.mul,
    "identity": lambda a: a,
    "round_to_int": lambda a, dtype: torch.round(a).to(dtype),
    "floor_to_int": lambda a, dtype: torch.floor(a).to(dtype),
    "ceil_to_int": lambda a, dtype: torch.ceil(a).to(dtype),
    "trunc_to_int": lambda a, dtype: torch.trunc(a).to(dtype),
    "to_dtype_bitcast": lambda a, dtype, _source: a.contiguous().view(dtype),
    "constant": lambda value, dtype: torch.tensor(value, dtype=dtype),
}
_FOLDS = {"sum": torch.sum, "prod": torch.prod, "max": torch.amax, "min": torch.amin, "any": torch.any}


class _Handler(DefaultHandler):
    """``V.ops`` over one iteration space: every value is a tensor that broadcasts against it."""

    def __init__(self, memory: dict[str, Any], symbols: dict[sympy.Symbol, Any], sizes: Sequence[int], outer: int):
        self.memory, self.symbols = memory, symbols
        self.sizes, self.outer = tuple(sizes), outer  # the first ``outer`` dimensions are not reduced
        self.masks: list[torch.Tensor] = []

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = _SPECIAL.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None)
        if function is None:
            raise NotInterpreted(name)
        return function(*args, **kwargs)

    def _value(self, expr: Any) -> Any:
        return sympy_interp(PythonReferenceAnalysis, self.symbols, expr) if isinstance(expr, sympy.Basic) else expr

    def to_dtype(self, x: Any, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True) -> Any:
        return x.to(dtype)

    def index_expr(self, expr: Any, dtype: torch.dtype) -> Any:
        return torch.as_tensor(self._value(expr)).to(dtype)

    value_expr = index_expr

    def indirect_indexing(self, x: Any, size: Any, check: bool = True, wrap_neg: bool = True) -> sympy.Symbol:
        index, length = x.to(torch.int64), self._value(size)
        if wrap_neg:
            index = torch.where(index < 0, index + length, index)
        inside = (index >= 0) & (index < length)
        if self.masks:
            inside = inside | ~self.masks[-1]
        if check and not bool(torch.all(inside)):
            raise IndexError("index out of range")
        symbol = sympy.Symbol(f"indirect{len(self.symbols)}", integer=True)
        self.symbols[symbol] = index
        return symbol

    def _flat(self, name: str) -> torch.Tensor:
        tensor = self.memory[name]
        elements = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
        return torch.as_strided(tensor, (elements,), (1,), tensor.storage_offset())

    def load(self, name: str, index: Any) -> torch.Tensor:
        flat, where = self._flat(name), torch.as_tensor(self._value(index))
        if self.masks:
            where = where.clamp(0, max(len(flat) - 1, 0))
        return flat[where]

    def store(self, name: str, index: Any, value: Any, mode: str | None = None) -> None:
        self._put(name, index, value, self.sizes, mode)

    def store_reduction(self, name: str, index: Any, value: Any) -> None:
        self._put(name, index, value, (*self.sizes[: self.outer], *[1] * (len(self.sizes) - self.outer)), None)

    def _put(self, name: str, index: Any, value: Any, sizes: Sequence[int], mode: str | None) -> None:
        flat = self._flat(name)
        where = torch.as_tensor(self._value(index)).expand(sizes)
        flat.index_put_((where,), value.to(flat.dtype).expand(sizes), accumulate=mode == "atomic_add")

    def masked(self, mask: torch.Tensor, body: Callable[[], Any], other: Any) -> torch.Tensor:
        self.masks.append(mask & self.masks[-1] if self.masks else mask)
        try:
            value = body()
        finally:
            self.masks.pop()
        return torch.where(mask, value, torch.tensor(other, dtype=value.dtype))

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Any:
        dims = tuple(range(self.outer, len(self.sizes)))
        if kind == "welford_combine":
            raise NotInterpreted(kind)
        whole = value.expand(self.sizes)
        if kind in _FOLDS:
            if kind == "prod":  # torch.prod folds one dimension
                flat = whole.flatten(self.outer) if dims else whole.unsqueeze(-1)
                return flat.prod(-1).to(dtype)[(..., *[None] * len(dims))]
            folded = _FOLDS[kind](whole, dim=dims, keepdim=True) if dims else whole
            return folded.to(dtype)
        if kind in ("argmax", "argmin"):
            flat = whole.flatten(self.outer) if dims else whole.unsqueeze(-1)
            return getattr(torch, kind)(flat, dim=-1)[(..., *[None] * len(dims))]
        if kind == "welford_reduce":
            mean = whole.mean(dims, keepdim=True)
            count = torch.full_like(mean, math.prod(self.sizes[self.outer :]))
            return mean, ((whole - mean) ** 2).sum(dims, keepdim=True), count
        raise NotInterpreted(kind)

    def scan(self, *_args: Any) -> Any:
        raise NotInterpreted("scan")

    def sort(self, *_args: Any) -> Any:
        raise NotInterpreted("sort")

    def bucketize(self, *_args: Any, **_kwargs: Any) -> Any:
        raise NotInterpreted("bucketize")

    def load_seed(self, *_args: Any) -> Any:
        raise NotInterpreted("load_seed")


class _Kernel:
    """What stands in for a compiled kernel: takes the same arguments."""

    def __init__(self, nodes: Sequence[Any], arguments: Any, graph: Any, counts: Counts) -> None:
        _definitions, self.names, _types = arguments.cpp_argdefs()
        self.nodes, self.counts = list(nodes), counts
        self.sizes = {str(outer): symbol for symbol, outer in arguments.sizevars.items()}
        self.symbols = [str(symbol) for symbol in arguments.sizevars]
        # One name a piece of memory: what is written in place of a buffer is passed by its last name.
        self.other = {name: group.other_names[-1] for group in arguments.inplace_buffers.values()
                      if hasattr(group, "other_names") for name in group.other_names}  # fmt: skip
        # A node that writes into another's buffer has a name of its own for it.
        self.other |= graph.scheduler.mutation_real_name
        self.dtypes = {name: graph.get_dtype(name) for node in nodes for name in node.get_buffer_names()}
        self.layouts = {name: graph.get_buffer(name).get_layout() for name in self.dtypes}

    def __call__(self, *values: Any) -> None:
        memory: dict[str, Any] = dict(zip(self.names, values))
        symbols = {sympy.Symbol(name, integer=True): memory[name] for name in self.symbols if name in memory}
        symbols |= {symbol: value for value, symbol in _passed(self.nodes, memory)}
        for node in self.nodes:
            self._run(node, memory, dict(symbols))
        self.counts.kernels += 1

    def _run(self, node: Any, memory: dict[str, Any], symbols: dict[sympy.Symbol, Any]) -> None:
        def number(size: Any) -> int:
            return int(sympy_interp(PythonReferenceAnalysis, symbols, sympy.sympify(size)))

        for name, passed in self.other.items():
            if passed in memory:
                memory.setdefault(name, memory[passed])
        for name in node.get_buffer_names():  # buffers that fusion made local are in no argument
            if name not in memory:
                layout = self.layouts[name]
                extent = 1 + sum((number(s) - 1) * number(t) for s, t in zip(layout.size, layout.stride))
                memory[name] = torch.empty(max(extent, 1), dtype=self.dtypes[name])
        body = node._body
        sizes = [number(size) for group in body.sizes for size in group]
        if 0 in sizes[: len(body.sizes[0])]:
            return
        variables = [sympy.Symbol(f"dim{place}", integer=True) for place in range(len(sizes))]
        for place, (variable, size) in enumerate(zip(variables, sizes)):
            symbols[variable] = torch.arange(size).view([-1 if other == place else 1 for other in range(len(sizes))])
        outer = len(body.sizes[0])
        with V.set_ops_handler(_Handler(memory, symbols, sizes, outer)):
            body(variables[:outer], variables[outer:])


def _passed(nodes: Sequence[Any], memory: dict[str, Any]) -> Iterator[tuple[Any, sympy.Symbol]]:
    """Size symbols of the bodies, by the name under which their values are passed."""
    for node in nodes:
        exprs = [*node._body.indexing_exprs.values(), *(size for group in node._body.sizes for size in group)]
        for expr in exprs:
            for symbol in getattr(expr, "free_symbols", ()):
                if str(symbol) in memory:
                    yield memory[str(symbol)], symbol


def _key(text: str) -> str:
    return re.sub(r"\s+", "", text)


@contextlib.contextmanager
def installed(counts: Counts) -> Iterator[None]:
    """While it lasts, kernels are interpreted; what cannot be is compiled, and named in ``counts``."""
    known: dict[str, _Kernel] = {}
    define, compile_kernel = CppScheduling.define_kernel, AsyncCompile.cpp_pybinding

    def define_kernel(self: Any, source: str, nodes: Any, kernel_args: Any = None) -> str:
        name = str(define(self, source, nodes, kernel_args))
        text = source.replace(str(Placeholder.KERNEL_NAME), "kernel").replace(str(Placeholder.DESCRIPTIVE_NAME), name)
        if kernel_args is None:  # templates have arguments, and code, of their own
            known[_key(text.replace("#pragma CMT", "//"))] = _Kernel(nodes, self.kernel_group.args, V.graph, counts)
        return name

    def cpp_pybinding(self: Any, argtypes: list[str], source: str) -> Any:
        kernel = known.get(_key(source))
        compiled: list[Any] = []

        def run(*values: Any) -> Any:
            if kernel is not None and not compiled:
                started = time.process_time()
                try:
                    return kernel(*values)
                except NotInterpreted as what:
                    counts.refused.append(str(what))
                finally:
                    counts.seconds += time.process_time() - started
            elif kernel is None:
                counts.refused.append("template")
            if not compiled:
                compiled.append(compile_kernel(self, argtypes, source))
            return compiled[0](*values)

        return run

    with (
        mock.patch.object(CppScheduling, "define_kernel", define_kernel),
        mock.patch.object(AsyncCompile, "cpp_pybinding", cpp_pybinding),
    ):
        yield
