"""Would it pay to execute Inductor's loop-level IR in place of compiling C++? Costs, agreement, and what it would miss.

    python -m benchmarks.ir_interpreter DIR [--programs 100] [--seed 0]

Takes programs of the corpus of campaign DIR, those of its confirmed wrong results, and the exam's cases that are wrong
values on this torch. Each runs eagerly, compiled, and compiled with ``harness.interpreter`` in place of the C++
compiler, each in a child of one warm process. Wrong means beyond the defaults of ``torch.testing.assert_close``.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import random
import resource
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.bare_loop import cpu_seconds
from fuzzer.finding import State
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore

EXAM = Path(__file__).parent.parent / "corpus" / "exam"
#: Of a C++ step with clang: see ``cpu_clang`` in ``docs/benchmarks/cost.json``.
HASTENED_CPU = 0.25
_SECONDS = 90


def in_child(text: str, how: str, folder: str) -> dict[str, Any]:
    """What one variant says, ``{"error": …}`` where the child dies or takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
            told = variant(text, how, folder)
        except BaseException as error:
            told = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        with os.fdopen(writer, "w") as file:
            json.dump(told, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    _pid, status = os.waitpid(child, 0)
    return dict(json.loads(said)) if said else {"error": f"died with status {status}"}


def variant(text: str, how: str, folder: str) -> dict[str, Any]:
    import torch

    from harness import execution
    from harness.interpreter import Interpreter

    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    program = execution.Program(text, "program.py")
    meta, gradients = program.meta, program.wants_gradients
    eager = execution.call(program.fn, program.inputs(), meta, gradients)
    arguments = dict(meta.get("compile", meta.get("compile_kwargs", {})))
    if program.mode == "dynamic":
        arguments.setdefault("dynamic", True)
    interpreter = Interpreter()
    interpreted = interpreter.installed() if how == "interpreted" else contextlib.nullcontext()
    torch._dynamo.reset()
    before = cpu_seconds()
    with execution.patched(meta, {}), interpreted:
        found = execution.call(torch.compile(program.fn, **arguments), program.inputs(), meta, gradients)
    cpu = cpu_seconds() - before
    wrong = [path for (path, a), (_path, b) in zip(eager.leaves(), found.leaves()) if not _close(a, b)]
    counts = interpreter.counts
    return {"cpu": cpu, "kernels": counts.kernels, "in_kernels": counts.cpu, "refused": counts.refused,
            "wrong": wrong}  # fmt: skip


def _close(expected: Any, seen: Any) -> bool:
    import torch

    if not isinstance(expected, torch.Tensor) or not isinstance(seen, torch.Tensor):
        return isinstance(expected, torch.Tensor) is isinstance(seen, torch.Tensor)
    try:
        torch.testing.assert_close(seen, expected, equal_nan=True)
    except AssertionError:
        return False
    except Exception:  # a dtype that it does not compare
        return True
    return True


def warm() -> None:
    import torch
    import torch._functorch.config
    import torch._inductor.config

    torch.set_num_threads(1)
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.fx_graph_cache = False
    torch._functorch.config.enable_autograd_cache = False
    torch.compile(lambda x: x.sin() + 1)(torch.randn(5, 7))


def corpus_programs(directory: CampaignDirectory, count: int, seed: int) -> dict[str, str]:
    files = CorpusFiles(directory.corpus)
    texts = {name: str(item["text"]) for name in files.ids if (item := files.read(name))}
    names = random.Random(seed).sample(sorted(texts), min(count, len(texts)))
    return {name: texts[name] for name in names}


def wrong_results(directory: CampaignDirectory) -> dict[str, str]:
    """Smallest programs of what the campaign confirmed as wrong values, gradients or writes, and the exam's."""
    wrong = ("wrong_value", "wrong_gradient", "wrong_mutation")
    found = {
        item.sig8: item.shown_text
        for item in FindingStore(directory).load_all()
        if item.kind.value in wrong and not item.debatable and item.state in (State.CONFIRMED, State.REDUCED)
    }
    with open(EXAM / "table.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["verdict_213"].startswith(wrong)]
    return found | {row["id"]: (EXAM / "cases" / row["file"]).read_text() for row in rows}


def measure(programs: dict[str, str], folder: str, label: str) -> list[dict[str, Any]]:
    rows = []
    for number, (name, text) in enumerate(programs.items()):
        order = ("compiled", "interpreted") if number % 2 else ("interpreted", "compiled")
        seen = {how: in_child(text, how, folder) for how in order}
        rows.append({"name": name, **seen})
        print(f"\r{label}: {number + 1} of {len(programs)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Costs and agreement over ordinary programs."""
    good = [row for row in rows if not row["compiled"].get("error")]
    ran = [row for row in good if not row["interpreted"].get("error")]
    whole = [row for row in ran if not row["interpreted"]["refused"] and row["interpreted"]["kernels"]]
    inter = [row["interpreted"] for row in whole]
    hastened = [seen["cpu"] - seen["in_kernels"] + HASTENED_CPU * seen["kernels"] for seen in inter]
    return {
        "compiled": len(good),
        "interpreted_whole": len(whole),
        "without_kernels": sum(not row["interpreted"]["kernels"] and not row["interpreted"]["refused"] for row in ran),
        "refused": Counter(word for row in ran for word in set(row["interpreted"]["refused"])).most_common(8),
        "interpreter_fails": len(good) - len(ran),
        "cpu_plain": _median([row["compiled"]["cpu"] for row in whole]),
        "cpu_hastened": _median(hastened),
        "cpu_interpreted": _median([seen["cpu"] for seen in inter]),
        "cpu_in_kernels": _median([seen["in_kernels"] for seen in inter]),
        "mean_hastened_over_interpreted": round(sum(hastened) / sum(seen["cpu"] for seen in inter), 2) if inter else 0,
        "agree": sum(row["compiled"]["wrong"] == row["interpreted"]["wrong"] for row in whole),
        "only_interpreted_wrong": [
            row["name"] for row in whole if set(row["interpreted"]["wrong"]) - set(row["compiled"]["wrong"])
        ],
    }


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 3) if values else 0.0


def faults(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the wrong results that show here, how many show when interpreted."""
    wrong = [row for row in rows if row["compiled"].get("wrong")]
    told = {
        row["name"]: "fails" if row["interpreted"].get("error")
        else "refused" if row["interpreted"]["refused"]
        else "wrong" if row["interpreted"]["wrong"] else "right"
        for row in wrong
    }  # fmt: skip
    return {"programs": len(rows), "wrong_compiled": len(wrong), "interpreted": dict(Counter(told.values())),
            "cases": told}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ir_interpreter", description=__doc__)
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    directory = CampaignDirectory.open(Path(args.dir))
    warm()
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        ordinary = measure(corpus_programs(directory, args.programs, args.seed), folder, "programs")
        known = measure(wrong_results(directory), folder, "faults")
    found = {"ordinary": summary(ordinary), "faults": faults(known)}
    print(json.dumps(found, indent=2))
    for row in ordinary:
        if row["interpreted"].get("error"):
            print(row["name"], row["interpreted"]["error"][:200])
    command = f"python -m benchmarks.ir_interpreter DIR --programs {args.programs} --seed {args.seed}"
    print(f"→ {results.save('ir_interpreter', command, found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
