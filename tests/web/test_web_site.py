"""A campaign on disk, as the live page reads and labels it."""

from __future__ import annotations

import os

import pytest
from page_base import HOSTILE, campaign, finding

from fuzzer.exits import UserError
from fuzzer.labels import Judgement, Label
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore
from fuzzer.store.stats import StatsFiles
from fuzzer.web import site as site_module
from fuzzer.web.app import Refused, Wish
from fuzzer.web.site import CampaignSite


@pytest.fixture
def directory(tmp_path):
    return campaign(tmp_path / "camp")


@pytest.fixture
def readings(monkeypatch):
    """How often everything was read."""
    made = []
    whole = site_module.read_campaign
    monkeypatch.setattr(site_module, "read_campaign", lambda path: made.append(path) or whole(path))
    return made


def name(directory, major):
    store = FindingStore(directory)
    return store.folder(store.get(major)).name


def test_the_page_is_live_and_says_so_in_its_policy(directory):
    document = CampaignSite(directory).page()
    assert "connect-src 'self'" in document.policy and document.policy.endswith("frame-ancestors 'none'")
    assert document.policy.startswith("default-src 'none'; style-src 'sha256-") and "unsafe" not in document.policy
    assert f'data-name="{name(directory, "run|crash|mm")}"' in document.text
    assert HOSTILE not in document.text and "{page}" not in document.text


def test_nothing_is_read_again_before_something_changes(directory, readings):
    clock = [0.0]
    site = CampaignSite(directory, lambda: clock[0])
    first = site.page()
    assert site.page() is first and len(readings) == 1
    StatsFiles(directory).write({"execs_done": 99, "stop_reason": "max-time"})
    assert site.page() is first and len(readings) == 1  # the journal is not replayed at every look
    clock[0] = 31.0
    again = site.page()
    assert again.tag != first.tag and ">99<" in again.text and len(readings) == 2
    clock[0] = 1000.0
    assert site.page() is again and len(readings) == 2


def test_labels_and_findings_show_at_once_without_the_journal(directory, readings):
    site = CampaignSite(directory, lambda: 0.0)
    before, news = site.page(), site.stats()["page"]
    LabelStore(directory).change(lambda labels: labels.with_label("run|crash|mm", Judgement(Label.REAL, why="by hand")))
    labelled = site.page()
    assert "1 labelled real" in labelled.text and "by hand" in labelled.text and "by hand" not in before.text
    FindingStore(directory).save(finding("run|wrong_value|fresh"))
    assert "3 open findings" in site.page().text and len(readings) == 1
    after = site.stats()["page"]
    assert after != news
    FindingStore(directory).add_duplicate("run|crash|mm", "more of the same")
    assert site.stats()["page"] == after and "6×" in site.page().text  # shown, but no news


def test_a_label_is_stored_as_the_command_does(directory):
    site = CampaignSite(directory)
    crash, value = name(directory, "run|crash|mm"), name(directory, "run|wrong_value|amin")
    told = site.label(Wish(crash, "real", why=" two\n lines "))
    assert (told["label"], told["why"], told["page"]) == ("real", "two lines", site.stats()["page"])
    stored = LabelStore(directory).read().get("run|crash|mm")
    assert (stored.label, stored.why) == (Label.REAL, "two lines") and stored.at > 1_600_000_000
    assert site.label(Wish(value, "duplicate-of", of=crash))["of"] == crash
    assert LabelStore(directory).read().get("run|wrong_value|amin").of == "run|crash|mm"
    assert site.label(Wish(crash, "none"))["label"] == ""
    assert LabelStore(directory).read().get("run|crash|mm") is None


@pytest.mark.parametrize("wish, says", [
    (Wish("nowhere", "real"), "no finding 'nowhere'"),
    (Wish("", "real"), "no finding ''"),
    (Wish("CRASH", "real", of="CRASH"), "names the finding"),
    (Wish("CRASH", "duplicate-of"), "names the finding"),
    (Wish("CRASH", "duplicate-of", of="nowhere"), "no finding 'nowhere'"),
    (Wish("CRASH", "duplicate-of", of="CRASH"), "duplicate of itself"),
    (Wish("CRASH", "ignored", why=" \n"), "says why"),
    (Wish("CRASH", "wonderful"), "'wonderful' is no label"),
])  # fmt: skip
def test_bad_labels_are_refused(directory, wish, says):
    crash = name(directory, "run|crash|mm")
    with pytest.raises(Refused, match=says):
        CampaignSite(directory).label(Wish(*(crash if text == "CRASH" else text for text in vars(wish).values())))
    assert not directory.labels.exists()


def test_damaged_labels_are_told_and_kept(directory):
    directory.labels.write_text("{")
    site = CampaignSite(directory)
    assert "labels.json: cannot be read" in site.page().text
    with pytest.raises(UserError, match="cannot be read"):
        site.label(Wish(name(directory, "run|crash|mm"), "real"))
    assert directory.labels.read_text() == "{"


def test_only_files_of_findings_are_given_out(directory, tmp_path):
    site = CampaignSite(directory)
    crash = name(directory, "run|crash|mm")
    assert b"mm" in site.file(["findings", crash, "report.md"])
    assert "report.md" in site.names(["findings", crash]) and f"{crash}/" in site.names(["findings"])
    (tmp_path / "outside.txt").write_text("secret")
    os.symlink(tmp_path / "outside.txt", directory.findings / crash / "link.txt")
    os.symlink(tmp_path, directory.findings / "away")
    for parts in (
        ["campaign.toml"], ["findings"], ["findings", "..", "campaign.toml"], ["findings", crash, "../../LOCK"],
        ["findings", crash, "link.txt"], ["findings", "away", "outside.txt"], ["findings", crash, ""],
        ["findings", "", "etc", "passwd"], ["findings", "/etc/passwd"], ["findings", "a\0b"], [], ["findings", crash],
        ["corpus", "x"],
    ):  # fmt: skip
        assert site.file(parts) is None, parts
    assert site.names(["findings", "away"]) is None and site.names(["corpus"]) is None and site.names([]) is None
