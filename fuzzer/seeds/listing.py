"""What a folder of programs, or a campaign's corpus, holds: a row a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.features.detect import detect
from fuzzer.program import Program, ProgramError
from fuzzer.seeds.shipped import read_index
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal


@dataclass(frozen=True)
class Row:
    """One seed. ``features`` are those of its text, or those realised where a run is on record. ``covered``: per
    coverage domain of a campaign the number of ids that it was the first to reach; for seeds with an index the number
    of operators that they dispatch and of classes of kernels; None where nothing is known of a run."""

    id: str
    source: str
    mode: str
    engine: str
    title: str
    features: tuple[str, ...]
    covered: dict[str, int] | None = None
    parents: tuple[str, ...] = ()

    def to_map(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "source": self.source,
            "mode": self.mode,
            "engine": self.engine,
            "title": self.title,
            "features": list(self.features),
            "covered": self.covered,
            "parents": list(self.parents),
        }


@dataclass
class Listing:
    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # one line a file that is no program


def list_seeds(folder: Path) -> Listing:
    """The seeds of a campaign directory, or the programs of a folder and those below it.

    Raises:
        UserError: there is no such folder, or the campaign cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name one with programs, or a campaign's directory")
    listing = Listing()
    if (folder / "campaign.toml").exists():
        _from_campaign(CampaignDirectory.open(folder), listing)
        return listing
    index = read_index(folder)
    for path in sorted(folder.rglob("*.py")):
        try:
            program = Program.parse(path.read_text("utf-8"), str(path))
        except (ProgramError, OSError, UnicodeDecodeError) as error:
            listing.skipped.append(str(error))
            continue
        known = index.get(program.id)
        if known is None:
            listing.rows.append(_row(program, detect(program, None, _no_family), None))
        else:
            covered = {"operators": len(known.operators), "kernels": known.kernels}
            listing.rows.append(_row(program, frozenset(known.features), covered))
    return listing


def _no_family(operator: str) -> str:
    """Families are told by what ran, and nothing ran."""
    return ""


def _row(program: Program, features: frozenset[str], covered: dict[str, int] | None) -> Row:
    meta = program.meta
    return Row(
        id=program.id,
        source=program.source,
        mode=program.mode,
        engine=str(meta.get("engine", "")),
        title=str(meta.get("title", "")),
        features=tuple(sorted(features)),
        covered=covered,
        parents=tuple(str(parent) for parent in meta.get("parents", ())),
    )


def _from_campaign(directory: CampaignDirectory, listing: Listing) -> None:
    covered = dict(_coverage(directory.journal))
    if not directory.corpus.is_dir():
        return
    files = CorpusFiles(directory.corpus)
    for seed in files:
        program = Program.parse(seed["text"], f"corpus/{Program(seed['text'], {}).id}")
        features = frozenset(map(str, seed.get("features", ())))
        listing.rows.append(_row(program, features, covered.get(program.id)))
    listing.skipped += files.warnings


def _coverage(journal: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Program → what its run was the first to reach, by domain. A later run of the same text reaches nothing new."""
    seen: set[str] = set()
    if not journal.exists():
        return
    for _offset, record in read_journal(journal):
        program = record.get("program")
        if record.get("t") == "run" and isinstance(program, str) and program not in seen:
            seen.add(program)
            yield program, {str(k): int(v) for k, v in record.get("outcome", {}).get("new_coverage", {}).items()}
