"""Options that a test sets around its compiled call: what becomes of them in META."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzer.seeds.names import KEPT_CONTEXT, USELESS_OPTION, last_part
from fuzzer.seeds.source import SourceFile

_KEYS = {"inductor": "inductor_config", "dynamo": "dynamo_config", "functorch": "functorch_config"}


@dataclass(frozen=True)
class Frame:
    """What surrounds a statement: contexts entered, options patched."""

    no_grad: bool = False
    raises: bool = False  # an exception is expected
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    contexts: tuple[ast.expr, ...] = ()  # around the compiled call, such as autocast
    compiled: ast.Call | None = None  # inside ``with torchdynamo.optimize(…):``

    def patched(self, key: str, changes: dict[str, Any]) -> Frame:
        kept = {name: value for name, value in changes.items() if not USELESS_OPTION.match(name)}
        if not kept:
            return self
        return replace(self, configs={**self.configs, key: {**self.configs.get(key, {}), **kept}})

    def enter(self, context: ast.expr, source: SourceFile) -> Frame:
        """The frame inside ``with context:`` (or under the decorator ``@context``)."""
        name = last_part(context.func) if isinstance(context, ast.Call) else last_part(context)
        if name == "no_grad":
            return replace(self, no_grad=True)
        if name.startswith("assertRaises") or name in ("raises", "assertWarns") or name.startswith("expectedFailure"):
            return replace(self, raises=True)
        if not isinstance(context, ast.Call):
            return self
        if name == "set_grad_enabled" and ast.unparse(context.args[0] if context.args else context) == "False":
            return replace(self, no_grad=True)
        if name in ("patch", "object") and isinstance(context.func, ast.Attribute):
            return self._patch(context, source)
        if KEPT_CONTEXT.match(source.full_name(context.func)):
            return replace(self, contexts=(*self.contexts, context))
        return self

    def _patch(self, call: ast.Call, source: SourceFile) -> Frame:
        """``config.patch({…})``, ``config.patch("a", 1)``, ``config.patch(a=1)``, ``patch.object(config, "a", 1)``."""
        assert isinstance(call.func, ast.Attribute)
        args = list(call.args)
        owner = args.pop(0) if call.func.attr == "object" and args else call.func.value
        path = source.full_name(owner)
        key = next((value for word, value in _KEYS.items() if word in path), "")
        if not key or "config" not in path:
            return self
        changes: dict[str, Any] = {}
        prefix = path.partition("config.")[2]  # ``patch.object(config.cpp, "simdlen", 1)``
        if len(args) == 1:
            changes.update(_literal(args[0]) or {})
        elif len(args) >= 2:
            name, value = _literal(args[0]), _literal(args[1])
            if isinstance(name, str) and value is not None:
                changes[name] = value
        for keyword in call.keywords:
            value = _literal(keyword.value)
            if keyword.arg and value is not None:
                changes[keyword.arg] = value
        return self.patched(key, {f"{prefix}.{name}".lstrip("."): value for name, value in changes.items()})


def decorated(decorators: Sequence[ast.expr], source: SourceFile) -> Frame:
    """The frame of a test under its decorators."""
    frame = Frame()
    for decorator in reversed(decorators):
        frame = frame.enter(decorator, source)
    return replace(frame, contexts=())


def compile_settings(keywords: Sequence[ast.keyword]) -> dict[str, Any]:
    """Keyword arguments of torch.compile that a program keeps, from those of any of its spellings."""
    kept: dict[str, Any] = {}
    for keyword in keywords:
        value = _literal(keyword.value)
        if value is None:
            continue
        if keyword.arg in ("nopython", "fullgraph") and value is True:
            kept["fullgraph"] = True
        elif keyword.arg == "dynamic" and isinstance(value, bool):
            kept["dynamic"] = value
        elif keyword.arg == "mode" and isinstance(value, str) and value != "default":
            kept["mode"] = value
        elif keyword.arg == "options" and isinstance(value, dict):
            options = {str(name): item for name, item in value.items() if not USELESS_OPTION.match(str(name))}
            if options:
                kept["options"] = options
    if "options" in kept:
        kept.pop("mode", None)  # torch refuses both
    return kept


def _literal(node: ast.expr) -> Any:
    """The plain value, or None: None itself is an option's default in most cases, so nothing is lost."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
