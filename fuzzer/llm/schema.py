"""JSON schemas, the plain part that every server knows, and a check of answers against them.

Servers ignore keywords silently, so whatever a model answers is validated here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def record(**properties: Schema) -> dict[str, Any]:
    """An object with exactly these properties, as servers that enforce schemas strictly want it."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def listing(items: Schema, most: int, fewest: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "minItems": fewest, "maxItems": most}


def choice(names: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def fault(value: Any, schema: Schema, where: str = "answer") -> str:
    """What is wrong with a value, in a few words; "" when it fits."""
    if "anyOf" in schema:
        faults = [fault(value, option, where) for option in schema["anyOf"]]
        return "" if "" in faults else faults[-1]
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: {str(value)[:40]!r} is not one of those allowed"
    wanted = schema.get("type")
    if wanted:
        fits = isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        if not fits:
            return f"{where}: not a value of type {wanted}"
    if wanted == "array":
        return _list_fault(value, schema, where)
    if wanted == "object":
        return _object_fault(value, schema, where)
    return ""


def _list_fault(value: list[Any], schema: Schema, where: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{where}: {len(value)} items"
    for index, item in enumerate(value):
        if found := fault(item, schema.get("items", {}), f"{where}[{index}]"):
            return found
    return ""


def _object_fault(value: dict[str, Any], schema: Schema, where: str) -> str:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where}: {name!r} is missing"
    for name, item in value.items():
        if name in known:
            if found := fault(item, known[name], f"{where}.{name}"):
                return found
        elif schema.get("additionalProperties") is False:
            return f"{where}: unknown key {str(name)[:40]!r}"
    return ""


class NoJson(ValueError):
    """The answer holds no JSON value that fits; the message says why."""


def read_json(text: str, schema: Schema | None = None) -> Any:
    """The JSON value in an answer, whether bare, fenced or within prose, checked against the schema.

    Raises:
        NoJson: none that fits.
    """
    why = "no JSON in the answer"
    for candidate in _candidates(text):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError) as error:
            why = f"not valid JSON ({error})"
            continue
        why = fault(value, schema) if schema else ""
        if not why:
            return value
    raise NoJson(why)


def _candidates(text: str) -> list[str]:
    stripped = text.strip()
    fenced = re.findall(r"```(?:json)?\s*\n(.*?)```", stripped, re.DOTALL)
    opening, closing = stripped.find("{"), stripped.rfind("}")
    within = [stripped[opening : closing + 1]] if 0 <= opening < closing else []
    return list(dict.fromkeys([stripped, *fenced, *within]))
