"""Issues of a tracker, imported, classified by rules, and searched for what looks like a new finding.

The taxonomy is one of compiler front ends: which task of the front end went wrong, and what root cause it had. Rules
are words with weights; a person's classification replaces theirs, and how often both agree is computed.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fuzzer.exits import UserError
from fuzzer.knowledge.search import connect, fts_query

#: Task → words that speak for it; a word in the title counts three times.
TASKS: Mapping[str, str] = {
    "operator_mapping": (r"decomp\w*|lowering|mapped|overload|fallback|wrong (op|kernel)|dispatch\w*|functionaliz\w*"),
    "shape_inference": (
        r"shapes?|meta kernel|fake ?tensor|broadcast\w*|symint|symbolic|unbacked|size mismatch|rank|"
        r"strides?"
    ),
    "folding_precision": (
        r"constant fold\w*|fold\w*|precision|float16|bfloat16|half|fp16|nan|inf|rounding|accumulat\w*|"
        r"overflow"
    ),
    "control_flow": (
        r"graph break|torch\.cond|while_loop|branch|loop|closure|generator|guard\w*|recompil\w*|"
        r"side effects?"
    ),
    "unsupported_operator": r"not implemented|unsupported|no kernel|notimplemented\w*|cannot find|missing op",
    "attribute_handling": (
        r"keyword|kwargs?|attribute|default (value|argument)|ceil_mode|padding|dilation|keepdim|"
        r"out of range|valid\w*|check\w*"
    ),
    "memory_layout": (
        r"channels.?last|contiguous|layout|alias\w*|mutat\w*|in.?place|clone|view|as_strided|memory|"
        r"reinplac\w*|storage"
    ),
    "code_generation": (
        r"codegen|c\+\+|cpp|triton|vectoriz\w*|simd|avx\w*|compile ?error|syntax|kernel|segfault|sigfpe|"
        r"crash\w*|fus(ion|ed)"
    ),
}
#: Root cause → words that speak for it.
CAUSES: Mapping[str, str] = {
    "semantics_misaligned": (
        r"differ\w*|mismatch|inconsisten\w*|wrong|incorrect\w*|silent\w*|diverge\w*|instead of|parity"
    ),
    "version_drift": (
        r"regression|used to work|worked (in|on)|since|after upgrad\w*|nightly broke|broke\w* (in|by)|"
        r"bisect\w*"
    ),
    "boundary": (
        r"empty|zero|0-dim\w*|scalar|negative|out of (range|bounds)|overflow|int64|extreme|edge case|nan|"
        r"inf|max(imum)? (int|value)"
    ),
    "missing_test": r"not tested|untested|test coverage|opinfo|no test",
    "narrow_fix": (
        r"still (fails|reproduces|happens)|reopen\w*|variant of|follow.?up|incomplete fix|also (fails|"
        r"crashes)|not fixed"
    ),
}
UNKNOWN = "unknown"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS issues (
  number INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, labels TEXT NOT NULL, state TEXT NOT NULL,
  machine_task TEXT NOT NULL, machine_cause TEXT NOT NULL, task TEXT NOT NULL, cause TEXT NOT NULL,
  human_verified INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS sampled (number INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE IF NOT EXISTS issue_text USING fts5(title, body, labels, tokenize = 'porter unicode61');
"""


@dataclass(frozen=True)
class Issue:
    """One issue as the tracker has it."""

    number: int
    title: str
    body: str = ""
    labels: tuple[str, ...] = ()
    state: str = ""


@dataclass(frozen=True)
class Similar:
    """An indexed issue that resembles a text. ``score``: BM25, comparable within one search."""

    number: int
    title: str
    task: str
    cause: str
    human_verified: bool
    score: float


@dataclass(frozen=True)
class Judged:
    """What the machine and a person said of one issue."""

    machine_task: str
    task: str
    machine_cause: str
    cause: str


