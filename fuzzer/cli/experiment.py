"""``eddy experiment``: one campaign for each arm and seed, one after another, and a table that compares them."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from fuzzer import experiment
from fuzzer.cli import common, fuzz, llm
from fuzzer.exits import Exit, UserError
from fuzzer.experiment import BUILT_IN, Arm, Results, Spec, Trial
from fuzzer.finding import State
from fuzzer.grouping import group
from fuzzer.screen import clock
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory, format_toml
from fuzzer.store.findings import FindingStore
from fuzzer.store.lock import CampaignLock
from fuzzer.store.stats import read_status

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Reasons to stop that are the trial's own end; after any other it is resumed.
_ENDS = ("max-time", "max-execs", "plateau", "finding")
_FOUND = (State.CONFIRMED, State.REDUCED, State.REPORTED, State.FIXED)
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def add(parsers: Any) -> None:
    parser = parsers.add_parser(
        "experiment",
        help="compare campaigns that differ in one thing",
        description="Run a campaign for each arm and seed under DIR, one after another, then compare them. Given DIR "
        "alone, continue the experiment that it holds, or print its table.",
    )
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--arms", metavar="A,B,…", help=f"of {', '.join(BUILT_IN)}, and those of --file (the first is "
                        "what others are compared with)")  # fmt: skip
    parser.add_argument("--file", metavar="TOML", help='more arms: a table [arms] of NAME = ["--option", …]')
    parser.add_argument("--time", type=common.duration, metavar="TIME", help="of each trial (10m, 1h)")
    parser.add_argument("--execs", type=common.positive, metavar="N", help="programs of each trial")
    parser.add_argument("--repeat", type=common.positive, metavar="N", help="seeds for each arm (default: 1)")
    parser.add_argument("--seed", type=int, metavar="N", help="the first of the seeds (default: 1)")
    parser.add_argument("--workers", type=common.positive, metavar="N", help="fork servers of each campaign")
    llm.add_endpoint_options(parser.add_argument_group("language model, of arms that use one"))
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    folder = Path(args.dir).absolute()
    spec = _spec(args, folder)
    for arm in spec.arms:
        _check(arm, spec)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror}); name another", Exit.DIRECTORY) from None
    with CampaignLock(folder / "LOCK"):
        atomic.write_text(folder / "experiment.toml", format_toml(spec.to_map()))
        interrupted = _run_trials(spec, folder)
    results = _results(spec, folder)
    if args.json:
        print(json.dumps({**results.to_map(), "complete": not (interrupted or results.failed)}))
    else:
        print(experiment.table(results))
        for name, why in results.failed.items():
            print(f"no result of {name}: {why}", file=sys.stderr)
        if interrupted:
            print(f"interrupted; continue with: eddy experiment {args.dir}", file=sys.stderr)
    if interrupted:
        return Exit.INTERRUPTED
    return Exit.ABORTED if results.failed else Exit.DONE


# -- the spec ---------------------------------------------------------------------------------------------------------


def _spec(args: argparse.Namespace, folder: Path) -> Spec:
    """What is asked, or what the folder holds. More repeats are allowed later, other changes are not."""
    stored = _stored(folder)
    given = any((args.arms, args.file, args.time, args.execs, args.seed is not None))
    if stored is None or given:
        arms, options = _arms(args)
        seed = 1 if args.seed is None else args.seed
        asked = Spec(arms, args.time or 0.0, args.execs or 0, args.repeat or 1, seed, options)
    else:
        asked = replace(stored, repeat=args.repeat or stored.repeat)
    if stored is None:
        return asked
    if replace(asked, repeat=stored.repeat) != stored:
        raise UserError(
            f"{folder}: holds another experiment (experiment.toml); continue it with `eddy experiment DIR`, "
            "or name another directory",
            Exit.DIRECTORY,
        )
    return replace(asked, repeat=max(asked.repeat, stored.repeat))


def _stored(folder: Path) -> Spec | None:
    path = folder / "experiment.toml"
    return Spec.from_map(_toml(path), str(path)) if path.exists() else None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML ({error}); mend that line") from None


def _arms(args: argparse.Namespace) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """The arms, those with a model with the endpoint's options; and the options of all."""
    known, options, default = dict(BUILT_IN), list[str](), tuple[str, ...]()
    if args.file:
        table = _toml(Path(args.file))
        if unknown := set(table) - {"arms", "options"}:
            raise UserError(f"{args.file}: unknown key {sorted(unknown)[0]!r}; use [arms] and options")
        own = experiment.read_arms(table.get("arms"), args.file)
        known |= {arm.name: arm for arm in own}
        options += experiment.texts(table.get("options", []), f"{args.file}: options")
        default = tuple(arm.name for arm in own)
    names = [name.strip() for name in args.arms.split(",")] if args.arms else default
    for name in names:
        if name not in known:
            raise UserError(f"--arms: no arm {name!r}; there are {', '.join(known)}, and --file makes more")
    for target in args.target or ():
        options += ["--target", target]
    options += ["--device", args.device] if args.device != "cpu" else []
    options += ["--workers", str(args.workers)] if args.workers else []
    endpoint = list[str]()
    for name in ("endpoint", "model", "budget", "price", "language"):
        value = getattr(args, f"llm_{name}")
        endpoint += [f"--llm-{name}", value] if value else []
    arms = [known[name] for name in names]
    # What an arm says itself comes last and wins.
    arms = [replace(arm, options=(*endpoint, *arm.options)) if arm.uses_model else arm for arm in arms]
    return tuple(arms), tuple(options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def _check(arm: Arm, spec: Spec) -> None:
    """The options of an arm, read as ``eddy fuzz`` will: what is wrong shows before hours have passed."""
    parser = _Parser(prog="eddy")
    fuzz.add(parser.add_subparsers())
    try:
        llm.config_of(parser.parse_args(["fuzz", "DIR", *spec.options, *arm.options]))
    except UserError as error:
        raise UserError(f"arm {arm.name}: {error}") from None


# -- trials -----------------------------------------------------------------------------------------------------------


def _run_trials(spec: Spec, folder: Path) -> bool:
    """Run what has no result yet; True when a signal ended it."""
    trials = [trial for trial in spec.trials if not _result_file(folder, trial).exists()]
    done = len(spec.trials) - len(trials)
    for number, trial in enumerate(trials, done + 1):
        rest = _rest(spec, folder / trial.name)
        budget = f"{clock(rest.seconds)}" if rest.seconds else f"{rest.execs} programs"
        print(f"[{number}/{len(spec.trials)}] {trial.name}: {budget} …", file=sys.stderr, flush=True)
        interrupted, why = _run_trial(rest, folder, trial)
        if not why:
            row = _measured(folder / trial.name)
            atomic.write_text(_result_file(folder, trial), json.dumps(row) + "\n")
            print(f"    {row['programs']:,.0f} programs, {row['confirmed']:.0f} confirmed", file=sys.stderr, flush=True)
        if interrupted:
            return True
        if why:
            print(f"    {why}", file=sys.stderr, flush=True)
    return False


def _rest(spec: Spec, path: Path) -> Spec:
    """The spec with what is left of a trial's budget, at least a second or a program: ends are counted when reached."""
    if not (path / "campaign.toml").exists():
        return spec
    status = read_status(CampaignDirectory.open(path))
    seconds = max(1.0, spec.seconds - float(status["run_time"])) if spec.seconds else 0.0
    execs = max(1, spec.execs - int(status["execs_done"])) if spec.execs else 0
    return replace(spec, seconds=seconds, execs=execs)


def _run_trial(spec: Spec, folder: Path, trial: Trial) -> tuple[bool, str]:
    """(a signal came, why the trial has not ended; "" when it has)."""
    command = [sys.executable, "-m", "fuzzer", "fuzz", str(folder / trial.name), "--resume-or-new", "--json"]
    command += ["--seed", str(trial.seed), *spec.options, *trial.arm.options]
    command += ["--max-time", f"{spec.seconds:g}s"] if spec.seconds else []
    command += ["--max-execs", str(spec.execs)] if spec.execs else []
    log = folder / f"{trial.name}.log"
    with open(log, "ab") as stream:
        # A session of its own: a terminal's Ctrl-C comes to us alone and is passed on once, not twice.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            preexec_fn=_end_with_parent(os.getpid()),
        )
        with _passing_on(process) as signals:
            code = process.wait()
    reason = ""
    if (folder / trial.name / "campaign.toml").exists():
        reason = str(read_status(CampaignDirectory.open(folder / trial.name))["stop_reason"])
    if code in (Exit.DONE, Exit.FINDING) and reason in _ENDS:
        return bool(signals), ""
    if code in (Exit.USAGE, Exit.TARGET, Exit.DIRECTORY):  # the next trial would fare no better
        raise UserError(f"{trial.name}: {_last_line(log)}", Exit(code))
    why = f"stopped: {reason}" if code in (Exit.DONE, Exit.INTERRUPTED) else f"exit status {code}; {_last_line(log)}"
    return bool(signals), f"{why} (log: {log})"


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line[:300] for line in reversed(lines) if line.strip() and not line.startswith("{")), "no word")


