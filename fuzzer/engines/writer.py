"""Renders the parts of a view as text, in the style of the code formatter: what a person would have typed."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from fuzzer.engines.block import Returns
from fuzzer.engines.statement import Statement, literal

#: A line longer than this is broken where that is easy (META, results).
WIDTH = 110
_STRING = re.compile(r"\"[^\"]*\"|'[^']*'")


def render_program(prelude: str, meta: dict[str, Any], functions: Sequence[str], tail: str) -> str:
    """The whole program: module-level text, META, the functions' texts, what follows them."""
    parts = [render_meta(meta)]
    if prelude:
        definitions = any(line.startswith(("def ", "class ", "@")) for line in prelude.splitlines())
        parts[0] = prelude + ("\n\n\n" if definitions else "\n\n") + parts[0]
    parts += [*functions, tail] if tail else functions
    return "\n\n\n".join(parts) + "\n"


def render_function(name: str, signature: str, body: Sequence[Statement], returns: Returns) -> str:
    """``def name(signature): …``"""
    lines: list[str] = []
    for index, statement in enumerate(body):
        apart = isinstance(statement.node, (ast.FunctionDef, ast.ClassDef))  # nested definitions stand apart
        if lines and lines[-1] and apart:
            lines.append("")
        lines.append(statement.text)
        if apart and (index + 1 < len(body) or returns.kind != "none"):
            lines.append("")
    if returns.kind != "none":
        lines.append(f"return {render_returns(returns)}")
    return f"def {name}({signature}):\n" + textwrap.indent("\n".join(lines) or "pass", "    ")


def render_returns(returns: Returns) -> str:
    """The expression after ``return``; tuples are bare, as a person writes them."""
    if returns.kind == "dict":
        items = [f"{key}: {item}" for key, item in zip(returns.keys, returns.items)]
        opening, closing = "{", "}"
    elif returns.kind == "list":
        items, opening, closing = list(returns.items), "[", "]"
    elif returns.kind == "tuple":
        items, opening, closing = list(returns.items), "(", ")"
        if len(items) == 1:
            return f"({items[0]},)"
        short = ", ".join(items)
        if items and len(short) <= WIDTH - 11:
            return short
    else:
        return returns.items[0]
    short = f"{opening}{', '.join(items)}{closing}"
    if len(short) <= WIDTH - 11:
        return short
    return f"{opening}\n" + "".join(f"    {item},\n" for item in items) + closing


def render_meta(meta: dict[str, Any]) -> str:
    """``META = {…}``: one line where it fits, else one key a line."""
    short = f"META = {literal(meta)}"
    if len(short) <= WIDTH:
        return short
    lines = "".join(f"{_entry(key, value)}\n" for key, value in meta.items())
    return f"META = {{\n{lines}}}"


def _entry(key: str, value: Any) -> str:
    """One line where it fits; a longer list is filled in lines of its own."""
    line = f"    {literal(key)}: {literal(value)},"
    words = isinstance(value, list) and all(isinstance(item, str) and " " not in item for item in value)
    if len(line) <= WIDTH or not words:
        return line
    indent = " " * 8
    text = ", ".join(map(literal, value))
    rows = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    items = "\n".join(row.rstrip(", ") + "," for row in rows)
    return f"    {literal(key)}: [\n{items}\n    ],"


def broken(text: str) -> str:
    """Lines that are too long and end in a call: the arguments on a line of their own."""
    return "\n".join(_broken(line) if len(line) > WIDTH else line for line in text.split("\n"))


def _broken(line: str) -> str:
    """The line as it is where it ends in no call, or its arguments alone would be too long."""
    opening = _opening(line)
    if opening < 0:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    arguments = f"{indent}    {line[opening + 1 : -1]}"
    return line if len(arguments) > WIDTH else f"{line[: opening + 1]}\n{arguments}\n{indent})"


def _opening(line: str) -> int:
    """Position of the bracket that the last character closes as the end of a call; -1 where it does not."""
    bracketed = any(set(word) & set("()[]{}") for word in _STRING.findall(line))
    if not line.endswith(")") or "#" in line or bracketed:
        return -1
    depth = 0
    for index in range(len(line) - 1, -1, -1):
        depth += (line[index] in ")]}") - (line[index] in "([{")
        if depth == 0:
            called = index > 0 and (line[index - 1].isalnum() or line[index - 1] in "_])")
            return index if line[index] == "(" and called else -1
    return -1
