"""Runs imported programs and says which of them are seeds: eager accepts them. The judge looks at them as well."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.examine import examine
from fuzzer.observation import Observation
from fuzzer.program import Program, ProgramError
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, Worker, WorkerOptions

_BEFORE_COMPILING = ("", "build", "eager", "eager_backward")
_NO_SUCH_OPTION = re.compile(r"\bconfig\b.*(does not exist|no attribute|Unknown)|Unexpected optimization option")
_CONFIGS = ("inductor_config", "dynamo_config", "functorch_config")


@dataclass(frozen=True)
class Checked:
    """One program and what its run showed. ``why``: empty where it is runnable, else a class of reasons."""

    program: Program
    why: str = ""
    detail: str = ""
    verdict: Verdict | None = None  # None: it was only run eagerly
    seconds: float = 0.0

    @property
    def runnable(self) -> bool:
        return not self.why


async def check_all(
    programs: Sequence[Program],
    target: Target,
    folder: Path,
    *,
    workers: int = 1,
    eager: bool = False,
    progress: Callable[[int, Checked], None] = lambda done, checked: None,
) -> list[Checked]:
    """Run every program, in order of the list; ``eager`` leaves the compiler out.

    Raises:
        TargetRefused: the target cannot start.
    """
    results: list[Checked | None] = [None] * len(programs)
    queue = iter(range(len(programs)))
    done = 0

    async def serve(number: int) -> None:
        nonlocal done
        worker = Worker(target, folder / f"worker-{number}", WorkerOptions(coverage=(), warm=not eager))
        try:
            await worker.start()
            for index in queue:
                results[index] = checked = await check(worker, programs[index], eager)
                done += 1
                progress(done, checked)
        finally:
            await worker.stop()

    tasks = [asyncio.ensure_future(serve(number)) for number in range(max(1, min(workers, len(programs))))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [item for item in results if item is not None]


async def check(worker: Worker, program: Program, eager: bool = False) -> Checked:
    """Run one program, mended once where the class of its error has a remedy."""
    checked, observation = await _run(worker, program, eager)
    broken = checked.verdict is not None and checked.verdict.kind is Kind.HARNESS_ERROR
    mended = repaired(program, observation, checked.verdict.reason if broken and checked.verdict else "")
    if mended is not None:
        again, _ = await _run(worker, mended, eager)
        return again if again.runnable or not checked.runnable else checked
    return checked


async def _run(worker: Worker, program: Program, eager: bool) -> tuple[Checked, Observation]:
    if eager:
        observation = await worker.execute(program, "eager", {"only_eager": True, "observe": False}, coverage=False)
        why, detail = refusal(observation)
        return Checked(program, why, detail, None, observation.seconds), observation
    seen = await examine(worker, program)
    why, detail = refusal(seen.observation)
    if seen.verdict.kind is Kind.EAGER_CRASH or seen.verdict.kind is Kind.EAGER_INTERNAL_ASSERT:
        why = ""  # worth keeping, whatever else it is
    return Checked(seen.program, why, detail, seen.verdict, seen.observation.seconds), seen.observation


def refusal(observation: Observation) -> tuple[str, str]:
    """(class of reasons, details) why a program is no seed: it cannot be built, or eager refuses it. ("", "") if it is.

    The class names the stage and the exception with what varies taken out, so that reasons can be counted.
    """
    for name in ("build", "eager", "eager_backward"):
        fault = observation.fault(name)
        if fault is not None:
            kind = fault.type.rsplit(".", 1)[-1]
            where = "its inputs cannot be made" if name == "build" else "eager refuses it"
            return f"{where}: {kind}", " ".join(fault.message.split())[:200]
    if observation.end.how != "done" and observation.end.stage in _BEFORE_COMPILING:
        how = {"timeout": "is too slow", "memory": "needs too much memory", "signal": "dies"}.get(
            observation.end.how, f"ends by {observation.end.how}"
        )
        return f"eager {how}", observation.end.why
    return "", ""


def repaired(program: Program, observation: Observation, broken: str = "") -> Program | None:
    """The program without what the run refused: gradients that eager cannot give, options that this torch lacks.

    ``broken``: why the run failed outside the program, as with an unknown option.
    """
    changes: dict[str, object] = {}
    if observation.fault("eager_backward") is not None and program.mode == "backward":
        changes["mode"] = "forward"
    fault = observation.fault("compile")
    if _NO_SUCH_OPTION.search(f"{fault.message if fault else ''} {broken}"):
        changes.update({key: {} for key in _CONFIGS if key in program.meta})
        changes["compile"] = {}
    if not changes:
        return None
    try:
        view = ProgramView.of(program)
        meta = {key: value for key, value in {**view.meta, **changes}.items() if value != {}}
        return Program.parse(replace(view, meta=meta).to_text(), program.source)
    except (ViewError, ProgramError):
        return None


def file_name(program: Program) -> str:
    """``test_file__Class_test_name.py``"""
    stem, _, title = program.source.partition("::")
    words = [re.sub(r"\W+", "_", part.removesuffix(".py")).strip("_") for part in (stem, title)]
    return "__".join(dict.fromkeys(word for word in words if word))[:120] + ".py"


def write_programs(programs: Sequence[Program], folder: Path) -> list[Path]:
    """One file a program; equal names get a number. Files of an earlier import are overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Path] = {}
    for program in programs:
        name = file_name(program)
        number = 2
        while name in written:
            name = f"{file_name(program).removesuffix('.py')}_{number}.py"
            number += 1
        written[name] = folder / name
        (folder / name).write_text(program.text, "utf-8")
    return list(written.values())
