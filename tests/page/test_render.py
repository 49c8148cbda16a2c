import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from page_base import HOSTILE, PROGRAM, campaign, finding

from fuzzer.exits import UserError
from fuzzer.labels import Judgement, Label
from fuzzer.page.campaign import read_campaign
from fuzzer.page.render import page
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore


class Tags(HTMLParser):
    """Start tags with attributes, and the text between them."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def directory(tmp_path):
    return campaign(tmp_path / "camp")


def rendered(directory):
    return page(read_campaign(directory.path), directory.path)


def test_a_page_says_what_a_person_wants_to_know(directory):
    LabelStore(directory).change(lambda labels: labels.with_label("run|crash|mm", Judgement(Label.REAL, why="filed")))
    text = " ".join(" ".join(Tags(rendered(directory)).text).split())
    for expected in (
        "2 open findings: 1 critical, 1 high; 1 labelled real.",
        "Set aside 3",
        "max-time",
        "2.13.0+cpu",
        "100 % (1 of 1 labelled",
        "First failing backend inductor",
        "lowerings no. 3:",
        "10.5",
        "dtype=int8",
        "template",
        "real filed",
        "Never reached",
    ):
        assert expected in text, expected
    assert text.index("amin") < text.index("mm: process dies") < text.index("Set aside 3")


def test_text_of_programs_is_text(directory):
    html = rendered(directory)
    tags = Tags(html)
    assert not [tag for tag, _attrs in tags.tags if tag == "img"]
    assert [tag for tag, _attrs in tags.tags].count("script") == 1
    assert not [attrs for _tag, attrs in tags.tags if any(name.startswith("on") or name == "style" for name in attrs)]
    shown = "".join(tags.text)
    assert PROGRAM.strip() in shown and f"a warning {HOSTILE}" in shown and f"out is off {HOSTILE}" in shown


def test_a_finding_tells_features_variants_group_class_and_similar_issues(directory):
    link = "https://github.com/pytorch/pytorch/issues/7"
    triage = {
        "essential_features": ["layout=offset"], "free_features": [HOSTILE], "variants": {"decomp": "pass"},
        "group": [HOSTILE], "class": {"symptom": "mutation", "reasons": {"symptom": [HOSTILE]}},
        "similar": [{"number": 7, "title": HOSTILE, "link": link, "score": 0.5}],
    }  # fmt: skip
    data = replace(read_campaign(directory.path), findings=(finding("m", triage=triage),), folders={})
    tags = Tags(page(data, directory.path))
    text = " ".join(" ".join(tags.text).split())
    for expected in (
        "Needs layout=offset", f"Does not need {HOSTILE}", "decomp pass", f"Probably the same bug {HOSTILE}",
        "Class by rules, unverified: mutation", f"Symptom mutation: {HOSTILE}", f"#7 {HOSTILE} 0.50",
    ):  # fmt: skip
        assert expected in text, expected
    assert [attrs for tag, attrs in tags.tags if tag == "a" and attrs["href"] == link] == [
        {"href": link, "rel": "noopener noreferrer"}
    ]
    assert not [tag for tag, _attrs in tags.tags if tag == "img"]


def test_of_each_bug_one_finding_is_counted_and_the_others_are_marked(directory):
    store = FindingStore(directory)
    crash = store.get("run|crash|mm")
    name = store.folder(store.get("run|wrong_value|amin")).name
    store.save(replace(crash, triage={**crash.triage, "group": [name]}))
    page = rendered(directory)
    assert page.count('data-copy="yes"') == 1 and 'id="copies"' in page
    assert "1 open bug (2 findings): 1 critical." in " ".join(" ".join(Tags(page).text).split())
    store.save(crash)
    assert 'id="copies"' not in rendered(directory)


def test_a_page_needs_and_allows_nothing_from_elsewhere(directory):
    html = rendered(directory)
    tags = Tags(html).tags
    policy = next(attrs["content"] for tag, attrs in tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "http" not in policy
    addresses = [attrs[name] for _tag, attrs in tags for name in ("src", "href") if name in attrs]
    assert addresses
    assert not [address for address in addresses if re.match(r"(?!data:,$)[a-z]+:|//", address)]
    for address in addresses:
        if address.startswith("findings/"):
            assert (directory.path / address).exists()


def test_pages_written_elsewhere_still_link_to_the_files(directory, tmp_path):
    html = page(read_campaign(directory.path), tmp_path / "elsewhere")
    assert 'href="../camp/findings/' in html


def test_a_campaign_that_never_ran_has_a_page(tmp_path):
    directory = CampaignDirectory.create(tmp_path / "new", {"seed": 1})
    html = rendered(directory)
    assert "No open findings." in html and "never ran" in html and "nothing labelled" in html


def test_many_findings_stay_within_two_megabytes_and_all_are_named(directory):
    long = PROGRAM + "".join(f"    x = x + {number}  # padding\n" for number in range(120))
    findings = tuple(finding(f"run|wrong_value|{number}", text=long) for number in range(500))
    html = page(replace(read_campaign(directory.path), findings=findings, folders={}), directory.path)
    assert 1_000_000 < len(html.encode()) < 2_000_000
    assert all(f'id="f-{item.sig8}"' in html for item in findings)
    assert html.count("The page is full") > 100


def test_damage_is_named_and_the_rest_is_shown(directory):
    directory.labels.write_text("{")
    directory.snapshot.write_bytes(b"garbage")
    bad = directory.findings / "zzz-broken"
    bad.mkdir()
    (bad / "finding.json").write_text("{}")
    data = read_campaign(directory.path)
    for name in ("labels.json", "snapshot.msgpack", "zzz-broken"):
        assert any(name in problem for problem in data.problems)
    assert "zzz-broken" in page(data, directory.path) and len(data.findings) == 5


def test_no_campaign_no_page(tmp_path):
    with pytest.raises(UserError):
        read_campaign(tmp_path)


def test_reading_changes_nothing(directory):
    before = {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")}
    read_campaign(directory.path)
    assert {path: path.stat().st_mtime_ns for path in directory.path.rglob("*")} == before


def test_state_is_the_same_from_snapshot_and_from_journal(directory):
    from fuzzer.store.journal import Snapshot

    replayed = read_campaign(directory.path)
    Snapshot(directory.snapshot).write(replayed.state.to_map(), directory.journal.stat().st_size)
    restored = read_campaign(directory.path)
    assert restored.state.to_map() == replayed.state.to_map() and restored.problems == ()
    assert restored.state.per_engine == {"template": [3, 3, 6, 3]}
