"""The plugin in pytest runs of its own, on the fake harness."""

from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from campaign_base import campaign, planted, run

import fuzzer.cli.common  # noqa: F401 (imported here once, not in every run within this process)
from fuzzer.pytest_plugin import sources
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory

pytest_plugins = "pytester"

Replay = Callable[..., pytest.RunResult]
ON_FAKE = ("--eddy-target", "fake:")


@pytest.fixture
def replay(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Replay:
    """Runs pytest within this process, without the other plugins of this environment: loading them takes seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return functools.partial(pytester.runpytest_inprocess, "-p", "fuzzer.pytest_plugin")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Programs of every fate, and a file that is none."""
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    for do in ("pass", "wrong_value", "invalid", "crash"):
        (folder / f"test_{do}.py").write_text(planted(do).text)
    (folder / "deep" / "fine.py").write_text(planted("pass", 1).text)
    (folder / "conftest.py").write_text("raise SystemExit('imported')\n")
    return folder


def test_programs_are_tests(replay: Replay, pytester: pytest.Pytester, corpus: Path) -> None:
    pytester.makepyfile("def test_own():\n    assert False, 'is not asked for'\n")
    result = replay("--eddy", str(corpus), *ON_FAKE, "-v", "-rs", "--junit-xml=out.xml")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = result.stdout.str()
    assert "::deep/fine.py PASSED" in output and "collected 5 items" in output and "test_own" not in output
    assert re.search(
        r"wrong_value at run: out: compiled is off .*\n.*program: +\S+/corpus/test_wrong_value\.py", output
    )
    assert re.search(r"crash at run: .*SIGSEGV", output) and "invalid:" in output
    cases = {case.get("name"): case for case in ElementTree.parse(pytester.path / "out.xml").iter("testcase")}
    assert set(cases) == {"deep/fine.py", *(f"test_{do}.py" for do in ("pass", "wrong_value", "invalid", "crash"))}
    found = {item.get("name"): item.get("value") for item in cases["test_wrong_value.py"].iter("property")}
    assert found["eddy_kind"] == "wrong_value" and found["eddy_torch"] == "0.0.fake" and found["eddy_signature"]


def test_they_join_other_tests_where_both_are_named_or_configured(
    replay: Replay, pytester: pytest.Pytester, corpus: Path
) -> None:
    own = pytester.makepyfile("def test_own():\n    pass\n")
    both = replay(own, "--eddy", str(corpus / "test_pass.py"), *ON_FAKE)
    both.assert_outcomes(passed=2)
    pytester.makeini(f"[pytest]\neddy_paths = {corpus / 'deep'}\neddy_target = fake:\n")
    replay().assert_outcomes(passed=2)
    replay(own).assert_outcomes(passed=1)
    replay("-k", "fine").assert_outcomes(passed=1, deselected=1)


def test_nothing_happens_unless_asked(pytester: pytest.Pytester) -> None:
    """Found by its entry point, as it is where Eddy is installed."""
    pytester.makepyfile(
        """
        import sys

        def test_light():
            ours = ("fuzzer", "harness", "jinja2", "msgpack", "rich")
            assert [name for name in sys.modules if name.split(".")[0] in ours] == ["fuzzer", "fuzzer.pytest_plugin"]
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert "eddy:" not in result.stdout.str()


def test_a_target_that_does_not_start_is_tried_once(replay: Replay, corpus: Path) -> None:
    result = replay("--eddy", str(corpus), "--eddy-target", "/nowhere/python")
    result.assert_outcomes(failed=5)
    assert result.stdout.str().count("'/nowhere/python' is not an executable; pass --target") >= 5


@pytest.mark.parametrize(("name", "says"), [
    ("missing", "no such file or folder"),
    ("corpus/conftest.py", "no function `build_inputs`"),
    ("empty", "no program in it"),
])  # fmt: skip
def test_a_path_without_programs_is_an_error(
    replay: Replay, pytester: pytest.Pytester, corpus: Path, name: str, says: str
) -> None:
    (corpus.parent / "empty").mkdir()
    result = replay("--eddy", str(corpus.parent / name), *ON_FAKE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*eddy: *{says}*"])


def test_a_campaign_gives_its_findings_and_its_corpus(
    replay: Replay, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    path = tmp_path / "camp"
    run(campaign(path, [planted("wrong_value"), planted("pass", 5), planted("pass", 6)], max_execs=12))
    directory = CampaignDirectory.open(path)
    (finding,) = [item.name for item in directory.findings.iterdir() if item.is_dir()]
    seeds = CorpusFiles(directory.corpus).ids
    assert seeds and [source.name for source in sources(path)] == [
        f"findings/{finding}",
        *(f"corpus/{seed}" for seed in seeds),
    ]
    assert [source.name for source in sources(directory.findings / finding)] == [finding]
    result = replay("--eddy", str(directory.findings), *ON_FAKE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*program: *{finding}/finding.json", "*signature: *wrong_value*"])
