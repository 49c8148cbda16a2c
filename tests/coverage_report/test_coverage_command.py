"""``eddy coverage`` on a campaign whose target is a script that says where a small torch lies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_library import build_library, needs_compiler, symbols

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.store import baseline
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import Journal
from fuzzer.store.stats import write_stats

LOWERING = "@register_lowering(aten.sin)\ndef sin(x):\n    y = x\n    return y\n\n\ndef cos(x):\n    return x\n"

Folder = tuple[Path, Path, dict[str, int]]


@pytest.fixture
def campaign(tmp_path: Path) -> Folder:
    """(campaign, site-packages of its target, addresses of the small library's functions)."""
    site = tmp_path / "site"
    (site / "torch" / "_inductor").mkdir(parents=True)
    (site / "torch" / "_inductor" / "lowering.py").write_text(LOWERING)
    (site / "torch" / "version.py").write_text("__version__ = '2.13.0+cpu'\n")
    path = build_library(site / "torch" / "lib" / "libtorch_cpu.so")
    address = {name: place for name, (place, _) in symbols(path).items()}
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{json.dumps([str(site / 'torch')])}'\n")
    python.chmod(0o755)
    directory = CampaignDirectory.create(tmp_path / "c", {"seed": 1, "targets": [str(python)], "device": "cpu"})
    write_stats(directory.fuzzer_stats, {"target_torch": "2.13.0+cpu"})
    native = [address["_ZN2at6native3addEi"], address["plain"]]
    coverage = {"python": {"torch/_inductor/lowering.py": [3]}, "native": {"libtorch_cpu": sorted(native)}}
    journal = Journal(directory.journal)
    journal.append({"t": "plan"})
    journal.append(
        {
            "t": "run",
            "n": 1,
            "at": 2.0,
            "outcome": {"realised": ["shape=odd"]},
            "coverage": coverage,
            "keys": ["events:frames.ok~1", "kernels:cpp loops=1"],
            "ops": ["aten.sin"],
        }
    )
    journal.close()
    start_up = {
        "python": {"torch/_inductor/lowering.py": [8]},
        "native": {"libtorch_cpu": [address["_ZN2at6native10sub_kernelEi"]]},
    }
    baseline.keep(directory, "2.13.0+cpu", start_up)
    return directory.path, site, address


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main(["coverage", *map(str, arguments), "--json"]) == Exit.DONE
    return json.loads(capsys.readouterr().out)


@needs_compiler
def test_what_was_covered_and_what_never_was(campaign: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    report = told(capsys, campaign[0])
    assert (report["programs"], report["start_up_known"], report["notes"]) == (1, True, [])
    python, native = report["python"], report["native"]
    assert (python["lines"], python["functions"], python["functions_reached"]) == (1, 2, 2)
    assert (native["functions"], native["start_up"]) == (2, 1)
    never = [(row["name"], row["instances"]) for row in native["never_kernels"]]
    assert never == [("at::native::mul_kernel", 2), ("at::native::Loop", 1)]
    assert {row["name"] for row in native["newest"]} == {"at::native::add", "plain"}
    assert [row["name"] for row in report["events"]["lowerings"]["seen"]] == ["aten.sin"]
    assert report["features"]["features"][0]["feature"] == "shape=odd"
    assert not {"python", "native", "features"} & told(capsys, campaign[0], "--domain", "events").keys()


@needs_compiler
def test_text_is_calm_and_bounded(campaign: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", str(campaign[0]), "--top", "1"]) == Exit.DONE
    text = capsys.readouterr().out
    assert "PYTHON: 1 lines" in text and "at::native: 2 of 4" in text
    assert "lowerings: 1 of 1 seen" in text and "kernel classes: 1 seen; what else there could be is not known" in text
    assert all(len(line) <= 200 for line in text.splitlines())


@needs_compiler
def test_another_torch_names_nothing(campaign: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    (campaign[1] / "torch" / "version.py").write_text("__version__ = '2.14.0'\n")
    report = told(capsys, campaign[0])
    assert "has torch 2.14.0 now, the campaign ran 2.13.0+cpu" in report["notes"][0]
    assert report["native"]["functions"] == 2 and report["native"]["never_kernels"] == []
    assert main(["coverage", str(campaign[0]), "--lcov", str(campaign[0] / "x")]) == Exit.USAGE
    assert "--lcov needs the target's libraries" in capsys.readouterr().err


@needs_compiler
def test_a_data_file_that_coverage_reads(campaign: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("coverage")
    out = tmp_path / "data"
    for _ in range(2):  # replaced, not added to
        assert told(capsys, campaign[0], "--coverage-py", out)["coverage_py"]["lines"] == 2
    from coverage import CoverageData

    data = CoverageData(basename=str(out))
    data.read()
    (path,) = data.measured_files()
    contexts = data.contexts_by_lineno(path)
    assert {line: names for line, names in contexts.items() if names} == {3: ["campaign"], 8: ["start-up"]}
    command = [sys.executable, "-m", "coverage", "report", f"--data-file={out}", "--show-missing"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "lowering.py" in shown and "33%" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "data", "python", "site"]


def parse_lcov(text: str) -> dict[str, dict[str, Any]]:
    """Source file → its ``functions`` {name: (line, hits)}, ``lines`` and sums; checks the order of the records."""
    found: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            assert rest not in found
            current = found[rest] = {"lines": {}, "at": {}, "hits": {}}
        elif kind in ("FN", "FNDA", "DA"):
            first, _, second = rest.partition(",")
            if kind == "DA":
                current["lines"][int(first)] = int(second)
            else:
                table = current["at" if kind == "FN" else "hits"]
                assert second not in table
                table[second] = int(first)
        elif kind in ("FNF", "FNH", "LF", "LH"):
            current[kind] = int(rest)
        else:
            assert line in ("TN:eddy", "end_of_record"), line
    return found


@needs_compiler
def test_an_lcov_tracefile(campaign: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, campaign[0], "--lcov", tmp_path / "native.info")["lcov"]
    files = parse_lcov((tmp_path / "native.info").read_text())
    for record in files.values():
        assert record["at"].keys() == record["hits"].keys()
        assert record["FNF"] == record["LF"] == len(record["at"])
        assert record["FNH"] == record["LH"] == sum(record["hits"].values()) == sum(record["lines"].values())
        assert all(record["lines"][line] == record["hits"][name] for name, line in record["at"].items())
    kernels = files["libtorch_cpu.so/at/native"]["hits"]
    assert kernels["_ZN2at6native3addEi"] == kernels["_ZN2at6native10sub_kernelEi"] == 1  # start-up's is reached too
    assert kernels["_ZN2at6native10mul_kernelIdEEiT_"] == 0
    assert made["reached"] == 3 and made["functions"] == sum(record["FNF"] for record in files.values())


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["{tmp}/none"], Exit.DIRECTORY, "not a campaign (no campaign.toml)"),
        (["{tmp}/c", "--target", "/none/python"], Exit.TARGET, "cannot be asked for its torch"),
        (["{tmp}/c", "--top", "0"], Exit.USAGE, "no whole number from 1"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], status: Exit, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CampaignDirectory.create(tmp_path / "c", {"seed": 1, "targets": []})
    try:
        left = main(["coverage", *(item.format(tmp=tmp_path) for item in arguments)])
    except SystemExit as error:
        left = int(error.code or 0)
    error_text = capsys.readouterr().err
    assert left == status and words in error_text and "Traceback" not in error_text


def test_a_campaign_without_programs_or_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CampaignDirectory.create(tmp_path / "c", {"seed": 1, "targets": ["/none/python"]})
    report = told(capsys, tmp_path / "c")
    assert report["programs"] == 0 and "nothing can be called never reached" in report["notes"][0]
    assert main(["coverage", str(tmp_path / "c")]) == Exit.DONE
    assert "PYTHON: 0 lines" in capsys.readouterr().out
