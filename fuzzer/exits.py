"""Exit codes of the ``eddy`` command, and the one exception that ends a command with a line for its user."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the exit status of ``eddy`` says. Numbers are a promise to scripts: never renumbered."""

    DONE = 0
    INTERNAL = 1  # a fault of Eddy's own
    USAGE = 2  # bad input: arguments, files, programs
    ABORTED = 3  # the campaign stopped before its end (second Ctrl-C, disk full for good)
    TARGET = 4  # the target interpreter cannot start or has no working torch
    NOT_REPRODUCED = 5  # `eddy repro`: the failure did not show
    DIRECTORY = 6  # the directory is locked, or refused
    FINDING = 77  # `--exit-on-finding`, and `eddy exec` when a program fails
    INTERRUPTED = 130  # Ctrl-C, drained


class UserError(Exception):
    """Bad input or surroundings. ``str(error)`` is one line: what is wrong, where, how to mend it."""

    def __init__(self, message: str, exit_code: Exit = Exit.USAGE) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code
