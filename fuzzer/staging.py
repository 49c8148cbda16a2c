"""Stages a private copy of the harness for a target, so that the target needs nothing but torch on its own path."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgpack

import harness

#: What a child may inherit. Everything else (keys, tokens, proxies, PYTHON*) stays with the orchestrator.
_ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CXX", "CC", "CPATH",
    "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV",
)  # fmt: skip


def stage_harness(folder: Path) -> Path:
    """Copy ``harness/`` and the pure-Python part of msgpack under ``folder``; returns the path to put on sys.path."""
    root = folder / "stage"
    shutil.rmtree(root, ignore_errors=True)
    source = Path(harness.__file__).parent
    shutil.copytree(source, root / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    packed = Path(msgpack.__file__).parent
    (root / "msgpack").mkdir()
    for name in ("__init__.py", "exceptions.py", "ext.py", "fallback.py"):
        shutil.copy(packed / name, root / "msgpack" / name)
    return root


def target_environment(scratch: Path, cache: Path) -> dict[str, str]:
    """The environment of a fork server: an allowlist, one thread everywhere, own caches.

    One thread because a forked child of a parent that has run a thread pool hangs; programs that want threads set
    them in the child.
    """
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # The precompiled header lies in the temporary folder: a fresh process of the same worker finds it there.
    temporary = cache / "tmp"
    for folder in (temporary, cache):
        folder.mkdir(parents=True, exist_ok=True)
    return environment | {
        "HOME": str(scratch),
        "TMPDIR": str(temporary),
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MSGPACK_PUREPYTHON": "1",
    }


def server_command(python: str, stage: Path, fd: int, fake: bool) -> list[str]:
    """The command line of a fork server. ``-I`` keeps the caller's directory and PYTHON* variables out of it."""
    module = "harness.fake" if fake else "harness.server"
    code = f"import sys; sys.path.insert(0, {str(stage)!r}); from {module} import main; main({fd})"
    return [python, "-I", "-c", code]
