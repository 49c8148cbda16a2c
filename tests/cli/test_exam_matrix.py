"""``eddy exam``: what it prints for one target and for several."""

from typing import Any

import pytest

from fuzzer.cli import exam as command
from fuzzer.exam import Answer, Case
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict

TEXT = "import torch\n\n\ndef build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a\n"


def answers(kinds: dict[str, tuple[str, Kind]]) -> list[Answer]:
    program = Program.parse(TEXT)
    return [
        Answer(Case(name, program, expected, "inductor", "core", ""), Verdict(kind), "", 1.0)
        for name, (expected, kind) in kinds.items()
    ]


def printed(columns: dict[str, list[Answer]], monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: str) -> str:
    waiting = iter(columns.items())

    async def run(target: Any, args: Any) -> tuple[str, list[Answer]]:
        return next(waiting)

    monkeypatch.setattr(command, "_run", run)
    monkeypatch.setattr(command.common, "require_compiler", lambda: None)
    from fuzzer.cli import main

    targets = [item for _ in columns for item in ("--target", "python3")]
    assert main(["exam", *targets, *arguments]) == 0
    return str(capsys.readouterr().out)


def test_several_targets_make_one_matrix(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    old = answers({"e1": ("wrong_value", Kind.WRONG_VALUE), "e2": ("pass", Kind.PASS), "e3": ("pass", Kind.PASS)})
    new = answers({"e1": ("pass", Kind.PASS), "e2": ("pass", Kind.CRASH), "e3": ("pass", Kind.PASS)})
    out = printed({"2.5.1": old, "2.13.0": new}, monkeypatch, capsys)
    lines = out.splitlines()
    assert lines[0].split() == ["case", "2.5.1", "2.13.0"]
    assert lines[1].split() == ["e2", "pass", "pass", "→", "crash"]  # only where something differs
    assert "torch 2.5.1: flagged 1 of 1 failing" in out
    assert "torch 2.13.0: flagged 0 of 0 failing" in out and "controls flagged 1 of 3" in out
    whole = printed({"2.5.1": old, "2.13.0": new}, monkeypatch, capsys, "-v")
    assert [line.split()[0] for line in whole.splitlines()[1:4]] == ["e1", "e2", "e3"]


def test_json_is_one_line_a_target(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    one = answers({"e1": ("pass", Kind.PASS)})
    out = printed({"2.5.1": one, "2.13.0": one}, monkeypatch, capsys, "--json")
    assert len(out.splitlines()) == 2
