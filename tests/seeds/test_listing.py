"""Rows of a folder and of a campaign's corpus."""

from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.seeds.listing import list_seeds
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import Journal

TEXT = """import torch

META = {"mode": "backward", "engine": "import", "title": "a test"}


def build_inputs():
    return (torch.ones(2, dtype=torch.float16).requires_grad_(),)


def fn(a):
    return a.sin()
"""


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text(TEXT)
    (tmp_path / "other.py").write_text("x = 1\n")
    listing = list_seeds(tmp_path)
    (row,) = listing.rows
    assert (row.mode, row.engine, row.title, row.covered) == ("backward", "import", "a test", None)
    assert "dtype=float16" in row.features
    assert len(listing.skipped) == 1 and "other.py" in listing.skipped[0]
    assert set(row.to_map()) == {"id", "source", "mode", "engine", "title", "features", "covered", "parents"}


def test_a_campaign_knows_what_its_seeds_covered(tmp_path: Path) -> None:
    directory = CampaignDirectory.create(tmp_path / "c", {"seed": 1})
    CorpusFiles(directory.corpus).add({"text": TEXT, "features": ["dtype=float16"]})
    (seed_id,) = CorpusFiles(directory.corpus).ids
    with Journal(directory.journal) as journal:
        journal.append({"t": "run", "program": seed_id, "outcome": {"new_coverage": {"native": 7}}})
        journal.append({"t": "run", "program": seed_id, "outcome": {"new_coverage": {}}})
    (row,) = list_seeds(directory.path).rows
    assert (row.id, row.covered, row.features) == (seed_id, {"native": 7}, ("dtype=float16",))


def test_no_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        list_seeds(tmp_path / "absent")
