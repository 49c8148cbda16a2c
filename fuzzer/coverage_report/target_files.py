"""Where the target keeps torch: found by asking its interpreter, which does not import torch for that."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from fuzzer.exits import Exit, UserError

#: ``find_spec`` of a top-level package imports nothing. ``-I`` as the fork server has it: no PYTHONPATH.
_QUESTION = """
import importlib.util, json
spec = importlib.util.find_spec("torch")
print(json.dumps(list(spec.submodule_search_locations or ()) if spec else []))
"""
#: A start of the interpreter takes 0.1 s; on a crowded machine or a network file system much longer.
_SECONDS = 60.0


@dataclass(frozen=True)
class TargetFiles:
    """Files of a target's torch. ``root`` is its ``site-packages/torch``."""

    root: Path
    version: str  # "2.13.0+cpu"

    @property
    def site_packages(self) -> Path:
        return self.root.parent

    def source(self, file: str) -> Path:
        """Path of ``torch/_inductor/ir.py``, the name of a file in the domain ``python``."""
        return self.site_packages / file

    def library(self, name: str) -> Path | None:
        """File of ``libtorch_cpu``, the name of a file in the domain ``native``; None where there is none."""
        places = (self.root / "lib", self.site_packages / "torch.libs")
        found = [path for place in places for path in sorted(place.glob(f"{name}[.-]*")) if ".so" in path.name]
        return found[0] if found else None


def find(python: str) -> TargetFiles:
    """Ask an interpreter for its torch.

    Raises:
        UserError: it cannot be run, or has no torch (exit code 4).
    """
    try:
        done = subprocess.run(
            [python, "-I", "-c", _QUESTION], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        places = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise UserError(
            f"target {python!r} cannot be asked for its torch ({error}); pass --target", Exit.TARGET
        ) from None
    if not places:
        raise UserError(f"target {python!r} has no torch; pass --target /path/to/python", Exit.TARGET)
    root = Path(places[0])
    return TargetFiles(root, _version(root / "version.py"))


def _version(path: Path) -> str:
    """``torch.__version__`` as its generated file spells it; empty where that is absent."""
    try:
        match = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return ""
    return match.group(1) if match else ""
