"""The seeds that ship: small programs of one idea each, under ``corpus/seeds``, and the index of what each covers.

The index (``index.json`` beside them) is measured, not written by hand:

    python -m fuzzer.seeds.shipped     # runs and judges what is new or changed, names what does not pass

Delete the index to measure all of them anew, as for another torch.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.examine import examine
from fuzzer.exits import UserError
from fuzzer.features.detect import detect
from fuzzer.knowledge.operators import Operators
from fuzzer.program import Program
from fuzzer.seeds.check import refusal
from fuzzer.store.atomic import write_text
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

#: Their folder.
SHIPPED = Path(__file__).resolve().parents[2] / "corpus" / "seeds"
#: ``--seeds shipped`` names it.
NAME = "shipped"
INDEX = "index.json"


@dataclass(frozen=True)
class Covered:
    """What one run showed. ``id`` is the program's, so that an edited seed is not described by its past."""

    id: str
    features: tuple[str, ...]  # realised
    operators: tuple[str, ...]  # dispatched, "aten.add"
    kernels: int  # classes of generated kernels
    kind: str = Kind.PASS.value  # of the verdict

    def to_map(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "kernels": self.kernels,
            "operators": list(self.operators),
            "features": list(self.features),
        }


def read_index(folder: Path) -> dict[str, Covered]:
    """Program id → what it covers; {} for a folder without an index.

    Raises:
        UserError: the index is there and cannot be read.
    """
    path = folder / INDEX
    try:
        entries = json.loads(path.read_text("utf-8"))["seeds"]
        found = [
            Covered(e["id"], tuple(e["features"]), tuple(e["operators"]), int(e["kernels"]), str(e["kind"]))
            for e in entries.values()
        ]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not an index of seeds ({error!r}); delete it, or write it anew") from None
    return {covered.id: covered for covered in found}


async def measure(programs: dict[str, Program], target: Target, folder: Path) -> dict[str, Covered]:
    """Run and judge each; a line to standard error for each that is refused by eager or does not pass."""
    operators = Operators.load_extract()
    worker = Worker(target, folder, WorkerOptions(coverage=("events",)))
    found = {}
    try:
        await worker.start()
        for number, (name, program) in enumerate(programs.items(), 1):
            seen = await examine(worker, program)
            why, detail = refusal(seen.observation)
            kind = "refused" if why else seen.verdict.kind.value
            if kind != Kind.PASS.value:
                print(f"{name}: {kind} {seen.verdict.debatable} {detail or seen.verdict.reason}", file=sys.stderr)
            packets = {".".join(op.split(".")[:2]) for op in seen.observation.operators}
            realised = detect(program, seen.observation, operators.family_of_aten)
            kernels = len(set(seen.observation.raw.get("kernels", ())))
            found[name] = Covered(program.id, tuple(sorted(realised)), tuple(sorted(packets)), kernels, kind)
            if number % 20 == 0:
                print(f"{number} of {len(programs)}", file=sys.stderr, flush=True)
    finally:
        await worker.stop()
    return found


def main() -> int:
    """Bring the index up to date; 1 where a seed is refused by eager or does not pass."""
    files = sorted(SHIPPED.rglob("*.py"))
    programs = {str(f.relative_to(SHIPPED)): Program.parse(f.read_text("utf-8"), str(f)) for f in files}
    known = read_index(SHIPPED)
    fresh = {name: program for name, program in programs.items() if program.id not in known}
    found = {name: known[program.id] for name, program in programs.items() if program.id in known}
    if fresh:
        with tempfile.TemporaryDirectory(prefix="eddy-seeds-") as folder:
            found |= asyncio.run(measure(fresh, Target(), Path(folder)))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name].to_map())}" for name in sorted(found))
    write_text(SHIPPED / INDEX, f'{{"seeds": {{\n{lines}\n}}}}\n')
    failing = [name for name, covered in found.items() if covered.kind != Kind.PASS.value]
    print(f"{len(found)} seeds, {len(fresh)} measured, {len(failing)} do not pass", file=sys.stderr)
    return int(bool(failing))


if __name__ == "__main__":
    raise SystemExit(main())
