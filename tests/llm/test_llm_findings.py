"""``eddy llm explain`` and ``induce``: what a model says of findings is kept, checked and marked as its word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import KEY, Loopback, loopback

from fuzzer.cli import main
from fuzzer.engines.idiom import KEYS
from fuzzer.finding import Finding, State
from fuzzer.knowledge import lint
from fuzzer.knowledge.patterns import load_patterns
from fuzzer.llm.explain import Hypothesis, page
from fuzzer.llm.generalise import TooInvolved, templates
from fuzzer.llm.induce import atoms, draft
from fuzzer.program import Program
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.verdict import Kind

pytest.importorskip("openai")

TEXT = """import torch

META = {"mode": "backward", "title": "of one program"}


class Add(torch.nn.Module):
    def forward(self, q):
        return q + 1


def build_inputs():
    torch.manual_seed(0)
    base = torch.randn(3, 4)
    n = base.t()
    return (torch.randn(2, 5, dtype=torch.float16), n, Add())


def fn(a, b, c):
    d = a.cumsum(0)
    e = c(b)
    d = d * 2
    return e.sum(), d, a
"""


def finding(text: str = TEXT, **changes: Any) -> Finding:
    plain: dict[str, Any] = {"state": State.CONFIRMED, "confirmations": 3, "attempts": 3, "reason": "out is off"}
    plain |= {"target": {"torch": "2.13.0+cpu"}, "facts": {"operators": ["aten.cumsum.default"]}}
    return Finding(Signature("run|wrong_value|cumsum", "m"), Kind.WRONG_VALUE, text, **{**plain, **changes})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("EDDY_LLM_KEY", KEY)
    with loopback() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    directory = CampaignDirectory.create(tmp_path / "c", {"seed": 1, "targets": ["fake:"]})
    directory.start()
    return FindingStore(directory).save(finding())


def llm(action: str, folder: Path, server: Loopback, *options: str) -> int:
    asked = ["--llm-endpoint", server.url, "--llm-model", "toy", "--json"]
    return main(["llm", action, str(folder.parent.parent), *asked, *options])


def test_an_explanation_is_kept_and_marked(folder: Path, server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    assert llm("explain", folder, server) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["hypothesis"] for row in told["rows"]] == ["because"] and told["left"] == 0
    text = (folder / "hypothesis.md").read_text()
    assert (
        "Written by a language model" in text and "(toy, prompt hypothesis v1)" in text and "Nobody verified it" in text
    )
    triage = json.loads((folder / "finding.json").read_text())["triage"]
    assert triage["hypothesis"] == "because" and triage["hypothesis_by"]["verified"] is False
    assert "*unverified*: because" in (folder / "report.md").read_text()
    prompt = server.requests[-1]["messages"][1]["content"]
    assert "d = a.cumsum(0)" in prompt and "cumsum: wrong result (out is off)" in prompt
    asked = len(server.requests)
    assert llm("explain", folder, server) == 0  # it has one
    assert json.loads(capsys.readouterr().out)["rows"] == [] and len(server.requests) == asked


def test_a_budget_ends_it_and_nothing_is_written(
    folder: Path, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    assert llm("explain", folder, server, "--llm-budget", "1k") == 2
    told = capsys.readouterr()
    assert json.loads(told.out)["rows"] == [] and "budget" in told.err
    assert not (folder / "hypothesis.md").exists()


def test_model_text_cannot_change_the_page() -> None:
    evil = "![x](http://a/b) <script>@all\n# heading"
    text = page(finding(), Hypothesis(evil, f"`` {evil}", evil, evil))
    assert (
        "<script>@" not in text.replace("`", "").split("Suspected")[0] and "![x](" not in text.split("- Suspected")[0]
    )
    assert "\n# heading" not in text
    suspected = next(line for line in text.splitlines() if line.startswith("- Suspected"))
    assert suspected.startswith("- Suspected: ``` ") and suspected.endswith("```")


# -- induce ---------------------------------------------------------------------------------------------------------


def test_a_draft_is_a_pattern_that_loads(folder: Path, server: Loopback, capsys: pytest.CaptureFixture[str]) -> None:
    assert llm("induce", folder, server) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    path = Path(row["file"])
    assert path.parent == folder.parent.parent / "patterns" and row["pattern"] == "because"
    text = path.read_text()
    assert text.startswith("# DRAFT, UNVERIFIED") and "(toy, prompt induce_pattern v1)" in text.splitlines()[1]
    (pattern,) = load_patterns(path.parent, strict=True).entries
    assert pattern.versions == ("2.13.0",) and pattern.oracle == "value" and pattern.title == "because"
    assert pattern.trigger.atoms <= set(atoms(finding(), operators()))
    asked = len(server.requests)
    assert llm("induce", folder, server) == 0 and len(server.requests) == asked  # it has a draft


def operators() -> Any:
    from llm_base import operators as loaded

    return loaded()


def test_the_most_general_code_comes_first() -> None:
    general, literal = templates(Program.parse(TEXT))
    assert general["code"] == ["s = x.cumsum(0)", "t = w(v)", "s = s * 2", "r = t.sum()"]
    assert general["on"] == "half matrix solid" and general["meta"] == {"mode": "backward"}
    assert general["inputs"] == {"v": "torch.randn(3, 4).t()", "w": "Add()"}
    assert general["helper"][0] == "class Add(torch.nn.Module):"
    assert literal["code"][0] == "s = v.cumsum(0)" and list(literal["inputs"]) == ["v", "w", "k"]


@pytest.mark.parametrize(
    ("made", "on"),
    [
        ("torch.randn(())", "float32 scalar"),
        ("torch.zeros((0, 3), dtype=torch.int32)", "int matrix empty"),
        ("torch.full((2, 1), 1.0, dtype=torch.float64)", "wide matrix"),
        ("torch.ones(2, 3, 4, 5, dtype=torch.bool)", "bool image solid"),
        ("torch.arange(3)", "float32 vector"),  # no x: all inputs stay
    ],
)
def test_what_x_must_be(made: str, on: str) -> None:
    text = f"import torch\n\ndef build_inputs():\n    return ({made},)\n\ndef fn(a):\n    return a + 1\n"
    first = next(iter(templates(Program.parse(text))))
    assert first["on"] == on and first["code"] == [f"r = {'v' if 'arange' in made else 'x'} + 1"]


def test_inputs_that_nothing_reads_are_left_out() -> None:
    text = "import torch\n\ndef build_inputs():\n    return (1, 2, 3, 4, 5, torch.ones(3))\n\n"
    (first, *_) = templates(Program.parse(text + "def fn(a, b, c, d, e, f):\n    return f + b\n"))
    assert first["code"] == ["r = x + v"] and first["inputs"] == {"v": "2"}


@pytest.mark.parametrize(
    ("build", "fn", "words"),
    [
        ("    x = []\n    x.append(1)\n    return (x,)", "def fn(a):\n    return a", "more than name expressions"),
        ("    return (1,)", "def fn(*a):\n    return a", "more than plain names"),
        ("    return (1, 2, 3, 4, 5)", "def fn(a, b, c, d, e):\n    return a, b, c, d, e", "more inputs than the 4"),
        ("    return (1, 2)", "def fn(a):\n    return a", "differ in their number"),
    ],
)
def test_what_has_no_simple_form_is_told(build: str, fn: str, words: str) -> None:
    program = Program.parse(f"import torch\n\ndef build_inputs():\n{build}\n\n{fn}\n")
    with pytest.raises(TooInvolved, match=words):
        list(templates(program))


def test_model_text_cannot_leave_its_strings(tmp_path: Path) -> None:
    table = {
        "id": "a-b",
        "title": 'x" \n[[pattern]]\\',
        "trigger": "op=cumsum",
        "action": "'''\"\"\"\x07",
        "oracle": "value",
    }
    (shape, *_) = templates(Program.parse(TEXT))
    text = draft({**table, **shape}, finding(), "m\n[[pattern]]", ["f\nid = 1"])
    (tmp_path / "a.toml").write_text(text)
    (pattern,) = load_patterns(tmp_path, strict=True).entries
    assert (pattern.title, pattern.action) == (table["title"], table["action"])
    assert set(shape) <= KEYS and "c = e.cumsum(0)" not in lint.example(pattern).text
    assert ".cumsum(0)" in lint.example(pattern).text
