"""Candidates from what PyTorch tests itself with: the operator and module databases of ``torch.testing``.

They need test-only packages that a target lacks; stand-ins are put into ``sys.modules``, so this must only be used
in a process that does nothing else afterwards.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import itertools
import re
import sys
import types
import unittest
from typing import Any

import torch

from harness.catalogue.measure import Candidate, DroppedError, main_dtype
from harness.catalogue.record import UnrecordableError, describe, kind_of, literal, name_of

#: Samples looked at per operator: enough to meet every keyword, some operators have 700.
MOST_SAMPLES = 250

#: Not programs for a compiler of dense CPU or GPU code: sparse, run-time CUDA source, other devices' kernels.
_EXCLUDED = re.compile(
    r"^broadcast_shapes$|sparse|jiterator|nested|cudnn|miopen|flash_attention|efficient_attention|cutlass|polygamma.*_n_[1-9]"
)

#: Lazy modules have no weights until they run; the others' samples are not plain text (``extra`` has them).
_SKIPPED_MODULES = re.compile(r"Lazy|FractionalMaxPool|nn\.TransformerEncoder$")


class _Permissive(type):
    """A class whose every attribute is another such class; it can be called, subscripted and compared."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Permissive(name, (_Anything,), {})

    def __getitem__(cls, key: Any) -> Any:
        return cls


class _Anything(metaclass=_Permissive):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()

    def _never(self, other: Any) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _never


class _StandIn(types.ModuleType):
    """A module in whose stead anything is found, for packages only touched by what is never called here."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Permissive(name, (_Anything,), {})


def install_stand_ins() -> list[str]:
    """Put stand-ins for missing test-only packages into ``sys.modules``; returns their names."""
    # The compiler looks for numpy too, and must find the truth: import it first.
    importlib.import_module("torch._inductor.lowering")
    importlib.import_module("torch._inductor.decomposition")
    missing = []
    for name in ("expecttest", "numpy"):
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
            sys.modules[name] = _StandIn(name)
    if "expecttest" in missing:
        vars(sys.modules["expecttest"])["TestCase"] = unittest.TestCase
    if "numpy" in missing:
        typing = sys.modules["numpy.typing"] = _StandIn("numpy.typing")
        real = {"__version__": "2.0.0", "inf": float("inf"), "nan": float("nan"), "pi": 3.141592653589793}
        vars(sys.modules["numpy"]).update(real, typing=typing)
    return missing


def operator_jobs(device: str) -> list[Any]:
    """Functions, one an OpInfo entry, that each make a ``Candidate`` or raise ``DroppedError``."""
    database = importlib.import_module("torch.testing._internal.common_methods_invocations").op_db
    return [functools.partial(_operator, op, device) for op in database if not _EXCLUDED.search(op.full_name)]


def module_jobs(device: str) -> list[Any]:
    """The same for the module database."""
    database = importlib.import_module("torch.testing._internal.common_modules").module_db
    return [functools.partial(_module, info, device) for info in database if not _SKIPPED_MODULES.search(info.name)]


def _operator(op: Any, device: str) -> Candidate:
    main = main_dtype(set(op.supported_dtypes(device)))
    if main is None:
        raise DroppedError(f"supports no dtype on {device}")
    calls, exact, kinds = [], [], []
    grad = op.supports_autograd and (main.is_floating_point or main.is_complex)
    for sample in itertools.islice(op.sample_inputs(device, main, requires_grad=grad), MOST_SAMPLES):
        values = ((sample.input, *sample.args), sample.kwargs)
        try:
            call, precise = _describe_call(*values), _describe_call(*values, exact=True)
        except UnrecordableError:
            continue
        calls.append(call)
        exact.append(precise)
        kinds.append(functools.partial(_genuine, op, sample))
    base = op.name.rsplit(".", 1)[-1]
    return Candidate(
        name=op.name,
        variant=op.variant_test_name,
        primary=_callables(op.name),
        more=_other_forms(op.name),
        calls=calls,
        exact=exact,
        kinds=kinds,
        main=name_of(main),
        schema_names=[op.name.replace(".", "_"), base, f"_{base}"],
    )


def _genuine(op: Any, sample: Any) -> list[tuple[Any, ...]]:
    return kind_of(op.op(sample.input, *sample.args, **sample.kwargs))


def _describe_call(args: Any, kwargs: Any, exact: bool = False) -> dict[str, Any]:
    return {
        "args": [describe(value, exact) for value in args],
        "kwargs": {name: describe(value, exact) for name, value in kwargs.items()},
    }


def resolve(path: str) -> Any:
    """``torch.nn.functional.relu`` as an object. Raises ``AttributeError``."""
    value: Any = torch
    for part in path.split(".")[1:]:
        value = getattr(value, part)
    return value


def _callables(name: str) -> list[dict[str, Any]]:
    """Ways to write the operator as a function, most natural first."""
    forms = []
    for path in (f"torch.{name}", f"torch.Tensor.{name}", f"torch.Tensor.{name}_", f"torch.ops.aten.{name}"):
        try:
            found = resolve(path)
        except AttributeError:
            continue
        if callable(found):
            forms.append({"form": "function", "text": path})
        elif path.startswith("torch.Tensor."):  # an attribute: x.T
            forms.append({"form": "operator", "text": f"{{0}}.{name}"})
    return forms


def _other_forms(name: str) -> list[dict[str, Any]]:
    base = name.rsplit(".", 1)[-1]
    named = "" if name.startswith(("linalg.", "fft.", "special.", "signal.", "masked.")) else base
    forms = []
    if named and callable(getattr(torch.Tensor, named, None)):
        forms.append({"form": "method", "text": named})
    if named and callable(getattr(torch.Tensor, f"{named}_", None)):
        forms.append({"form": "inplace", "text": f"{named}_"})
    forms += [{**form, "form": "out"} for form in _callables(name)[:1] if form["form"] == "function"]
    if name.startswith("nn.functional."):
        wanted = base.replace("_", "").lower()
        for module in vars(torch.nn):
            if module.lower() == wanted and isinstance(getattr(torch.nn, module), type):
                forms.append({"form": "module", "text": f"torch.nn.{module}()"})
    return forms


def _module(info: Any, device: str) -> Candidate:
    """A module class: one form per way to construct it, each with the inputs that its tests give it."""
    forms: dict[str, list[int]] = {}
    calls: list[dict[str, Any]] = []
    for training in (True, False):
        samples = info.module_inputs_func(
            info, device=device, dtype=torch.float32, requires_grad=False, training=training
        )
        for sample in samples:
            if sample.forward_input is None:
                continue
            made, given = sample.constructor_input, sample.forward_input
            try:
                text = f"torch.{info.name}({_arguments(made.args, made.kwargs)})"
                call = _describe_call(given.args, given.kwargs)
            except UnrecordableError:
                continue
            if call not in calls:
                calls.append(call)
            held = forms.setdefault(text, [])
            if calls.index(call) not in held:
                held.append(calls.index(call))
    primary = [{"form": "module", "text": text, "calls": held[:2]} for text, held in list(forms.items())[:6]]
    return Candidate(info.name, "", primary, [], calls, fixed=True)


def _arguments(args: Any, kwargs: Any) -> str:
    plain = {name: value for name, value in kwargs.items() if name not in ("device", "dtype")}
    return ", ".join([*map(literal, args), *(f"{name}={literal(value)}" for name, value in plain.items())])
