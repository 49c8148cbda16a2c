"""``eddy knowledge``: derive the operators of a target, show what is known."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.exits import UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.build import write_extract
from fuzzer.knowledge.operators import Operators
from fuzzer.worker import Target, Worker, WorkerOptions


def add(parsers: Any) -> None:
    parser = parsers.add_parser("knowledge", help="operators and features")
    verbs = parser.add_subparsers(dest="knowledge_verb", required=True, metavar="build|show")
    build = verbs.add_parser("build", help="derive the operators of a target")
    build.add_argument("--out", required=True, metavar="FILE", help="where to write the extract")
    common.add_target_options(build)
    build.set_defaults(run=run_build)
    show = verbs.add_parser("show", help="show an operator or a feature; without a name, counts")
    show.add_argument("name", nargs="?", metavar="NAME", help="an operator's key or a feature such as layout=expanded")
    show.add_argument("--json", action="store_true")
    show.set_defaults(run=run_show)


def run_build(args: argparse.Namespace) -> int:
    operators = asyncio.run(_build(common.targets(args)[0], Path(args.out)))
    families = {family: len(members) for family, members in sorted(operators.by_family.items())}
    if args.json:
        print(json.dumps({"operators": len(operators), "families": families, "file": args.out}))
    else:
        print(f"{len(operators)} operators in {len(families)} families → {args.out}")
    return 0


async def _build(target: Target, out: Path) -> Operators:
    with common.scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), warm=False))
        try:
            ready = await worker.start()
            say = lambda line: print(f"… {line}", file=sys.stderr, flush=True)  # noqa: E731
            records = [record async for record in worker.catalogue(say)]
        finally:
            await worker.stop()
    facts = {name: str(value) for name, value in ready["target"].items()}
    return write_extract(records, out, facts)


def run_show(args: argparse.Namespace) -> int:
    operators, space = common.load_operators(), FeatureSpace.load()
    if args.name is None:
        families = {family: len(members) for family, members in sorted(operators.by_family.items())}
        counts = {"operators": len(operators), "families": families, "features": len(space.features)}
        print(json.dumps(counts, indent=None if args.json else 2))
        return 0
    if args.name in space.features:
        feature = space.features[args.name]
        print(json.dumps({"feature": feature.id, "description": feature.description, "how": feature.how}, indent=2))
        return 0
    if args.name not in operators.by_key:
        raise UserError(
            f"{args.name!r} is neither an operator nor a feature; `eddy knowledge show` counts what there is"
        )
    operator = operators.by_key[args.name]
    shown = {
        "operator": operator.key,
        "family": operator.family,
        "forms": [form.text for form in operator.forms],
        "dtypes": list(operator.dtypes),
        "autograd": operator.autograd,
        "lowering": operator.lowering,
        "schema": list(operator.schema),
        "calls": [call.record() for call in operator.calls],
        "neighbours": [other.key for other in operators.neighbours(operator)[:8]],
    }
    print(json.dumps(shown, indent=None if args.json else 2))
    return 0
