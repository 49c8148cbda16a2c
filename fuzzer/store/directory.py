"""The campaign directory: this module owns every path in it, its configuration and its format number."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fuzzer.exits import Exit, UserError
from fuzzer.store import atomic
from fuzzer.store.lock import CampaignLock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: Raised when a newer Eddy writes what an older one would misread. 1: the first.
FORMAT = 1

DiskState = Literal["ok", "low", "full"]


@dataclass(frozen=True)
class DiskLimits:
    """Free space, in bytes, below which a campaign changes its ways.

    Below ``low`` duplicates are no longer kept: one compile can write some hundred megabytes of scratch, so a
    gigabyte is a few programs away from nothing. Below ``full`` the campaign pauses: what is left must hold
    one more flush of journal, snapshot and findings (tens of megabytes) with room for other users of the
    disk.
    """

    low: int = 1 << 30
    full: int = 256 << 20

    def __post_init__(self) -> None:
        if not 0 <= self.full <= self.low:
            raise ValueError(f"disk limits must satisfy 0 <= full <= low, not full={self.full}, low={self.low}")


class CampaignDirectory:
    """A campaign on disk. Make one with ``create`` or ``open``; neither takes the lock.

    ``config`` is what ``campaign.toml`` holds: ``format`` and whatever ``create`` was given (by custom
    ``eddy`` version, ``seed``, tables ``target`` and ``options``).
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.config = config

    # Paths. Nothing outside this class joins a name to the directory's path.
    @property
    def config_file(self) -> Path:
        return self.path / "campaign.toml"

    @property
    def lock_file(self) -> Path:
        return self.path / "LOCK"

    @property
    def stop_file(self) -> Path:
        return self.path / "STOP"

    @property
    def readme(self) -> Path:
        return self.path / "README.txt"

    @property
    def corpus(self) -> Path:
        return self.path / "corpus"

    @property
    def findings(self) -> Path:
        return self.path / "findings"

    @property
    def labels(self) -> Path:
        return self.findings / "labels.json"

    @property
    def flaky(self) -> Path:
        return self.path / "flaky"

    @property
    def hangs(self) -> Path:
        return self.path / "hangs"

    @property
    def journal(self) -> Path:
        return self.path / "journal.msgpack"

    @property
    def snapshot(self) -> Path:
        return self.path / "snapshot.msgpack"

    @property
    def fuzzer_stats(self) -> Path:
        return self.path / "fuzzer_stats"

    @property
    def plot_data(self) -> Path:
        return self.path / "plot_data"

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def coverage(self) -> Path:
        return self.path / "coverage"

    @property
    def operators(self) -> Path:
        """Operators derived from the target, where those that ship do not fit it."""
        return self.path / "operators.msgpack.z"

    @property
    def issues(self) -> Path:
        """An index of imported issues, where there is one: ``eddy knowledge import-issues DUMP --out PATH``."""
        return self.path / "issues.sqlite"

    @property
    def llm(self) -> Path:
        return self.path / "llm"

    @property
    def tmp(self) -> Path:
        return self.path / "tmp"

    @property
    def report_page(self) -> Path:
        return self.path / "report.html"

    def worker_tmp(self, worker: str | int) -> Path:
        """The scratch folder of one worker, made when absent."""
        folder = self.tmp / re.sub(r"[^A-Za-z0-9_-]", "_", str(worker))
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.corpus, self.findings, self.flaky, self.hangs, self.coverage, self.llm, self.tmp)

    @classmethod
    def create(cls, path: str | os.PathLike[str], config: Mapping[str, Any]) -> CampaignDirectory:
        """Make a new campaign in an absent or empty directory.

        ``config`` holds TOML's types in at most any depth of tables; keys whose value is None are left out.
        Raises ``UserError`` (exit status 6) when the directory holds anything, or cannot be written.
        """
        root = Path(path).absolute()
        directory = cls(root, {"format": FORMAT, **_without_none(config)})
        try:
            root.mkdir(parents=True, exist_ok=True)
            if directory.config_file.exists():
                raise _refused(root, "already holds a campaign; continue it with --resume or choose another directory")
            strangers = sorted(name for name in os.listdir(root) if not atomic.is_temporary(name))
            if strangers:
                raise _refused(
                    root,
                    f"not empty and not a campaign (it holds {strangers[0]!r}); choose an empty directory",
                )
            # The configuration comes first: a process killed here leaves a directory that opens.
            atomic.write_text(directory.config_file, format_toml(directory.config), durable=True)
            directory._complete()
        except FileExistsError:
            raise _refused(root, "is a file, not a directory; choose another path") from None
        except OSError as error:
            raise _refused(root, f"cannot be written ({error.strerror}); mend it or choose another path") from None
        return directory

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> CampaignDirectory:
        """Open an existing campaign.

        Raises ``UserError`` (exit status 6) when there is none, when ``campaign.toml`` is damaged, or when a
        newer Eddy wrote it.
        """
        root = Path(path).absolute()
        try:
            text = (root / "campaign.toml").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise _refused(root, "not a campaign (no campaign.toml); start one with `eddy fuzz DIR`") from None
        except (OSError, UnicodeDecodeError) as error:
            raise _refused(root, f"campaign.toml cannot be read ({error}); mend it") from None
        try:
            config = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _refused(root, f"campaign.toml is not valid TOML ({error}); mend that line") from None
        number = config.get("format")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise _refused(root, f"campaign.toml has format = {number!r}; it must be a whole number from 1")
        if number > FORMAT:
            raise _refused(
                root,
                f"written by a newer Eddy (format {number}, this one reads up to {FORMAT}); upgrade Eddy",
            )
        return cls(root, config)

    def lock(self) -> CampaignLock:
        """The lock of this directory, not yet taken: ``with directory.lock(): …``."""
        return CampaignLock(self.lock_file)

    def start(self) -> None:
        """Ready the directory for a run: wipe scratch, sweep leftovers, clear STOP. Needs the lock."""
        self.wipe_tmp()
        self._complete()
        for folder in (self.path, *self._folders):
            atomic.sweep(folder)
        self.clear_stop()

    def _complete(self) -> None:
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
        atomic.write_text(self.readme, self._readme_text())

    def wipe_tmp(self) -> None:
        """Empty ``tmp/``, also of what programs made read-only there."""
        if self.tmp.is_symlink() or (self.tmp.exists() and not self.tmp.is_dir()):
            self.tmp.unlink()
        if self.tmp.exists():
            _make_writable(self.tmp)
            shutil.rmtree(self.tmp)
        self.tmp.mkdir(exist_ok=True)

    def request_stop(self, reason: str = "requested") -> None:
        """Ask the running campaign to drain and end."""
        atomic.write_text(self.stop_file, reason + "\n")

    def stop_requested(self) -> str | None:
        """None, or why to stop: the first line of ``STOP`` (``touch STOP`` reads "STOP file")."""
        try:
            words = self.stop_file.read_text(encoding="utf-8", errors="replace").strip()
        except FileNotFoundError:
            return None
        return words.splitlines()[0] if words else "STOP file"

    def clear_stop(self) -> None:
        self.stop_file.unlink(missing_ok=True)

    def disk_state(self, limits: DiskLimits | None = None) -> DiskState:
        """How much room the disk under the campaign has."""
        limits = limits or DiskLimits()
        free = shutil.disk_usage(self.path).free
        return "full" if free < limits.full else "low" if free < limits.low else "ok"

    def _readme_text(self) -> str:
        here = shlex.quote(str(self.path))
        return f"""A campaign of Eddy, a fuzzer for torch.compile.

Resume:     eddy fuzz {here} --resume
Stop:       touch {shlex.quote(str(self.stop_file))}
Watch:      eddy status {here}
Triage:     eddy triage {here}
Report:     eddy report {here}
Reproduce:  eddy repro {shlex.quote(str(self.findings))}/NAME
            or, with nothing but torch: python {shlex.quote(str(self.findings))}/NAME/repro.py

campaign.toml   the options as run        corpus/     kept programs, named by content
findings/       confirmed failures        flaky/      failures that fresh processes did not confirm
hangs/          programs that never end   events.jsonl, fuzzer_stats, plot_data   what happened, and numbers
journal.msgpack the truth about the campaign; snapshot.msgpack is only a cache of it. tmp/ is wiped at every
start.
"""


