"""What several verbs share: options, units, the machine."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fuzzer.exits import Exit, UserError
from fuzzer.knowledge.operators import Operators
from fuzzer.program import Program, ProgramError
from fuzzer.worker import Target

#: Undocumented for users: see ``harness.fake``.
FAKE = "fake:"

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float:
    """``90``, ``30s``, ``10m``, ``8h``, ``1h30m`` → seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write 30s, 10m, 8h or 1h30m")
    return sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target", action="append", metavar="PYTHON", help="interpreter with the torch under test (default: this one)"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="device under test (default: cpu)")
    parser.add_argument("--json", action="store_true", help="machine-readable output on standard output")


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def target(python: str, device: str) -> Target:
    """The target that a person named. ``fake:`` (for tests) is a harness that only pretends to have a torch."""
    return Target(sys.executable, device, fake=True) if python == FAKE else Target(python, device)


def targets(args: argparse.Namespace) -> tuple[Target, ...]:
    return tuple(target(python, args.device) for python in (args.target or [sys.executable]))


def require_compiler() -> None:
    """Inductor's CPU backend compiles C++: say so before anything is started."""
    wanted = os.environ.get("CXX")
    names = [wanted] if wanted else ["g++", "clang++"]
    if not any(shutil.which(name) for name in names):
        raise UserError(
            f"no C++ compiler found ({' or '.join(names)}); install one (Debian: apt install g++) or set CXX",
            Exit.TARGET,
        )


def read_program(path: str) -> Program:
    """A program from a file; ``-`` is standard input."""
    if path == "-":
        return Program.parse(sys.stdin.read(), "<stdin>")
    try:
        return Program.parse(Path(path).read_text(encoding="utf-8"), path)
    except OSError as error:
        raise ProgramError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ProgramError(f"{path}: not UTF-8 text; a program is a Python file") from None


def load_operators() -> Operators:
    return Operators.load_extract()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder that is gone afterwards, also after Ctrl-C or a termination."""
    previous = signal.signal(signal.SIGTERM, lambda number, frame: (_ for _ in ()).throw(KeyboardInterrupt()))
    folder = Path(tempfile.mkdtemp(prefix="eddy-"))
    try:
        yield folder
    finally:
        signal.signal(signal.SIGTERM, previous)
        shutil.rmtree(folder, ignore_errors=True)
