import json

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.store.directory import CampaignDirectory


@pytest.fixture
def directory(tmp_path):
    return CampaignDirectory.create(tmp_path / "camp", {"seed": 1})


def test_the_page_lands_in_the_campaign(directory, capsys):
    assert main(["report", str(directory.path)]) == 0
    assert directory.report_page.read_text().lstrip().startswith("<!doctype html>")
    assert str(directory.report_page) in capsys.readouterr().out


def test_exports_for_ci_come_without_a_page(directory, tmp_path, capsys):
    files = {name: str(tmp_path / f"out.{name}") for name in ("junit", "sarif")}
    words = [word for name, file in files.items() for word in (f"--{name}", file)]
    assert main(["report", str(directory.path), *words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["files"] == files and said["findings"] == said["open"] == 0
    assert not directory.report_page.exists()
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"] == []


def test_a_file_that_cannot_be_written_is_named(directory, tmp_path, capsys):
    assert main(["report", str(directory.path), "--out", str(tmp_path / "no" / "page.html")]) == Exit.USAGE
    assert "page.html: cannot be written" in capsys.readouterr().err
