"""What a person decided about findings, as one small JSON file each, apart from what a running campaign rewrites."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from fuzzer.exits import Exit, UserError
from fuzzer.store import atomic


class Stored(Protocol):
    """What a file can hold."""

    def to_map(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Stored)


class DecisionFile(Generic[T]):
    """Reads and changes one file, while the campaign runs or not."""

    def __init__(self, path: Path, parse: Callable[[Any], T], empty: Callable[[], T]) -> None:
        """``empty()``: what a missing file stands for. ``parse`` raises ``ValueError`` for what is none of ours."""
        self.path = path
        self._parse = parse
        self._empty = empty

    def read(self) -> T:
        """What is decided so far. Raises ``UserError`` for a file that is damaged: it is never replaced."""
        try:
            return self._parse(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return self._empty()
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.path}: cannot be read ({error}); mend it, or move it away to start anew", Exit.DIRECTORY
            ) from None

    def change(self, edit: Callable[[T], T]) -> T:
        """Read, edit, replace, as one step among all who do the same. Returns the new decisions.

        Raises ``UserError`` when the file cannot be read or written; what ``edit`` raises passes through.
        """
        try:
            with self._alone():
                changed = edit(self.read())
                atomic.write_text(self.path, json.dumps(changed.to_map(), indent=1) + "\n", durable=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}); mend that", Exit.DIRECTORY) from None
        return changed

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder itself: the file is replaced at every change, so a lock on it would not hold."""
        self.path.parent.mkdir(exist_ok=True)
        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
