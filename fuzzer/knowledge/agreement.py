"""Does the machine classify issues as a person does? The sheet that a person fills in, and the agreement it gives."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.knowledge.issues import CAUSES, TASKS, UNKNOWN, Issue, Judged

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LINES, _WIDTH = 12, 110  # of an issue's text on the sheet


def sheet(issues: Sequence[Issue]) -> str:
    """TOML with an empty ``task`` and ``cause`` for each issue; its text stands above as comments."""
    parts = [
        "# Fill in task and cause, then: eddy knowledge verify --index INDEX --from THIS_FILE",
        f"# task:  {', '.join([*TASKS, UNKNOWN])}",
        f"# cause: {', '.join([*CAUSES, UNKNOWN])}",
    ]
    for issue in issues:
        text = [line.rstrip()[:_WIDTH] for line in issue.body.splitlines() if line.strip()][:_LINES]
        lines = [f"#{issue.number}  {issue.title}", *text]
        parts.append("\n".join(["", *(f"# {_printable(line)}" for line in lines)]))
        parts.append(f'[[issue]]\nnumber = {issue.number}\ntask = ""\ncause = ""')
    return "\n".join(parts) + "\n"


def _printable(line: str) -> str:
    """TOML allows no control characters in comments, and files no lone surrogates."""
    return "".join(letter if letter.isprintable() else " " for letter in line)


def read_sheet(path: Path) -> list[tuple[int, str, str]]:
    """(number, task, cause) of the issues that were filled in.

    Raises:
        UserError: unreadable, or an entry that is half filled in or names no class; says which.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("issue", [])
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); make one with `eddy knowledge sample`") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML ({error}); mend that line") from None
    found = []
    for place, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        number = entry.get("number") if isinstance(entry, dict) else None
        if not isinstance(number, int):
            raise UserError(f"{path}: entry {place} has no number; leave the line as it was")
        task, cause = str(entry.get("task", "")).strip(), str(entry.get("cause", "")).strip()
        if not task and not cause:
            continue
        for key, name, known in (("task", task, TASKS), ("cause", cause, CAUSES)):
            if name not in known and name != UNKNOWN:
                choices = ", ".join([*known, UNKNOWN])
                raise UserError(f"{path}: issue {number}: {key} is {name!r}; use one of {choices}")
        found.append((number, task, cause))
    return found


def agreement(judged: Iterable[Judged]) -> dict[str, Any]:
    """Per column: share on which both agree, Cohen's kappa (agreement beyond what their shares give by chance; 1 is
    full, 0 chance), and the confusions, the most frequent first: (machine, person, how often)."""
    found = list(judged)
    task = [(item.machine_task, item.task) for item in found]
    cause = [(item.machine_cause, item.cause) for item in found]
    return {"issues": len(found), "task": _column(task), "cause": _column(cause)}


def _column(pairs: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    count = len(pairs)
    if not count:
        return {"agree": 0.0, "kappa": 0.0, "confused": []}
    same = sum(machine == person for machine, person in pairs) / count
    machines, persons = Counter(machine for machine, _ in pairs), Counter(person for _, person in pairs)
    chance = sum(machines[name] * persons[name] for name in machines) / count**2
    confused = Counter(pair for pair in pairs if pair[0] != pair[1]).most_common()
    return {
        "agree": same,
        "kappa": 1.0 if chance == 1.0 else (same - chance) / (1.0 - chance),
        "confused": [[machine, person, times] for (machine, person), times in confused],
    }