def _refused(root: Path, why: str) -> UserError:
    return UserError(f"{root}: {why}", Exit.DIRECTORY)


def _make_writable(root: Path) -> None:
    root.chmod(stat.S_IRWXU)
    for folder, names, _ in os.walk(root):  # a folder is listed only after its own mode was set from above
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(stat.S_IRWXU)


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }


def format_toml(table: Mapping[str, Any]) -> str:
    """TOML text of a map of strings, booleans, 64-bit integers, floats, lists and maps.

    Maps become tables, maps inside lists inline tables. Raises ``TypeError`` for anything else.
    """
    lines: list[str] = []
    _format_table(table, (), lines)
    return "\n".join(lines) + "\n"


def _format_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    for key, value in table.items():
        if not isinstance(value, Mapping):
            lines.append(f"{_format_key(key)} = {_format_value(value)}")
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(_format_key(part) for part in inner)}]"]
            _format_table(value, inner, lines)


def _format_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _format_string(key)


def _format_string(text: str) -> str:
    # A JSON string is a TOML basic string, except that TOML wants DEL escaped and has no lone surrogates.
    sound = text.encode("utf-8", "backslashreplace").decode()
    return json.dumps(sound, ensure_ascii=False).replace("\x7f", "\\u007f")


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)  # inf and nan are spelt alike in TOML
    if isinstance(value, str):
        return _format_string(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_format_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_format_key(key)} = {_format_value(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"campaign.toml cannot hold a {type(value).__name__}: {value!r}")