def _end_with_parent(parent: int) -> Any:
    """For the child between fork and exec: drain when we are killed. Does nothing where there is no prctl."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def end_with_parent() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:  # killed before the call
                os.kill(os.getpid(), signal.SIGTERM)

    return end_with_parent


@contextmanager
def _passing_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Signals for us go to the campaign, which drains at the first and dies at the second; gives those that came."""
    came: list[int] = []

    def pass_on(number: int, _frame: Any) -> None:
        came.append(number)
        if process.poll() is None:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- results ----------------------------------------------------------------------------------------------------------


def _result_file(folder: Path, trial: Trial) -> Path:
    return folder / f"{trial.name}.json"


def _measured(path: Path) -> dict[str, float]:
    directory = CampaignDirectory.open(path)
    found = [item for item in FindingStore(directory).load_all() if item.state in _FOUND and not item.debatable]
    return experiment.measures(read_status(directory), len(group(found)))


def _results(spec: Spec, folder: Path) -> Results:
    values: dict[str, dict[int, dict[str, float]]] = {}
    failed: dict[str, str] = {}
    for trial in spec.trials:
        path = _result_file(folder, trial)
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            values.setdefault(trial.arm.name, {})[trial.seed] = {name: float(value) for name, value in row.items()}
        except FileNotFoundError:
            failed[trial.name] = "it has not ended"
        except (ValueError, AttributeError, TypeError):
            raise UserError(f"{path}: damaged; remove it, and its trial is measured again") from None
    return Results(tuple(arm.name for arm in spec.arms), values, failed)