def read_issues(path: Path) -> tuple[list[Issue], list[str]]:
    """Issues of a dump, and one line for each record that is none.

    JSON lines have ``number`` and ``title``, and may have ``body``, ``labels`` (names, or objects with a name) and
    ``state``. Anything else is Markdown: each heading with a number, such as ``## argmax is wrong #123``, is an issue.

    Raises:
        UserError: unreadable, or without any issue.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a dump of a tracker") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; give JSON lines or Markdown") from None
    faults: list[str] = []
    issues = list(_json_lines(text, path, faults) if text.lstrip().startswith("{") else _markdown(text))
    if not issues:
        reason = (
            faults[0] if faults else f"{path}: no issue in it; write JSON lines, or headings such as `## title #123`"
        )
        raise UserError(reason)
    return issues, faults


def _json_lines(text: str, path: Path, faults: list[str]) -> Iterator[Issue]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            labels = [label["name"] if isinstance(label, dict) else str(label) for label in data.get("labels") or ()]
            yield Issue(
                int(data["number"]),
                str(data["title"]),
                str(data.get("body") or ""),
                tuple(labels),
                str(data.get("state") or ""),
            )
        except json.JSONDecodeError as error:
            faults.append(f"{path}:{number}: not JSON ({error.msg}); one object a line")
        except (KeyError, TypeError, ValueError, AttributeError):
            faults.append(f"{path}:{number}: no issue; an object needs number and title")


_HEADING = re.compile(r"^#{1,6}\s+(?P<title>.*?)\s*#(?P<number>\d+)\s*$|^#{1,6}\s+#(?P<first>\d+)[:.\s]+(?P<rest>.*)$")


def _markdown(text: str) -> Iterator[Issue]:
    number, title, lines = 0, "", list[str]()
    for line in [*text.splitlines(), "# end #0"]:
        heading = _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        if number:
            body = "\n".join(lines).strip()
            found = re.search(r"^labels:\s*(.+)$", body, re.IGNORECASE | re.MULTILINE)
            labels = tuple(label.strip() for label in found[1].split(",")) if found else ()
            yield Issue(number, title, body, labels)
        number = int(heading["number"] or heading["first"])
        title, lines = (heading["title"] or heading["rest"] or "").strip(), []


def _encodable(issue: Issue) -> Issue:
    """Without lone surrogates, which JSON can spell and UTF-8 cannot hold."""
    title, body, state, *labels = (
        text.encode("utf-8", "replace").decode() for text in (issue.title, issue.body, issue.state, *issue.labels)
    )
    return Issue(issue.number, title, body, tuple(labels), state)


def classify(issue: Issue) -> tuple[str, str]:
    """(task, root cause) that the most words speak for; ``unknown`` where none does."""
    return _most(issue, TASKS), _most(issue, CAUSES)


def _most(issue: Issue, rules: Mapping[str, str]) -> str:
    best, name = 0.0, UNKNOWN
    for key, pattern in rules.items():
        words = re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)
        said = len({found[0].lower() for found in words.finditer(issue.body)})  # a log repeats its words
        score = 3.0 * len(words.findall(issue.title)) + min(said, 4) + len(words.findall(" ".join(issue.labels)))
        if score > best:
            best, name = score, key
    return name


class IssueIndex:
    """Imported issues in one SQLite file. Use as a context manager."""

    def __init__(self, path: Path, create: bool = False) -> None:
        """Raises ``UserError``: no such index, or a file that is none."""
        if not create and not path.exists():
            raise UserError(f"{path}: no such index; make one with `eddy knowledge import-issues DUMP --out {path}`")
        try:
            self._base = connect(str(path))
            self._base.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise UserError(f"{path}: no index of issues ({error}); name another file") from None

    def __enter__(self) -> IssueIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.commit()
        self._base.close()

    def add(self, issues: Iterable[Issue]) -> int:
        """Add or renew issues; what a person verified stays. Returns how many."""
        count = 0
        for issue in map(_encodable, issues):
            task, cause = classify(issue)
            labels = ", ".join(issue.labels)
            self._base.execute(
                "INSERT INTO issues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (number) DO UPDATE SET "
                "title = excluded.title, body = excluded.body, labels = excluded.labels, state = excluded.state, "
                "machine_task = excluded.machine_task, machine_cause = excluded.machine_cause, "
                "task = CASE human_verified WHEN 1 THEN task ELSE excluded.task END, "
                "cause = CASE human_verified WHEN 1 THEN cause ELSE excluded.cause END",
                (issue.number, issue.title, issue.body, labels, issue.state, task, cause, task, cause),
            )
            self._base.execute("DELETE FROM issue_text WHERE rowid = ?", (issue.number,))
            self._base.execute(
                "INSERT INTO issue_text (rowid, title, body, labels) VALUES (?, ?, ?, ?)",
                (issue.number, issue.title, issue.body, labels),
            )
            count += 1
        self._base.commit()
        return count

    def similar(self, text: str, limit: int = 5) -> list[Similar]:
        """Issues that look like a text, the most alike first. Raises ``UserError`` for a text without words."""
        rows = self._base.execute(
            "SELECT number, issues.title, task, cause, human_verified, -bm25(issue_text, 3.0, 1.0, 1.0) AS score "
            "FROM issue_text JOIN issues ON number = issue_text.rowid WHERE issue_text MATCH ? "
            "ORDER BY score DESC, number LIMIT ?",
            (fts_query(text), limit),
        )
        return [
            Similar(number, title, task, cause, bool(verified), score)
            for number, title, task, cause, verified, score in rows
        ]

    def verify(self, number: int, task: str, cause: str) -> None:
        """Take a person's classification. Raises ``UserError``: unknown class or issue."""
        for name, known in ((task, TASKS), (cause, CAUSES)):
            if name not in known and name != UNKNOWN:
                raise UserError(f"{name!r} is no class; use one of {', '.join([*known, UNKNOWN])}")
        changed = self._base.execute(
            "UPDATE issues SET task = ?, cause = ?, human_verified = 1 WHERE number = ?", (task, cause, number)
        )
        if not changed.rowcount:
            raise UserError(f"issue {number} is not in the index; import it first")

    def sample(self, count: int, seed: int = 0) -> list[Issue]:
        """Issues drawn at random among those that no person classified, remembered as drawn; fewer where few are left.

        The machine's classes are not in it: they would lead the person.
        """
        rows = self._base.execute("SELECT number FROM issues WHERE NOT human_verified ORDER BY number").fetchall()
        numbers = [number for (number,) in rows]
        chosen = sorted(random.Random(seed).sample(numbers, min(count, len(numbers))))
        self._base.executemany("INSERT OR IGNORE INTO sampled VALUES (?)", [(number,) for number in chosen])
        return [self._issue(number) for number in chosen]

    def _issue(self, number: int) -> Issue:
        row = self._base.execute("SELECT title, body, labels, state FROM issues WHERE number = ?", (number,)).fetchone()
        title, body, labels, state = row
        return Issue(number, title, body, tuple(filter(None, labels.split(", "))), state)

    def judged(self, sampled: bool = False) -> list[Judged]:
        """Issues that a person classified; ``sampled``: only those drawn at random, which speak for all."""
        among = "WHERE human_verified" + (" AND number IN (SELECT number FROM sampled)" if sampled else "")
        rows = self._base.execute(f"SELECT machine_task, task, machine_cause, cause FROM issues {among}")
        return [Judged(*row) for row in rows]

    def counts(self) -> dict[str, dict[str, int]]:
        """Issues by task and by cause."""
        return {
            column: dict(self._base.execute(f"SELECT {column}, COUNT(*) FROM issues GROUP BY 1 ORDER BY 2 DESC"))
            for column in ("task", "cause")
        }

    def agreement(self) -> dict[str, float]:
        """Of the issues that a person verified: how many, and the shares on which the rules had said the same."""
        row = self._base.execute(
            "SELECT COUNT(*), AVG(task = machine_task), AVG(cause = machine_cause) FROM issues WHERE human_verified"
        ).fetchone()
        return {"verified": row[0], "task": row[1] or 0.0, "cause": row[2] or 0.0}
