"""The command line: one file a verb, each with ``add(parsers)`` and ``run(args) -> int``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from fuzzer import __version__
from fuzzer.cli import check, exam, exec_, fuzz, knowledge, repro, status
from fuzzer.exits import Exit, UserError

VERBS = (fuzz, status, exec_, repro, check, exam, knowledge)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit codes are those of ``fuzzer.exits.Exit``."""
    parser = argparse.ArgumentParser(prog="eddy", description="Closed-loop, coverage-guided fuzzer for torch.compile.")
    parser.add_argument("--version", action="version", version=f"eddy {__version__}")
    parsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add(parsers)
    args = parser.parse_args(argv)
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
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nobody is left to tell
        return int(Exit.DONE)
