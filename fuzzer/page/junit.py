"""Findings as JUnit XML, which every CI server shows: a test case a finding."""

from __future__ import annotations

import re
import time
import xml.etree.ElementTree as ElementTree

from fuzzer.labels import set_aside
from fuzzer.page.campaign import CampaignData
from fuzzer.report import plain_title
from fuzzer.severity import severity

#: What XML 1.0 cannot hold, not even escaped.
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(data: CampaignData) -> str:
    """One suite. Open findings fail; those that are debatable, known, flaky or labelled otherwise are skipped."""
    rows = [(item, set_aside(item, data.labels.get(item.signature.major))) for item in data.findings]
    counts = {
        "tests": str(len(rows)),
        "failures": str(sum(not aside for _item, aside in rows)),
        "skipped": str(sum(bool(aside) for _item, aside in rows)),
        "errors": "0",
    }
    suites = ElementTree.Element("testsuites", {"name": "eddy", **counts})
    about = {
        "name": _fit(data.directory.path.name),
        "time": f"{float(data.status['run_time']):.0f}",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(float(data.status["last_update"]))),
    }
    suite = ElementTree.SubElement(suites, "testsuite", {**about, **counts})
    properties = ElementTree.SubElement(suite, "properties")
    for name in ("target_torch", "execs_done", "valid_rate", "conformity", "stop_reason"):
        ElementTree.SubElement(properties, "property", name=name, value=_fit(str(data.status[name])))
    for finding, aside in rows:
        folder = data.folders.get(finding.signature.major)
        weight = severity(finding)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"eddy.{finding.kind.value}",
            name=_fit(folder.name if folder else finding.sig8),
            time=f"{sum(_seconds(finding.facts.get('seconds'))):.3f}",
        )
        if aside:
            ElementTree.SubElement(case, "skipped", message=_fit(aside))
        else:
            failure = ElementTree.SubElement(
                case, "failure", message=_fit(finding.reason or plain_title(finding)), type=finding.kind.value
            )
            where = f"findings: {folder.relative_to(data.directory.path)}\n" if folder else ""
            failure.text = _fit(
                f"{plain_title(finding)}\nseverity: {weight.word} ({weight.reason})\n{where}\n{finding.shown_text}"
            )
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _seconds(stages: object) -> list[float]:
    values = stages.values() if isinstance(stages, dict) else ()
    return [float(value) for value in values if isinstance(value, (int, float))]


def _fit(text: str) -> str:
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
