"""Runs one side of a program (eager, compiled, float64, …) and collects what it produced."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.compare import flatten

#: Reseeded before every build and every call, so that eager and compiled draw the same numbers.
SEED = 20260101

#: Threads of generated code, unless a program says otherwise. The fork server runs one thread, and with one thread
#: Inductor never writes its parallel code, which is what every user runs; loops too small for threads stay serial.
GENERATED_THREADS = 2


@dataclass
class Result:
    """What one call produced, as (path, value) leaves."""

    outputs: list[tuple[str, Any]] = field(default_factory=list)
    gradients: list[tuple[str, Any]] = field(default_factory=list)
    inputs: list[tuple[str, Any]] = field(default_factory=list)  # after the call
    rng: int = 0  # checksum of the default generator's state after the call

    def leaves(self) -> list[tuple[str, Any]]:
        return self.outputs + self.gradients + self.inputs


class Program:
    """A program's text, executed as a module of its own."""

    def __init__(self, text: str, path: str) -> None:
        module = types.ModuleType("program")
        module.__file__ = path
        sys.modules[module.__name__] = module  # classes and guards of the program look their module up by name
        exec(compile(text, path, "exec"), module.__dict__)
        self.fn: Callable[..., Any] = module.__dict__["fn"]
        self.meta: dict[str, Any] = dict(module.__dict__.get("META", {}))
        self._build = module.__dict__["build_inputs"]
        self._build2 = module.__dict__.get("build_inputs2")
        self.module = module

    @property
    def has_second(self) -> bool:
        return self._build2 is not None

    @property
    def mode(self) -> str:
        return str(self.meta.get("mode", "forward"))

    @property
    def wants_gradients(self) -> bool:
        return self.mode in ("backward", "train")

    def inputs(self, second: bool = False) -> tuple[Any, ...]:
        """Fresh inputs. Raises whatever the program raises, ``TypeError`` when the result is no tuple or list."""
        torch.manual_seed(SEED)
        build = self._build2 if second and self._build2 is not None else self._build
        built = build()
        if isinstance(built, torch.Tensor) or not isinstance(built, (tuple, list)):
            raise TypeError(f"build_inputs returned {type(built).__name__}; it must return a tuple")
        for item in built:
            if isinstance(item, torch.nn.Module):
                item.train(self.mode == "train" or (self.mode == "backward" and item.training))
        return tuple(built)


def mark_dynamic(inputs: tuple[Any, ...], meta: dict[str, Any]) -> None:
    """``META["mark_dynamic"]``: (input, dimension) pairs whose sizes the compiler is to treat as symbols."""
    for number, dim in meta.get("mark_dynamic", ()):
        value = inputs[number] if number < len(inputs) else None
        if isinstance(value, torch.Tensor) and dim < value.dim():
            torch._dynamo.mark_dynamic(value, dim)


@contextlib.contextmanager
def patched(meta: dict[str, Any], extra_inductor: dict[str, Any]) -> Iterator[None]:
    """The program's own configuration (``inductor_config``, ``dynamo_config``, ``functorch_config``) in force."""
    with contextlib.ExitStack() as stack:
        inductor = {"cpp.threads": GENERATED_THREADS, **meta.get("inductor_config", {}), **extra_inductor}
        if meta.get("random"):
            inductor.setdefault("fallback_random", True)
        for module_name, patches in (
            ("torch._inductor.config", inductor),
            ("torch._dynamo.config", meta.get("dynamo_config", {})),
            ("torch._functorch.config", meta.get("functorch_config", {})),
        ):
            if patches:
                module = __import__(module_name, fromlist=["patch"])
                stack.enter_context(module.patch(patches))
        yield


def call(
    fn: Callable[..., Any],
    inputs: tuple[Any, ...],
    meta: dict[str, Any],
    gradients: bool,
    on_backward: Callable[[], None] = lambda: None,
) -> Result:
    """Call ``fn`` and, where asked, run backward; collect outputs, gradients and the inputs as the call left them."""
    torch.manual_seed(SEED)
    if meta.get("no_grad"):
        with torch.no_grad():
            value = fn(*inputs)
    else:
        value = fn(*inputs)
    result = Result(outputs=list(flatten("out", value)), rng=_rng_checksum())
    if gradients:
        on_backward()
        _backward([leaf for _path, leaf in result.outputs])
        result.gradients = [
            (f"grad.{path}", leaf.grad)
            for path, leaf in flatten("in", inputs)
            if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.requires_grad
        ]
    result.inputs = list(flatten("in", inputs))
    return result


def _backward(outputs: list[Any]) -> None:
    """Backward of all differentiable outputs against fixed, uneven cotangents.

    A plain sum would send the same gradient everywhere, which hides transposed or permuted gradients.
    """
    roots = [item for item in outputs if isinstance(item, torch.Tensor) and item.requires_grad]
    roots = [item for item in roots if item.is_floating_point() or item.is_complex()]
    if roots:
        torch.autograd.backward(roots, [_cotangent(item) for item in roots])


def _cotangent(value: torch.Tensor) -> torch.Tensor:
    """Weights in [0.5, 1.5) that are exact in every floating dtype (multiples of 1/16) and differ by position."""
    steps = torch.arange(value.numel(), device=value.device) * 7 % 16
    return (0.5 + steps.to(torch.float32) / 16).to(value.dtype).reshape(value.shape)


def _rng_checksum() -> int:
    state = torch.get_rng_state()
    return hash(state.numpy().tobytes())
