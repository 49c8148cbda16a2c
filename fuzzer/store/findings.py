"""Findings on disk: a folder each, that a person can open, read, and run."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fuzzer.exits import UserError
from fuzzer.finding import Finding, State
from fuzzer.report import report
from fuzzer.repro_script import repro_script
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory
from fuzzer.verdict import Kind

#: How many other programs with the same signature are kept beside a finding.
ALSO_KEPT = 3

#: Bytes of one log; of a longer one the beginning and the end are kept.
_LOG_CAP = 256 << 10


class FindingStore:
    """``findings/``, ``flaky/`` and ``hangs/`` of a campaign.

    One folder a major signature, named ``<sig8>-<slug>``. ``finding.json`` is written last, so a folder whose other
    files are newer is completed by the next ``save``. ``warnings`` names folders that could not be read.
    """

    def __init__(self, directory: CampaignDirectory) -> None:
        self.directory = directory
        self.warnings: list[str] = []
        self._folders: dict[str, Path] = {}  # by major key
        self.load_all()

    def __len__(self) -> int:
        return len(self._folders)

    def save(self, finding: Finding, logs: Sequence[str] = ()) -> Path:
        """Create or update the folder of a finding; returns it.

        New ones appear complete, by one rename. Updates replace file by file, and move the folder where the state
        asks for it (``flaky/`` and back). Logs that are not given stay. Raises ``OSError``.
        """
        files = _files(finding, logs)
        existing = self._folders.get(finding.signature.major)
        if existing is not None and existing.is_dir():
            folder = self._moved(existing, finding)
            _write(folder, files)
        else:
            folder = self._unused(finding)
            building = atomic.temporary_beside(folder)
            building.mkdir(parents=True)
            try:
                _write(building, files)
                os.replace(building, folder)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                raise
        self._folders[finding.signature.major] = folder
        return folder

    def get(self, major: str) -> Finding | None:
        """The finding with that major key, or None."""
        folder = self._folders.get(major)
        return self._read(folder) if folder is not None else None

    def folder(self, finding: Finding) -> Path | None:
        """Where a finding lies, or None before ``save``."""
        return self._folders.get(finding.signature.major)

    def add_duplicate(self, major: str, text: str) -> Finding:
        """Count one more program with the same major key, and keep its text while there are few.

        Raises ``KeyError`` when there is no such finding.
        """
        folder, finding = self._folders[major], self.get(major)
        if finding is None:
            raise KeyError(major)
        finding = replace(finding, duplicates=finding.duplicates + 1)
        also = folder / "also"
        kept = sorted(name for name in os.listdir(also) if name.endswith(".py")) if also.is_dir() else []
        name = f"{replace(finding, text=text).program_id}.py"
        if text != finding.text and name not in kept and len(kept) < ALSO_KEPT:
            also.mkdir(exist_ok=True)
            atomic.write_text(also / name, text)
        atomic.write_text(folder / "finding.json", _json(finding), durable=True)
        return finding

    def load_all(self) -> list[Finding]:
        """All findings, by folder name. What cannot be read leaves a line in ``warnings``."""
        found: list[Finding] = []
        self._folders = {}
        for root in self._roots():
            for folder in sorted(path for path in root.iterdir() if path.is_dir()):
                if folder.name.startswith("."):
                    continue
                finding = self._read(folder)
                if finding is not None:
                    self._folders[finding.signature.major] = folder
                    found.append(finding)
        return found

    def find(self, prefix: str) -> Finding:
        """The one finding meant by a path, or by the beginning of its folder's name or of its slug.

        Raises ``UserError`` when none or several fit.
        """
        path = Path(prefix).absolute()
        path = path.parent if path.is_file() else path
        folders = [folder for folder in self._folders.values() if folder == path]
        if not folders:
            folders = [folder for folder in self._folders.values() if _fits(folder.name, prefix)]
        if not folders:
            known = ", ".join(sorted(folder.name for folder in self._folders.values())[:5]) or "none yet"
            raise UserError(f"no finding {prefix!r} in {self.directory.path}; there are: {known}")
        if len(folders) > 1:
            names = ", ".join(sorted(folder.name for folder in folders)[:5])
            raise UserError(f"{prefix!r} fits {len(folders)} findings ({names}); give more of the name")
        finding = self._read(folders[0])
        if finding is None:
            raise UserError(f"{folders[0]}: {self.warnings[-1]}")
        return finding

    def _roots(self) -> tuple[Path, ...]:
        roots = (self.directory.findings, self.directory.flaky, self.directory.hangs)
        return tuple(root for root in roots if root.is_dir())

    def _root_of(self, finding: Finding) -> Path:
        if finding.state is State.FLAKY:
            return self.directory.flaky
        return self.directory.hangs if finding.kind is Kind.HANG else self.directory.findings

    def _moved(self, folder: Path, finding: Finding) -> Path:
        root = self._root_of(finding)
        if folder.parent == root:
            return folder
        target = root / folder.name
        os.replace(folder, target)
        self._folders[finding.signature.major] = target
        return target

    def _unused(self, finding: Finding) -> Path:
        """A free name: a number is added where another major key shares the eight digits and the slug."""
        root, name, number = self._root_of(finding), f"{finding.sig8}-{finding.slug}", 1
        root.mkdir(exist_ok=True)
        while (folder := root / (name if number == 1 else f"{name}-{number}")).exists():
            number += 1
        return folder

    def _read(self, folder: Path) -> Finding | None:
        try:
            return Finding.from_map(json.loads((folder / "finding.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            self.warnings.append(f"{folder}: skipped, finding.json cannot be read ({error})")
            return None


def _fits(name: str, prefix: str) -> bool:
    return bool(prefix) and (name.startswith(prefix) or name.partition("-")[2].startswith(prefix))


def _json(finding: Finding) -> str:
    return json.dumps(finding.to_map(), indent=1, ensure_ascii=True) + "\n"


def _files(finding: Finding, logs: Sequence[str]) -> dict[str, str]:
    """Names and contents, ``finding.json`` last."""
    options = {"torch": finding.target.get("torch"), "threads": finding.facts.get("threads")}
    options["timeout"] = finding.facts.get("timeout")
    repro = repro_script(finding.text, finding.kind, stage=finding.stage, facts=finding.facts, options=options)
    files = {"repro.py": repro}
    if finding.reduced:
        files["reduced.py"] = repro_script(
            finding.reduced, finding.kind, stage=finding.stage, facts=finding.facts, options=options
        )
    files["report.md"] = report(finding, files.get("reduced.py", repro))
    files |= {f"log-{number}.txt": _capped(log) for number, log in enumerate(logs)}
    files["finding.json"] = _json(finding)
    return files


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        atomic.write_text(folder / name, text, durable=name == "finding.json")


def _capped(log: str) -> str:
    if len(log) <= _LOG_CAP:
        return log
    half = _LOG_CAP // 2
    return f"{log[:half]}\n… {len(log) - 2 * half} characters left out …\n{log[-half:]}"
