"""The line at which eager refuses a program: what it calls, and whether a compiler may drop it."""

from __future__ import annotations

import pytest

from fuzzer.faulty_line import call_at, is_unread

HEAD = "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n    return (torch.ones(3),)\n\n\ndef fn(a):\n"
FIRST = HEAD.count("\n") + 1


def program(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines, unread",
    [
        (["n = torch.normal(a, a)", "return a"], True),
        (["n = torch.normal(a, a)", "m = n + 1", "return a"], True),
        (["n = torch.normal(a, a)", "m = n + 1", "return m"], False),
        (["n = torch.normal(a, a)", "a.add_(n)", "return a * 2"], False),
        (["n, m = torch.sort(a, 5)", "return m"], False),
        (["a[0] = torch.normal(a, a)[0]", "return 1"], False),
        (["b = a.normal_(0, -1)", "return 1"], False),
        (["n = torch.normal(a, a)", "if n.sum() > 0:", "    a = a + 1", "return a"], False),
        (["torch.normal(a, a)", "return a"], False),
        (["n = torch.nn.GELU()(a)", "return a"], True),
        (["n = torch.nn.ReLU(inplace=True)(a)", "return a"], False),
    ],
)
def test_is_a_line_unread(lines: list[str], unread: bool) -> None:
    assert is_unread(program(*lines), FIRST) is unread


def test_lines_that_are_not_there_tell_nothing() -> None:
    text = program("return a")
    assert not is_unread(text, 1) and not is_unread(text, 99) and not is_unread("def (", 1)
    assert call_at(text, 1) == call_at("def (", 1) == ""


@pytest.mark.parametrize(
    "line, name",
    [
        ("n = torch.normal(a, a)", "normal"),
        ("n = torch.ops.aten.add.Tensor(a, a)", "add"),
        ("n = a.index_add(0, b, a)", "index_add"),
        ("n = torch.sin(torch.cos(a))", "sin"),
        ("n = a + a", ""),
    ],
)
def test_what_a_line_calls(line: str, name: str) -> None:
    assert call_at(program(line, "return n"), FIRST) == name
