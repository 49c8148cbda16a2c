"""Builds the C helpers of the coverage domains with whatever C compiler the target has."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

#: A helper is under 400 lines of C and compiles in well under a second; a minute means a broken compiler.
_TIMEOUT = 60.0


class Unavailable(Exception):
    """A coverage domain cannot work here. ``str(error)`` is one line saying why."""


def build(source: str, scratch: str, python: bool = False) -> str:
    """Compile ``source``, a file beside this one, to a shared object in ``scratch``; its path.

    The name carries a hash of source, compiler and headers, so that a second start finds it built. ``python`` adds
    the interpreter's headers and extension suffix.

    Raises:
        Unavailable: no compiler, no headers, or the compiler refuses.
    """
    text = (Path(__file__).parent / source).read_bytes()
    compiler = _compiler()
    flags = ["-O2", "-shared", "-fPIC", "-x", "c"]
    suffix = ".so"
    if python:
        include = sysconfig.get_path("include")
        if not os.path.exists(os.path.join(include, "Python.h")):
            raise Unavailable(f"no Python.h in {include}")
        flags += [f"-I{include}"]
        suffix = str(sysconfig.get_config_var("EXT_SUFFIX") or ".so")
    digest = hashlib.sha256(b"\0".join([text, compiler.encode(), " ".join(flags).encode()])).hexdigest()[:16]
    folder = Path(scratch) / f"{Path(source).stem}-{digest}"
    result = folder / f"{Path(source).stem}{suffix}"
    if result.exists():
        return str(result)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"partial-{os.getpid()}{suffix}"
    command = [compiler, *flags, "-", "-o", str(partial)]
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{compiler} did not build {source}: {error}") from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").splitlines()
        reason = next((line for line in lines if "error" in line), f"status {done.returncode}")
        raise Unavailable(f"{compiler} did not build {source}: {reason.strip()[:200]}")
    os.replace(partial, result)
    return str(result)


def _compiler() -> str:
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang", "g++", "c++"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise Unavailable("no C compiler (cc, gcc, clang or g++) on PATH")
