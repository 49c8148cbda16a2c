import os
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import Exit, UserError
from fuzzer.store import atomic
from fuzzer.store import directory as directory_module
from fuzzer.store.directory import FORMAT, CampaignDirectory, DiskLimits, format_toml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG = {"eddy": "0.1", "seed": 7, "skipped": None, "target": {"torch": "2.13.0+cpu"}, "options": {"workers": 2}}

_text = st.text(st.characters(exclude_categories=["Cs"]))
_scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _text
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(_text, _values, max_size=5))
def test_toml_reads_back_as_written(table):
    assert tomllib.loads(format_toml(table)) == table


def test_toml_refuses_what_it_has_no_type_for():
    with pytest.raises(TypeError, match="set"):
        format_toml({"a": {1}})


def test_created_campaign_opens_with_its_configuration(tmp_path):
    made = CampaignDirectory.create(tmp_path / "new" / "campaign", CONFIG)
    opened = CampaignDirectory.open(made.path)
    assert opened.config == {
        "format": FORMAT, "eddy": "0.1", "seed": 7, "target": {"torch": "2.13.0+cpu"}, "options": {"workers": 2}
    }  # fmt: skip
    readme = opened.readme.read_text()
    assert f"eddy fuzz {opened.path} --resume" in readme
    assert f"eddy repro {opened.findings}/NAME" in readme


@pytest.mark.parametrize("prepare, words", [
    (lambda root: (root / "thesis.tex").write_text("x"), "thesis.tex"),
    (lambda root: CampaignDirectory.create(root, CONFIG), "--resume"),
])  # fmt: skip
def test_create_refuses_a_directory_in_use(tmp_path, prepare, words):
    prepare(tmp_path)
    with pytest.raises(UserError, match=words) as caught:
        CampaignDirectory.create(tmp_path, CONFIG)
    assert caught.value.exit_code is Exit.DIRECTORY


@pytest.mark.parametrize("text, words", [
    (None, "not a campaign"),
    (f"format = {FORMAT + 1}", "newer Eddy"),
    ("format = ", "not valid TOML"),
    ("seed = 1", "format = None"),
])  # fmt: skip
def test_open_refuses_what_it_cannot_understand(tmp_path, text, words):
    if text is not None:
        (tmp_path / "campaign.toml").write_text(text)
    with pytest.raises(UserError, match=words) as caught:
        CampaignDirectory.open(tmp_path)
    assert caught.value.exit_code is Exit.DIRECTORY


def test_start_wipes_scratch_and_leftovers_and_the_old_stop(tmp_path):
    campaign = CampaignDirectory.create(tmp_path, CONFIG)
    locked_away = campaign.worker_tmp("w/0") / "inner"
    locked_away.mkdir()
    (locked_away / "file").write_text("x")
    outside = tmp_path.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (campaign.tmp / "link").symlink_to(outside)
    locked_away.chmod(0o500)
    leftover = atomic.temporary_beside(campaign.findings / "abc")
    leftover.mkdir()
    campaign.request_stop("disk full for good")
    assert campaign.stop_requested() == "disk full for good"

    campaign.start()

    assert list(campaign.tmp.iterdir()) == []
    assert not leftover.exists()
    assert campaign.stop_requested() is None
    assert (outside / "precious").exists()


def test_a_bare_stop_file_is_a_reason_too(tmp_path):
    campaign = CampaignDirectory.create(tmp_path, CONFIG)
    campaign.stop_file.touch()
    assert campaign.stop_requested() == "STOP file"


@pytest.mark.parametrize("free, state", [(100, "ok"), (99, "low"), (10, "low"), (9, "full")])
def test_disk_state_follows_the_watermarks(tmp_path, monkeypatch, free, state):
    campaign = CampaignDirectory.create(tmp_path, CONFIG)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(directory_module.shutil, "disk_usage", lambda path: usage(1000, 0, free))
    assert campaign.disk_state(DiskLimits(low=100, full=10)) == state


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic.write_text(path, "old")

    def fail(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        atomic.write_text(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"
