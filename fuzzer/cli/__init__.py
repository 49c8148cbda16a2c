"""The command line: one file a verb, each with ``add(parsers)`` and ``run(args) -> int``."""

from __future__ import annotations

import argparse
import errno
import json
import os
import select
import sys
import tempfile
import traceback
from collections.abc import Sequence

from fuzzer import __version__
from fuzzer.cli import (
    check,
    coverage,
    exam,
    exec_,
    experiment,
    features,
    fuzz,
    knowledge,
    llm_verb,
    reduce,
    report,
    repro,
    seeds,
    status,
    triage,
    web,
    write,
)
from fuzzer.exits import Exit, UserError

VERBS = (
    fuzz,
    status,
    coverage,
    triage,
    report,
    web,
    exec_,
    repro,
    reduce,
    check,
    exam,
    experiment,
    features,
    write,
    knowledge,
    seeds,
    llm_verb,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit codes are those of ``fuzzer.exits.Exit``."""
    parser = argparse.ArgumentParser(prog="eddy", description="Closed-loop, coverage-guided fuzzer for torch.compile.")
    parser.add_argument("--version", action="version", version=f"eddy {__version__}")
    parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add(parsers)
    args = parser.parse_args(triage.with_action(sys.argv[1:] if argv is None else argv))
    try:
        return int(args.run(args))
    except UserError as error:
        if getattr(args, "json", False):
            print(json.dumps({"ok": False, "error": str(error), "exit": int(error.exit_code)}))
        print(f"eddy {args.verb}: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print(f"eddy {args.verb}: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except BrokenPipeError as error:
        if not _reader_gone():
            return _internal(args, error)  # another pipe broke, one of ours
        # Nobody is left to tell, and the interpreter's own flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(Exit.DONE)
    except Exception as error:
        return _internal(args, error)


def _reader_gone() -> bool:
    """Has whoever read our standard output closed it (``eddy status DIR | head``)?"""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _fd, event in poll.poll(0))


def _internal(args: argparse.Namespace, error: Exception) -> int:
    """What should not happen: one line for the user, the trace in a file. A full disk is nobody's fault."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        print(f"eddy {args.verb}: the disk is full ({error}); free some room, then resume", file=sys.stderr)
        return int(Exit.ABORTED)
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    first = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    try:
        folder = getattr(args, "log_folder", None) or tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(
            "w", prefix="eddy-error-", suffix=".txt", dir=folder, delete=False, encoding="utf-8"
        ) as file:
            file.write(f"eddy {__version__} {' '.join(sys.argv[1:])}\n{trace}")
        where = f"please report it with {file.name}"
    except OSError:
        where = f"please report it; the trace could not be written:\n{trace}"
    print(f"eddy {args.verb}: internal error: {first}; {where}", file=sys.stderr)
    return int(Exit.INTERNAL)
