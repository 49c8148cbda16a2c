"""Steps of triage whose answer depends on what is known of a finding, and what they note."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fuzzer import deepen, environment
from fuzzer.deepen import KERNEL_LINES, STEPS, Work
from fuzzer.examine import Examined
from fuzzer.finding import Finding, State
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.signature import Signature
from fuzzer.verdict import Kind, Verdict

TEXT = "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n    return (torch.ones(3),)\n\n\ndef fn(a):\n    return a\n"
KERNEL, ENVIRONMENT = STEPS[-2:]


def finding(kind: Kind = Kind.WRONG_VALUE, backend: str = "inductor", **more: Any) -> Finding:
    triage = {"backend": backend, **more.pop("triage", {})}
    return Finding(Signature("run|x", ""), kind, TEXT, state=State.CONFIRMED, triage=triage, **more)


def work(made: Finding, sources: list[str] | None = None) -> Work:
    async def execute(*_arguments: Any, **_options: Any) -> Any:
        return SimpleNamespace(raw={"sources": sources or []})

    worker: Any = SimpleNamespace(execute=execute, target=SimpleNamespace(python="python", fake=False))
    shown: Any = (Program.parse(TEXT), None, None)
    return Work(worker, made, lambda name: "", lambda: False, shown=shown)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (finding(), True),
        (finding(backend="decomp"), False),
        (finding(kind=Kind.METADATA), False),
        (finding(kind=Kind.HANG), False),
        (finding(kind=Kind.COMPILE_ERROR), False),
        (finding(kind=Kind.COMPILE_ERROR, facts={"faults": {"compile": {"cause_type": "CppCompileError"}}}), True),
        (finding(triage={"kernel": ""}), False),
    ],
)
def test_generated_code_is_wanted_where_it_may_be_at_fault(made: Finding, wanted: bool) -> None:
    assert KERNEL.lacks(made) is wanted


def test_generated_code_is_cut() -> None:
    one = work(finding(), ["void a() {\n}", "void b() {\n}"])
    asyncio.run(KERNEL.run(one))
    assert one.finding.triage["kernel"] == "void a() {\n}\n\nvoid b() {\n}"
    long = work(finding(), ["\n".join(map(str, range(KERNEL_LINES + 5)))])
    asyncio.run(KERNEL.run(long))
    assert long.finding.triage["kernel"].splitlines()[KERNEL_LINES:] == ["// and 5 more lines"]


@pytest.mark.parametrize(("torch", "told"), [("2.13.0", "PyTorch version: 2.13.0\nOS: x"), ("2.5.1", "")])
def test_the_environment_is_that_of_the_findings_torch(monkeypatch: Any, torch: str, told: str) -> None:
    monkeypatch.setattr(deepen, "collect_env", lambda python: "PyTorch version: 2.13.0\nOS: x")
    one = work(finding(target={"torch": torch}))
    asyncio.run(ENVIRONMENT.run(one))
    assert one.finding.triage["environment"] == told


def test_what_collect_env_prints_is_taken_without_idle_lines(monkeypatch: Any) -> None:
    printed = "Collecting environment information...\nPyTorch version: 1\nVulnerability X:  no\n"
    ran: list[Any] = []

    def run(command: Any, **_options: Any) -> Any:
        ran.append(command)
        return SimpleNamespace(stdout=printed, returncode=0)

    monkeypatch.setattr(environment.subprocess, "run", run)
    assert environment.collect_env("a") == environment.collect_env("a") == "PyTorch version: 1"
    assert len(ran) == 1
    monkeypatch.setattr(environment.subprocess, "run", lambda *a, **k: SimpleNamespace(stdout="x", returncode=1))
    assert environment.collect_env("b") == ""


def test_a_finding_becomes_debatable_where_the_gates_know_why_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def gates_say(debatable: str) -> Work:
        verdict = Verdict(Kind.WRONG_VALUE, "run", "differs", debatable=debatable, gates=(("a gate", debatable),))

        async def examined(worker: Any, program: Program) -> Any:
            return Examined(program, Observation.from_map({"end": {"how": "done"}}), verdict, verdict)

        monkeypatch.setattr(deepen, "examine", examined)
        made = work(finding())
        assert asyncio.run(deepen.reproduce(made))
        return made

    assert gates_say("sign of zero").finding.debatable == "sign of zero"
    assert gates_say("").finding == finding()
