"""``findings/groups.json``: which findings a person merged or split."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fuzzer.exits import Exit, UserError
from fuzzer.grouping import Decisions
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory


class GroupStore:
    """Reads and changes the decisions about groups, while the campaign runs or not."""

    def __init__(self, directory: CampaignDirectory) -> None:
        self.path = directory.labels.with_name("groups.json")

    def read(self) -> Decisions:
        """All decisions; none without a file. Raises ``UserError`` for a file that is damaged: it is never replaced."""
        try:
            return Decisions.from_map(json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return Decisions()
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.path}: cannot be read ({error}); mend it, or move it away to start anew", Exit.DIRECTORY
            ) from None

    def change(self, edit: Callable[[Decisions], Decisions]) -> Decisions:
        """Read, edit, replace, as one step among all who do the same. Returns the new decisions.

        Raises ``UserError`` when the file cannot be read or written; what ``edit`` raises passes through.
        """
        try:
            with self._alone():
                decisions = edit(self.read())
                atomic.write_text(self.path, json.dumps(decisions.to_map(), indent=1) + "\n", durable=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}); mend that", Exit.DIRECTORY) from None
        return decisions

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
