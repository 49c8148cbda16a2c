"""Inductor's CPU kernels without a C++ compiler: the loop-level IR of each, executed on torch tensors.

Inductor does all that it does, code generation included; only where a kernel would be compiled, a function takes its
place that walks the kernel's loop bodies, each over its whole iteration space at once. What is wrong in lowering,
scheduling or loop bodies is wrong here as well; what is wrong in the C++ alone is not. Costs: some 10 ms a program in
place of 0.3 s a kernel (``python -m benchmarks.ir_interpreter``).

Nothing here decides anything: what looks wrong is judged again with compiled kernels (see ``fuzzer.examine``).
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import sympy
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.utils import Placeholder
from torch._inductor.virtualized import V
from torch.utils._python_dispatch import _disable_current_modes as disable_current_modes
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis


class NotInterpreted(Exception):
    """An operation that this interpreter has no words for. ``str()`` names it."""


@dataclass
class Counts:
    """What was interpreted: calls of kernels, their processor seconds, and why the others were compiled."""

    kernels: int = 0
    cpu: float = 0.0
    refused: list[str] = field(default_factory=list)


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
_FOLDS: dict[str, Callable[..., Any]] = {
    "sum": torch.sum,
    "prod": torch.prod,
    "max": torch.amax,
    "min": torch.amin,
    "any": torch.any,
}


class _Index(PythonReferenceAnalysis):
    """Index expressions over numbers and tensors of numbers; torch's own knows no tensors in these."""

    @staticmethod
    def modular_indexing(a: Any, base: Any, modulus: Any) -> Any:
        return (a // base) % modulus

    @staticmethod
    def minimum(a: Any, b: Any) -> Any:
        return _elementwise(torch.minimum, min, a, b)

    @staticmethod
    def maximum(a: Any, b: Any) -> Any:
        return _elementwise(torch.maximum, max, a, b)


def _elementwise(of_tensors: Callable[..., Any], of_numbers: Callable[..., Any], a: Any, b: Any) -> Any:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return of_tensors(torch.as_tensor(a), torch.as_tensor(b))
    return of_numbers(a, b)


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
        return sympy_interp(_Index, self.symbols, expr) if isinstance(expr, sympy.Basic) else expr

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
        symbol = sympy.Symbol(f"gathered{len(self.symbols)}", integer=True)
        self.symbols[symbol] = index
        return symbol

    def _flat(self, name: str) -> torch.Tensor:
        tensor = self.memory[name]
        elements = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
        return torch.as_strided(tensor, (elements,), (1,), tensor.storage_offset())

    def check_bounds(self, expr: Any, size: Any, lower: bool, upper: bool) -> None:
        index, length = torch.as_tensor(self._value(expr)), self._value(size)
        inside = (index >= 0 if lower else torch.tensor(True)) & (index < length if upper else torch.tensor(True))
        if not bool(torch.all(inside | ~self.masks[-1] if self.masks else inside)):
            raise IndexError("index out of range")

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
        values = value.to(flat.dtype).expand(sizes).clone()  # what was loaded may be a view of what is written
        flat.index_put_((where,), values, accumulate=mode == "atomic_add")

    def masked(self, mask: torch.Tensor, body: Callable[[], Any], other: Any) -> torch.Tensor:
        self.masks.append(mask & self.masks[-1] if self.masks else mask)
        try:
            value = body()
        finally:
            self.masks.pop()
        return torch.where(mask, value, torch.tensor(other, dtype=value.dtype))

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Any:
        dims = tuple(range(self.outer, len(self.sizes)))
        restored = (..., *[None] * len(dims))  # reduced dimensions, kept as ones
        if kind == "welford_combine":
            raise NotInterpreted(kind)
        whole = value.expand(self.sizes)
        if kind in _FOLDS:
            if kind == "prod":  # torch.prod folds one dimension
                flat = whole.flatten(self.outer) if dims else whole.unsqueeze(-1)
                return flat.prod(-1).to(dtype)[restored]
            folded: torch.Tensor = _FOLDS[kind](whole, dim=dims, keepdim=True) if dims else whole
            return folded.to(dtype)
        if kind in ("argmax", "argmin"):
            flat = whole.flatten(self.outer) if dims else whole.unsqueeze(-1)
            return getattr(torch, kind)(flat, dim=-1)[restored]
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

    # Inductor's own generator draws other numbers than eager does: nothing may depend on which.

    def load_seed(self, name: str, offset: Any) -> torch.Tensor:
        return self._flat(name)[int(self._value(offset))]

    def rand(self, seed: Any, offset: Any) -> torch.Tensor:
        return torch.rand(self.sizes, generator=_generator(seed))

    def randn(self, seed: Any, offset: Any) -> torch.Tensor:
        return torch.randn(self.sizes, generator=_generator(seed))

    def randint64(self, seed: Any, offset: Any, low: Any, high: Any) -> torch.Tensor:
        return torch.randint(int(low.max()), int(high.max()), self.sizes, generator=_generator(seed))


def _generator(seed: torch.Tensor) -> torch.Generator:
    return torch.Generator().manual_seed(int(seed) & (2**63 - 1))


class _Kernel:
    """What stands in for a compiled kernel: takes the same arguments."""

    def __init__(self, nodes: Sequence[Any], arguments: Any, graph: Any) -> None:
        _definitions, self.names, _types = arguments.cpp_argdefs()
        self.nodes = list(nodes)
        self.symbols = list(arguments.sizevars)
        # One name a piece of memory: what is written in place of a buffer is passed by its last name.
        self.other = {name: group.other_names[-1] for group in arguments.inplace_buffers.values()
                      if hasattr(group, "other_names") for name in group.other_names}  # fmt: skip
        # A node that writes into another's buffer has a name of its own for it.
        self.other |= graph.scheduler.mutation_real_name
        self.dtypes = {name: graph.get_dtype(name) for node in nodes for name in node.get_buffer_names()}
        self.layouts = {name: graph.get_buffer(name).get_layout() for name in self.dtypes}

    def __call__(self, *values: Any) -> None:
        memory: dict[str, Any] = dict(zip(self.names, values))
        symbols = {symbol: memory[str(symbol)] for symbol in self.symbols if str(symbol) in memory}
        for node in self.nodes:
            self._run(node, memory, dict(symbols))

    def _run(self, node: Any, memory: dict[str, Any], symbols: dict[sympy.Symbol, Any]) -> None:
        def number(size: Any) -> int:
            return int(sympy_interp(_Index, symbols, sympy.sympify(size)))

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


def _key(text: str) -> str:
    return re.sub(r"\s+", "", text)


class Interpreter:
    """Interprets the kernels of one child.

    Attributes:
        counts: what was done so far.
    """

    def __init__(self, unseen: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext) -> None:
        """``unseen()`` is entered around each kernel: what runs there is no part of torch's own doing."""
        self.counts = Counts()
        self._unseen = unseen
        self._known: dict[str, _Kernel] = {}

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, kernels are interpreted; what cannot be is compiled."""
        define, compile_kernel = CppScheduling.define_kernel, AsyncCompile.cpp_pybinding

        def define_kernel(scheduling: Any, source: str, nodes: Any, kernel_args: Any = None) -> str:
            name = str(define(scheduling, source, nodes, kernel_args))
            if kernel_args is None:  # templates have arguments, and code, of their own
                text = source.replace(str(Placeholder.KERNEL_NAME), "kernel")
                text = text.replace(str(Placeholder.DESCRIPTIVE_NAME), name).replace("#pragma CMT", "//")
                with contextlib.suppress(Exception):  # an IR that this module does not know: compiled
                    self._known[_key(text)] = _Kernel(nodes, scheduling.kernel_group.args, V.graph)
            return name

        def cpp_pybinding(pool: Any, argtypes: list[str], source: str) -> Any:
            return self._standing_in(self._known.get(_key(source)), lambda: compile_kernel(pool, argtypes, source))

        with (
            mock.patch.object(CppScheduling, "define_kernel", define_kernel),
            mock.patch.object(AsyncCompile, "cpp_pybinding", cpp_pybinding),
        ):
            yield

    def _standing_in(self, kernel: _Kernel | None, compile_kernel: Callable[[], Any]) -> Callable[..., Any]:
        compiled: list[Any] = []

        def run(*values: Any) -> Any:
            if not compiled and kernel is not None and self._interpret(kernel, values):
                return None
            if not compiled:
                self.counts.refused += ["no loop bodies"] * (kernel is None)
                compiled.append(compile_kernel())
            return compiled[0](*values)

        return run

    def _interpret(self, kernel: _Kernel, values: tuple[Any, ...]) -> bool:
        started = time.process_time()
        try:
            with self._unseen(), torch.no_grad(), disable_current_modes():
                kernel(*values)
            self.counts.kernels += 1
            return True
        except Exception as error:  # what the compiled kernel says counts: it may check the same bounds
            said = str(error) if isinstance(error, NotInterpreted) else type(error).__name__
            self.counts.refused.append(said[:60])
            return False
        finally:
            self.counts.cpu += time.process_time() - started
