"""What torch's own ``collect_env`` prints about a target: bug reports to PyTorch are asked to have it."""

from __future__ import annotations

import functools
import subprocess

_SECONDS = 120

#: Lines that tell nobody anything: a greeting, and the state of a processor's security.
_IDLE = ("Collecting environment", "Vulnerability ")


@functools.lru_cache(maxsize=16)
def collect_env(python: str) -> str:
    """Output of ``python -m torch.utils.collect_env``, asked once a process; empty where it fails.

    It runs other programs (compilers, package managers, ``lscpu``) and takes some seconds.
    """
    command = [python, "-W", "ignore", "-m", "torch.utils.collect_env"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line for line in done.stdout.splitlines() if not line.startswith(_IDLE)]
    return "\n".join(lines).strip() if done.returncode == 0 else ""
