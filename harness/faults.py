"""Turns an exception into facts: its type, its root cause, and the frames that a person needs."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from typing import Any

_MESSAGE_CAP = 4000
_FRAME_CAP = 60
_SITE = os.path.realpath(sysconfig.get_paths()["purelib"]) + os.sep


def fault_of(error: BaseException, program: str = "") -> dict[str, Any]:
    """The wire's ``Fault`` for an exception. ``program``: path of the program, whose line is told (0: not in it)."""
    cause = root_cause(error)
    return {
        "type": qualified_name(error),
        "message": message_of(error),
        "cause_type": qualified_name(cause),
        "cause_message": message_of(cause),
        "frames": frames_of(cause) or frames_of(error),
        "line": line_in(cause, program) or line_in(error, program),
    }


def root_cause(error: BaseException) -> BaseException:
    """The innermost exception: follows torch's ``inner_exception`` and Python's ``__cause__``.

    ``__context__`` is followed only where Python would show it, and never out of an exception that torch raised on
    purpose while handling another one.
    """
    seen = {id(error)}
    while True:
        inner = getattr(error, "inner_exception", None) or error.__cause__
        if not isinstance(inner, BaseException) or id(inner) in seen:
            return error
        seen.add(id(inner))
        error = inner


def qualified_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as second:  # an exception whose own __str__ fails is still a fact
        text = f"<message unavailable: {type(second).__name__}>"
    return text if len(text) <= _MESSAGE_CAP else text[: _MESSAGE_CAP // 2] + "\n…\n" + text[-_MESSAGE_CAP // 2 :]


def frames_of(error: BaseException) -> list[str]:
    """``file:function`` of each frame, outermost first, relative to site-packages."""
    frames = []
    for frame, _line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        frames.append(f"{short_path(code.co_filename)}:{code.co_name}")
    return frames[-_FRAME_CAP:]


def line_in(error: BaseException, path: str) -> int:
    """Line of the innermost frame in that file; 0 when the exception did not pass through it."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    return lines[-1] if path and lines else 0


def short_path(path: str) -> str:
    """A path that is the same on every machine: relative to site-packages or the standard library."""
    real = os.path.realpath(path) if path.startswith(os.sep) else path
    if real.startswith(_SITE):
        return real[len(_SITE) :]
    for root in sys.path:
        if root and real.startswith(root + os.sep):
            return real[len(root) + 1 :]
    return os.path.basename(real)
