"""Runs a script as ``__main__`` and records the calls of torch that it makes. Needs nothing but torch.

``python tracing.py RECORD SCRIPT [ARGS…]``. RECORD becomes JSON lines; the script's own output, exit code and files are
its own. A line is a call, in the order in which they were first made::

    {"n": 7, "op": "torch.nn.functional.linear", "args": [ARG, …], "kwargs": {name: ARG}, "no_grad": true}

ARG is ``{"t": "tensor", "leaf": 3 | "from": [call, output], "shape", "stride", "dtype", "grad", "low", "high"}`` (with
bounds where the values are real and finite), ``{"t": "literal", "text": "(1, 2)"}`` or ``{"t": "list", "items":
[ARG, …], "tuple": bool}``. ``from`` names the call that made the tensor, ``leaf`` numbers tensors that no recorded call
made, such as those of ``torch.ones``. The last line is ``{"end": {"calls", "distinct", "unrecorded", "error"}}``.

A call that equals an earlier one, its producers included, is counted and not written: a loop of training steps leaves
the calls of its first steps.
"""

from __future__ import annotations

import json
import os
import sys
import types
import weakref
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name

#: Distinct calls kept of one script.
_CALLS = 4000
#: Calls kept that differ only in who made their arguments: a recurrent loop is a chain without end otherwise.
_ALIKE = 4
_ELEMENTS = 1 << 22  # larger tensors keep no bounds

#: What reads or shows a tensor, or steers autograd: no step of a computation.
_IGNORED = frozenset(
    [
        "size",
        "dim",
        "stride",
        "numel",
        "storage_offset",
        "item",
        "tolist",
        "numpy",
        "backward",
        "data_ptr",
        "untyped_storage",
        "storage",
        "element_size",
        "register_hook",
        "retain_grad",
        "requires_grad_",
        "ndimension",
        "nelement",
        "get_device",
        "type",
        "is_contiguous",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_pinned",
        "is_shared",
        "is_sparse",
        "is_same_size",
        "is_inference",
        "is_conj",
        "is_neg",
        "is_set_to",
        "__repr__",
        "__format__",
        "__len__",
        "__bool__",
        "__int__",
        "__float__",
        "__index__",
        "__hash__",
        "__iter__",
        "__contains__",
        "__deepcopy__",
        "__reduce_ex__",
        "__dir__",
        "__array__",
        "__dlpack__",
        "has_names",
        "is_nonzero",
        "is_tensor",
        "is_storage",
        "manual_seed",
        "seed",
        "set_grad_enabled",
        "is_grad_enabled",
        "cuda",
        "pin_memory",
        "share_memory_",
        "set_",
        "result_type",
        "promote_types",
        "can_cast",
    ]
)
_PROPERTIES = frozenset(["T", "mT", "H", "mH", "real", "imag"])


