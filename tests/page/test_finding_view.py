from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_base import LEAF, finding

from fuzzer.labels import Judgement, Label, Labels
from fuzzer.page.finding_view import cut, finding_view, visible
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore


def view(item, **changes):
    values = {"folders": {}, "labels": Labels(), "page_folder": Path("/page")}
    return finding_view(item, **{**values, **changes})


@given(st.text(max_size=60))
def test_what_is_shown_has_no_invisible_characters(text):
    shown = visible(text)
    assert not any(ord(char) < 9 or 0x202A <= ord(char) <= 0x202E or 0xD800 <= ord(char) < 0xE000 for char in shown)
    assert visible(shown) == shown


def test_a_right_to_left_override_is_spelt_out():
    assert visible("a\u202eb\tc\r\nd\x1b[1m") == "a\\u202eb\tc\nd\\u001b[1m"


def test_script_and_links_come_from_the_folder(tmp_path):
    directory = CampaignDirectory.create(tmp_path / "a campaign", {})
    item = finding(
        "m", text="import torch\n\n\ndef build_inputs():\n    return ()\n\n\ndef fn():\n    return torch.ones(1)\n"
    )
    folder = FindingStore(directory).save(item)
    shown = view(item, folders={"m": folder}, page_folder=tmp_path)
    script = (folder / "repro.py").read_text()
    assert shown.whole and script.startswith(shown.program) and script.rstrip().endswith(shown.tail.rstrip())
    assert "__main__" in shown.tail and "__main__" not in shown.program
    hrefs = dict(shown.links)
    assert hrefs["repro.py"] == f"a%20campaign/findings/{folder.name}/repro.py"
    assert "reduced.py" not in hrefs and hrefs["all files"].endswith("/")


def test_values_are_shown_with_the_size_of_their_error():
    shown = view(finding("m", facts={"leaves": [LEAF]})).value
    (element,) = shown.elements
    assert (element.index, element.eager, element.compiled) == ("[1, 2]", "0.5", "10.5")
    assert element.heat == 5 and element.eager_heat < 2
    assert ("stride", "[3, 1]", "[1, 2]") in shown.metadata
    assert "2 of 6 elements differ" in shown.about


@pytest.mark.parametrize("compiled, reference, heat", [
    (1.0, 1.0, 0), (1.0 + 1e-6, 1.0, 1), (1.002, 1.0, 3), (5.0, 1.0, 4), (11.5, 1.0, 5), ("nan", 1.0, 5),
    ("nan", "nan", 0), (float("inf"), "inf", 0), ("-inf", "inf", 5), (True, False, 5), ("1+2j", "1+2j", 0),
    ("text", "other", 5), (None, 1.0, 5),
])  # fmt: skip
def test_heat_grows_with_the_error(compiled, reference, heat):
    leaf = {**LEAF, "worst": [{"index": [0], "eager": 1.0, "compiled": compiled, "reference": reference}]}
    assert view(finding("m", facts={"leaves": [leaf]})).value.elements[0].heat == heat


def test_results_of_triage_are_shown_also_those_of_a_later_eddy():
    shown = dict(view(finding("m")).where)
    assert shown["First failing backend"] == "inductor"
    assert shown["Torch's bisector names"].startswith("lowerings no. 3: ")
    assert shown["Cause"] == "class: shape inference"


def test_features_variants_and_group_have_places_of_their_own():
    folders = {"other": Path("/c/findings/0123-other one")}
    triage = {
        "essential_features": ["layout=offset"], "free_features": ["dtype=int8", "shape=odd"], "untold_features": [],
        "variants": {"decomp": "pass", "inductor": "wrong_value"}, "group": ["0123-other one", "gone"],
    }  # fmt: skip
    triage |= {"kernel": "void a() {\n}", "environment": "PyTorch version: 2.13.0\n" * 40}
    shown = view(finding("m", triage=triage), folders=folders)
    assert shown.kernel == "void a() {\n}"
    assert [(item.term, item.names) for item in shown.features] == [
        ("Needs", ("layout=offset",)),
        ("Does not need", ("dtype=int8", "shape=odd")),
    ]
    assert shown.variants == (("decomp", "pass", True), ("inductor", "wrong_value", False))
    assert shown.group == (("0123-other one", "f-0123-other_one"), ("gone", ""))
    assert shown.where == ()


def test_classes_and_similar_issues_are_shown_with_reasons_and_safe_links():
    link = "https://github.com/pytorch/pytorch/issues/7"
    classes = {"symptom": "mutation", "task": "memory_layout", "reasons": {"task": ["why\u202e"]}, "by": "rules"}
    similar = [{"number": 7, "title": "t", "link": link, "score": 0.5}, {"title": "x", "link": "javascript:0"}, "#3"]
    shown = view(finding("m", triage={"class": classes, "similar": similar}))
    assert [(item.part, item.name, item.reasons) for item in shown.classes] == [
        ("Symptom", "mutation", ()),
        ("Task", "memory_layout", ("why\\u202e",)),
    ]
    assert [(item.number, item.link, item.score) for item in shown.similar] == [("#7", link, "0.50"), ("#?", "", "")]


@pytest.mark.parametrize("junk", [None, "text", 3, [], ["x"], {"a": 1}])
def test_triage_of_another_shape_is_no_hindrance(junk):
    keys = ("class", "similar", "essential_features", "variants", "group", "versions", "bisect")
    shown = view(finding("m", triage=dict.fromkeys(keys, junk)))
    assert shown.title and not shown.classes and not shown.similar


def test_a_label_names_the_other_finding():
    labels = Labels().with_label("m", Judgement(Label.DUPLICATE_OF, "other", "same stack"))
    shown = view(finding("m"), labels=labels, folders={"other": Path("/c/findings/abc-other")})
    assert (shown.label, shown.label_text) == ("duplicate-of", "of abc-other; same stack")
    assert shown.aside


def test_a_brief_view_has_no_code():
    shown = view(finding("m"), brief=True)
    assert shown.brief and not shown.program and not shown.tail and shown.value is None and shown.title


def test_long_texts_are_cut_and_say_so():
    assert cut("a" * 10, 4) == "aaaa\n… 6 characters more in the file"
    assert "characters more" in view(finding("m", text="#" * 9000)).program
