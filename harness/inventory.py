"""What a torch's compiler consists of, as names: schemas, lowerings, decompositions, fallbacks, and where they stand.

A script of its own: ``python -I inventory.py`` prints one JSON object. It only says which function implements what;
sources are compared by whoever reads it, with one Python's parser for both sides.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

#: How deep to follow the functions that a function encloses: ``make_pointwise(fn)`` is what its ``fn`` is.
_DEPTH = 3

#: (path below torch's folder, qualified name); of a plain value that a function encloses, ("", what it is).
Place = tuple[str, str]
_PLAIN = (bool, int, float, str)


def main() -> int:
    import torch

    root = Path(torch.__file__).parent
    found: dict[str, Any] = {
        "torch": torch.__version__,
        "git": str(getattr(torch.version, "git_version", "")),
        "root": str(root),
        "schemas": schemas(),
    }
    from torch._inductor import decomposition, lowering

    found["lowerings"] = _table(lowering.lowerings, root)
    found["decompositions"] = _table(decomposition.decompositions, root)
    found["fallbacks"] = sorted({_name(key) for key in getattr(lowering, "fallbacks", ())} - {""})
    json.dump(found, sys.stdout)
    return 0


def schemas() -> dict[str, str]:
    """Operator with overload, ``aten.add.Tensor``, → its schema; namespaces that torch itself fills."""
    import torch

    found = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space in ("aten", "prims", "quantized", "torchvision", "inductor", "mkldnn", "onednn"):
            found[f"{space}.{name}.{schema.overload_name or 'default'}"] = str(schema)
    return found


def _table(table: Mapping[Any, Callable[..., Any]], root: Path) -> dict[str, list[Place]]:
    found = {}
    for key, function in table.items():
        name = _name(key)
        if name:
            found[name] = sorted(set(places(function, root)))
    return found


def _name(key: Any) -> str:
    """``aten.add.Tensor`` for an overload, ``aten.add`` for a packet; "" for what is neither."""
    text = str(key)
    return text.removeprefix("torch._ops.") if text.count(".") >= 1 and " " not in text else ""


def places(function: Any, root: Path, depth: int = _DEPTH) -> Iterator[Place]:
    """Where a function and the functions that it encloses are written, those outside torch left out; values that it
    encloses, such as the dtype that a lowering is made for."""
    function = _plain(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return
    try:
        path = Path(code.co_filename).resolve().relative_to(root.resolve())
    except ValueError:
        path = None  # generated, or of another package
    if path is not None:
        yield path.as_posix(), function.__qualname__
    for name, value in _enclosed(function):
        if value is None or value is False:  # an option not taken: newer versions have more of them
            continue
        if isinstance(value, _PLAIN) or type(value).__module__ == "torch":  # a dtype, a memory format
            yield "", f"{name}={value!r}"
        elif depth and (inspect.isfunction(value) or hasattr(value, "__wrapped__")):
            yield from places(value, root, depth - 1)


def _plain(function: Any) -> Any:
    """Without decorators that say what they wrap, and without ``functools.partial``."""
    for _ in range(20):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None or not callable(inner):
            break
        function = inner
    return function if inspect.isfunction(function) else getattr(function, "__func__", function)


def _enclosed(function: Any) -> Iterable[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue


if __name__ == "__main__":
    sys.exit(main())
