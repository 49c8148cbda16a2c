import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from page_base import HOSTILE, campaign, finding

from fuzzer.labels import Judgement, Label
from fuzzer.page.campaign import read_campaign
from fuzzer.page.junit import junit
from fuzzer.page.sarif import sarif
from fuzzer.store.labels import LabelStore
from fuzzer.verdict import Kind


@pytest.fixture
def directory(tmp_path):
    made = campaign(tmp_path / "camp")
    for major, judgement in {
        "run|wrong_value|debatable": Judgement(Label.REAL),
        "run|crash|mm": Judgement(Label.NOT_A_BUG, why="planted"),
    }.items():
        LabelStore(made).change(lambda labels, at=(major, judgement): labels.with_label(*at))
    return made


def test_junit_fails_open_findings_and_skips_the_others(directory):
    root = ElementTree.fromstring(junit(read_campaign(directory.path)).encode())
    suite = root.find("testsuite")
    cases = {case.get("name").partition("-")[2]: case for case in suite.iter("testcase")}
    assert len(cases) <= len(list(suite.iter("testcase"))) == 5 == int(suite.get("tests"))
    failing = [case for case in suite.iter("testcase") if case.find("failure") is not None]
    skipped = [case for case in suite.iter("testcase") if case.find("skipped") is not None]
    assert (len(failing), len(skipped)) == (2, 3) == (int(suite.get("failures")), int(suite.get("skipped")))
    assert {case.find("skipped").get("message") for case in skipped} == {
        "labelled not-a-bug: planted", "known: pytorch#1", "flaky"
    }  # fmt: skip
    assert failing[0].find("failure").get("message") == f"out is off {HOSTILE}"
    assert "def fn(x):" in failing[0].find("failure").text and failing[0].get("classname") == "eddy.wrong_value"


def test_junit_holds_what_xml_cannot(directory):
    odd = finding("run|x", text="a\x00b\x1b\ud800]]>", reason="\x07\ufffe")
    text = junit(replace(read_campaign(directory.path), findings=(odd,)))
    assert ElementTree.fromstring(text.encode()) is not None and "\x00" not in text


def test_sarif_has_the_shape_that_hosts_read(directory):
    log = json.loads(json.dumps(sarif(read_campaign(directory.path))))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == 5 and len(set(rules)) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"] and result["message"]["text"]
        assert result["level"] in ("error", "warning", "note")
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert (directory.path / uri).is_file()
    by_major = {result["partialFingerprints"]["eddyMajorSignature/v1"]: result for result in run["results"]}
    assert by_major["run|crash|mm"]["suppressions"][0]["justification"] == "labelled not-a-bug: planted"
    assert "suppressions" not in by_major["run|wrong_value|debatable"]  # a person said that it is real
    assert by_major["run|wrong_value|debatable"]["level"] == "warning"
    assert by_major["run|wrong_value|amin"]["level"] == "error"


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.is_fault])
def test_every_kind_has_a_rule(directory, kind):
    data = read_campaign(directory.path)
    only = replace(data, findings=(finding("run|any", kind=kind),), folders={})
    assert sarif(only)["runs"][0]["tool"]["driver"]["rules"][0]["shortDescription"]["text"]
    assert kind.value in junit(only)
