"""``eddy fuzz``: start or resume a campaign."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzzer import __version__
from fuzzer.campaign import Campaign, CampaignOptions
from fuzzer.cli import common, llm
from fuzzer.engines.idioms import Knowledge
from fuzzer.exits import Exit, UserError
from fuzzer.knowledge.changes import Changes
from fuzzer.knowledge.live import operators_for
from fuzzer.known_issues import KnownIssues
from fuzzer.screen import Screen, plain_line
from fuzzer.seeds.given import read_programs
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.stats import read_status

#: Reasons to stop that are a person's or the system's doing, with the exit status of a drained end.
_SIGNALS = {signal.SIGINT: "interrupt", signal.SIGTERM: "terminate", signal.SIGHUP: "hang-up"}


def add(parsers: Any) -> None:
    parser = parsers.add_parser("fuzz", help="run a campaign", description="Run a campaign in DIR, or resume it.")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--resume", action="store_true", help="continue the campaign that DIR holds")
    parser.add_argument("--resume-or-new", action="store_true", help="continue if DIR holds a campaign, else start one")
    parser.add_argument("--max-time", type=common.duration, metavar="TIME", help="stop after TIME (30s, 10m, 8h)")
    parser.add_argument("--max-execs", type=common.positive, metavar="N", help="stop after N programs")
    parser.add_argument("--stop-on-plateau", action="store_true", help="stop when nothing new is found any more")
    parser.add_argument("--exit-on-finding", action="store_true", help="stop at the first confirmed finding, exit 77")
    parser.add_argument("--workers", type=int, metavar="N", help="fork servers (default: one a core, at most 8)")
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: drawn, and written down)")
    parser.add_argument("--no-clock", action="store_true", help="ignore time in decisions: same seed, same sequence")
    parser.add_argument("--seeds", metavar="PATH", help="programs (a file or a folder) to start from")
    parser.add_argument("--blocks", action="store_true", help="cover basic blocks of reached C++ functions as well")
    parser.add_argument("--full", action="store_true", help="compile every kernel, with what users compile it with")
    parser.add_argument("--plant", choices=("relu", "log1p"), help="plant a bug in the target's children (self-test)")
    parser.add_argument(
        "--without",
        metavar="NAME[,NAME]",
        help="switch sources of knowledge off (ablation): patterns, subgraphs, neighbours; knowledge means all",
    )
    parser.add_argument(
        "--changed",
        metavar="FILE",
        help="prefer what changed in the compiler: output of `eddy knowledge diff --out FILE`",
    )
    llm.add_fuzz_options(parser)
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.workers is not None and not 1 <= args.workers <= 512:
        raise UserError(f"--workers {args.workers}: give a number from 1 to 512")
    chosen = common.targets(args)
    if not all(target.fake for target in chosen):
        common.require_compiler()
    given, skipped = read_programs(Path(args.seeds)) if args.seeds else ([], [])
    directory, resuming = _directory(args)
    with directory.lock():
        args.log_folder = directory.path  # where the trace of an internal error goes
        screen = Screen(quiet=args.json)
        for line in skipped:
            screen.note("warning", line)
        if directory.stop_requested():
            screen.note("warning", "removed a STOP file left from earlier; make it again to stop this run")
        directory.start()
        options = _options(directory, args)
        operators = asyncio.run(_interruptible(operators_for(options.targets[0], directory, screen.note)))
        model = llm.engine_of(directory, args, operators, options.targets, options.no_clock, screen.note)
        campaign = Campaign(directory, options, operators, KnownIssues.load(), screen.note, model)
        if resuming:
            runs = campaign.recover()
            campaign.note("resume", f"{runs} programs, {len(campaign.state.corpus)} seeds")
        if given:
            campaign.note("seeds", f"{campaign.give(given)} new seeds from {args.seeds}")
        reason = asyncio.run(_drive(campaign, screen))
    _say_end(campaign, reason, args.json)
    return _exit_code(reason)


def _directory(args: argparse.Namespace) -> tuple[CampaignDirectory, bool]:
    exists = (Path(args.dir) / "campaign.toml").exists()
    chosen = _knowledge_config(args)
    if args.resume or (args.resume_or_new and exists):
        directory = CampaignDirectory.open(args.dir)
        for name, value in chosen.items():
            if directory.config.get(name, type(value)()) != value:
                raise UserError(
                    f"--{_OPTION[name]} differs from the campaign in {args.dir}; resume without it, or start anew"
                )
        return directory, True
    seed = secrets.randbelow(2**31) if args.seed is None else args.seed
    config: dict[str, Any] = {
        "eddy": __version__,
        "seed": seed,
        "workers": args.workers or min(8, os.cpu_count() or 1),
        "targets": args.target or [sys.executable],
        "device": args.device,
        "no_clock": args.no_clock,
    }
    if args.blocks and importlib.util.find_spec("capstone") is None:
        raise UserError("--blocks needs the package capstone; pip install 'eddyfuzz[blocks]'")
    config |= {name: True for name in ("blocks", "full") if getattr(args, name)}
    if args.plant:
        config["plant"] = args.plant
    config |= chosen
    config |= llm.config_of(args)
    return CampaignDirectory.create(args.dir, config), False


#: Entry of campaign.toml → option.
_OPTION = {"without": "without", "raised": "changed"}


def _knowledge_config(args: argparse.Namespace) -> dict[str, Any]:
    """What of knowledge was chosen, checked; empty where nothing was."""
    chosen: dict[str, Any] = {}
    if args.without is not None:
        names = sorted({name.strip() for name in args.without.split(",") if name.strip()})
        Knowledge.without(names)
        chosen["without"] = names
    if args.changed is not None:
        chosen["raised"] = Changes.read(Path(args.changed)).factors(common.load_operators())
    return chosen


def _options(directory: CampaignDirectory, args: argparse.Namespace) -> CampaignOptions:
    """What the directory holds; on top, what concerns this run only and what a person may change on resuming."""
    config = directory.config
    try:
        stored = [common.target(str(python), str(config.get("device", "cpu"))) for python in config["targets"]]
        return CampaignOptions(
            seed=int(config["seed"]),
            workers=args.workers or int(config["workers"]),
            targets=common.targets(args) if args.target else tuple(stored),
            plant=str(config.get("plant", "")),
            no_clock=bool(config.get("no_clock", False)),
            blocks=bool(config.get("blocks", False)),
            full=bool(config.get("full", False)),
            max_seconds=args.max_time or 0.0,
            max_execs=args.max_execs or 0,
            stop_on_plateau=args.stop_on_plateau,
            exit_on_finding=args.exit_on_finding,
            without=tuple(map(str, config.get("without", ()))),
            raised={str(arm): float(factor) for arm, factor in config.get("raised", {}).items()},
        )
    except KeyError as error:
        raise UserError(f"{directory.config_file}: {error} is missing; add that line", Exit.DIRECTORY) from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{directory.config_file}: wrong type ({error}); mend that line", Exit.DIRECTORY) from None


async def _interruptible(work: Any) -> Any:
    """Run ``work``; a signal cancels it, so that what it started is ended too, and then counts as an interrupt."""
    task = asyncio.ensure_future(work)
    with _signals(lambda _name: task.cancel()):
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


@contextlib.contextmanager
def _signals(handle: Any) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number, name in _SIGNALS.items():
        loop.add_signal_handler(number, handle, name)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _drive(campaign: Campaign, screen: Screen) -> str:
    """Run the campaign: the first signal drains it, the second kills it."""
    running = asyncio.ensure_future(campaign.run())
    presses = 0

    def interrupted(name: str) -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            campaign.stop(name)
        elif presses == 2:
            running.cancel()

    async def show() -> None:
        while True:
            screen.refresh()
            await asyncio.sleep(1.0)

    screen.open(campaign)
    showing = asyncio.create_task(show())
    with _signals(interrupted):
        try:
            return await running
        except asyncio.CancelledError:
            return f"{campaign.stop_reason} (killed)"
        finally:
            showing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await showing
            screen.close()


def _say_end(campaign: Campaign, reason: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(read_status(campaign.directory)))
        return
    here = campaign.directory.path
    print(f"\n{plain_line(campaign)}", file=sys.stderr)
    print(f"Stopped: {reason}. Findings, one folder each: {campaign.directory.findings}", file=sys.stderr)
    for finding in campaign.findings.load_all():
        folder = campaign.findings.folder(finding)
        label = (finding.debatable and "debatable") or finding.state.value
        print(f"  {label:10} {finding.kind.value:15} {folder.name if folder else ''}", file=sys.stderr)
    print(f"Resume: eddy fuzz {here} --resume      Look: eddy status {here}", file=sys.stderr)


def _exit_code(reason: str) -> int:
    if reason == "finding":
        return Exit.FINDING
    if "(killed)" in reason:
        return Exit.ABORTED
    return Exit.INTERRUPTED if reason == "interrupt" else Exit.DONE
