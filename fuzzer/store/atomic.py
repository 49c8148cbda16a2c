"""Files that are whole or absent: everything is written beside its place and moved there in one step."""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

#: Unfinished files and folders carry this suffix and a leading dot; a killed process may leave some behind.
TEMPORARY_SUFFIX = ".tmp"

_counter = itertools.count()


def temporary_beside(path: Path) -> Path:
    """An unused hidden name in the folder of ``path``, hence on the same file system."""
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_counter)}{TEMPORARY_SUFFIX}")


def is_temporary(name: str) -> bool:
    """Is this the name of an unfinished file or folder?"""
    return name.startswith(".") and name.endswith(TEMPORARY_SUFFIX)


def write_bytes(path: Path, data: bytes, durable: bool = False) -> None:
    """Create or replace ``path``. Readers see the old content or the new one, never a part.

    With ``durable`` the content also survives a power failure (two fsync calls, milliseconds each). Raises
    ``OSError`` (a full disk, no permission); the old content then stays and nothing is left behind.
    """
    temporary = temporary_beside(path)
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def write_text(path: Path, text: str, durable: bool = False) -> None:
    """``write_bytes`` for text. Lone surrogates, which UTF-8 cannot hold, are written as escapes."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), durable)


def sync_folder(folder: Path) -> None:
    """Make the renames in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove what killed processes left unfinished directly in ``folder``. Needs the campaign's lock."""
    for entry in os.scandir(folder):
        if is_temporary(entry.name):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