class Recorder(TorchFunctionMode):
    """Writes each new call to ``file``. Sees calls from Python only: what an operator calls inside is its own."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self.file = file
        self.calls = 0
        self.distinct = 0
        self.unrecorded = 0
        self._leaves = 0
        self._seen: dict[str, int] = {}
        self._alike: dict[str, list[int]] = {}
        self._made: dict[int, tuple[Any, tuple[str, Any]]] = {}  # id → (weak reference, ("from", …) or ("leaf", …))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name_of(func)
        if not name:
            return func(*args, **kwargs)
        number = None
        try:
            number = self._record(name, args, kwargs)
        except Exception:  # a stranger's object may refuse anything, and the script must not notice
            self.unrecorded += 1
        result = func(*args, **kwargs)
        if number is not None:
            self._note_results(name, number, args, result)
        return result

    def _record(self, name: str, args: Any, kwargs: Any) -> int | None:
        """The call's number; None for one without a tensor (what it makes is an input like any other)."""
        self._tensors: list[tuple[dict[str, Any], torch.Tensor]] = []
        call = {"op": name, "args": [self._argument(item) for item in args],
                "kwargs": {key: self._argument(item) for key, item in kwargs.items()},
                **({} if torch.is_grad_enabled() else {"no_grad": True})}  # fmt: skip
        if not self._tensors:
            return None
        self.calls += 1
        with torch.no_grad():
            return self._number(call)

    def _note_results(self, name: str, number: int, args: Any, result: Any) -> None:
        made = list(result) if isinstance(result, (tuple, list)) else [result]
        updated = args[0] if args and name.endswith("_") else None  # a parameter stays one after its update
        for index, item in enumerate(made):
            if not isinstance(item, torch.Tensor):
                continue
            leaf = bool(item.is_leaf and item.requires_grad)
            if item is not updated or not leaf:
                self._remember(item, ("from", [number, index if isinstance(result, (tuple, list)) else -1]))

    def _number(self, call: dict[str, Any]) -> int | None:
        """The number of an equal call, or of this one, which is then written; None where nothing more is kept."""
        deep = json.dumps(_without(call, ("leaf",)), sort_keys=True)
        if deep in self._seen:
            return self._seen[deep]
        shallow = json.dumps(_without(call, ("leaf", "from")), sort_keys=True)
        alike = self._alike.setdefault(shallow, [])
        if len(alike) >= _ALIKE:
            return alike[0]
        if self.distinct >= _CALLS:
            return None
        number = self.distinct
        self.distinct += 1
        alike.append(number)
        self._seen[deep] = number
        for record, tensor in self._tensors:
            record.update(_bounds(tensor))
        self.file.write(json.dumps({"n": number, **call}) + "\n")
        self.file.flush()  # a script that is killed leaves what it did till then
        return number

    # -- arguments ------------------------------------------------------------------------------------------------

    def _argument(self, value: Any) -> dict[str, Any]:
        """Raises ``TypeError`` for what a program could not spell."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)) and any(isinstance(item, (torch.Tensor, list, tuple)) for item in value):
            items = [self._argument(item) for item in value]
            return {"t": "list", "items": items, "tuple": isinstance(value, tuple)}
        return {"t": "literal", "text": literal(value)}

    def _tensor(self, value: torch.Tensor) -> dict[str, Any]:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            raise TypeError("a tensor subclass, or not strided")
        where = self._made.get(id(value))
        if where is None or where[0]() is not value:
            self._remember(value, ("leaf", self._leaves))
            self._leaves += 1
            where = self._made[id(value)]
        key, origin = where[1]
        record = {"t": "tensor", key: origin, "shape": list(value.shape), "stride": list(value.stride()),
                  "dtype": str(value.dtype).removeprefix("torch."), "grad": bool(value.requires_grad)}  # fmt: skip
        self._tensors.append((record, value))
        return record

    def _remember(self, value: torch.Tensor, origin: tuple[str, Any]) -> None:
        key = id(value)
        self._made[key] = (weakref.ref(value, lambda _gone: self._made.pop(key, None)), origin)


def _name_of(func: Any) -> str:
    """The public name of a callable ("torch.Tensor.add"), or nothing for what is not recorded."""
    name = resolve_name(func) or ""
    parts = name.split(".")
    if parts[-1] in ("__get__", "__set__", "__delete__"):
        return ".".join(parts[:-1]) if parts[-1] == "__get__" and parts[-2] in _PROPERTIES else ""
    return "" if parts[-1] in _IGNORED or name.startswith("torch.nn.init.") else name


def _without(call: Any, hidden: tuple[str, ...]) -> Any:
    """The call without some keys of its arguments."""
    if isinstance(call, dict):
        return {key: _without(item, hidden) for key, item in call.items() if key not in hidden}
    return [_without(item, hidden) for item in call] if isinstance(call, list) else call


def _bounds(value: torch.Tensor) -> dict[str, Any]:
    """Smallest and largest element: what an index, a probability, a mask needs to be valid."""
    if not 0 < value.numel() <= _ELEMENTS or value.is_complex() or value.device.type == "meta":
        return {}
    wide = value.detach().to(torch.float64) if value.is_floating_point() else value.detach().to(torch.int64)
    if value.is_floating_point():
        wide = wide[wide.isfinite()]
        if not wide.numel():
            return {}
    low, high = wide.min().item(), wide.max().item()
    return {"low": round(low, 4), "high": round(high, 4)}


def literal(value: Any) -> str:
    """Source text of a plain value, valid after ``import torch``. Raises ``TypeError`` for anything else."""
    if value is None or value is Ellipsis or isinstance(value, (bool, int, str)):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, float):
        return repr(value) if value == value and abs(value) != float("inf") else f"float({str(value)!r})"
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, torch.device):
        return '"cpu"'
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, (tuple, list)):
        texts = [literal(item) for item in value]
        if isinstance(value, tuple):
            return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
        return f"[{', '.join(texts)}]"
    raise TypeError(f"no literal for {type(value).__name__}")


def run(script: str, arguments: list[str], recorder: Recorder) -> tuple[int, str]:
    """Run the script as ``python SCRIPT ARGS`` would. Returns (exit status, one line of its error or "")."""
    with open(script, "rb") as file:
        source = file.read()
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        code = compile(source, script, "exec")
        with recorder:
            exec(code, module.__dict__)
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None), ""
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)  # what the script's user would have seen
        return 130 if isinstance(error, KeyboardInterrupt) else 1, " ".join(f"{type(error).__name__}: {error}".split())[
            :300
        ]
    return 0, ""


def main(arguments: list[str]) -> int:
    record, script, *rest = arguments
    with open(record, "w", encoding="utf-8") as file:
        recorder = Recorder(file)
        status, error = run(script, rest, recorder)
        end = {
            "calls": recorder.calls,
            "distinct": recorder.distinct,
            "unrecorded": recorder.unrecorded,
            "error": error,
        }
        file.write(json.dumps({"end": end}) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
