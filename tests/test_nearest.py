from pathlib import Path

import pytest

from fuzzer.finding import Finding
from fuzzer.knowledge.issues import Issue, IssueIndex, Similar
from fuzzer.nearest import Words, nearest, ranked, search_words
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

ISSUES = [
    Issue(1, "argmax of a transposed tensor is wrong under compile"),
    Issue(2, "torch.compile: remainder by zero dies with a floating point exception"),
    Issue(3, "embedding accepts a negative index"),
    Issue(4, "compile wrong wrong wrong results", "wrong results everywhere, wrong"),
    *(Issue(number, f"unrelated {number}", "a page of other words") for number in range(10, 60)),
]


def finding(body, kind=Kind.WRONG_VALUE, **facts):
    inputs = "def build_inputs():\n    return (torch.randn(3, 4),)\n"
    text = f"import torch\n\n\n{inputs}\n\ndef fn(x, y=2):\n    return {body}\n"
    return Finding(Signature("m", ""), kind, text, stage="run", facts=facts)


@pytest.fixture
def index(tmp_path: Path):
    with IssueIndex(tmp_path / "issues.sqlite", create=True) as made:
        made.add(ISSUES)
        yield made


@pytest.mark.parametrize("item, number", [
    (finding("x.t().argmax()"), 1),
    (finding("x.transpose(0, 1).argmin()"), 1),  # the sibling, called by another name
    (finding("x % y", Kind.CRASH, end={"how": "signal", "signal": 8}), 2),
    (finding("torch.nn.functional.embedding(y, x)", Kind.MISSING_CHECK), 3),
])  # fmt: skip
def test_the_own_issue_comes_first(index, item, number):
    first, *others = nearest(item, index)
    assert (first["number"], first["link"]) == (number, f"https://github.com/pytorch/pytorch/issues/{number}")
    assert first["title"] == ISSUES[number - 1].title and 0 < first["score"] <= 1
    assert len(others) <= 2 and all(other["score"] <= first["score"] for other in others)


def test_a_program_without_words_has_no_similar_issue(index):
    assert isinstance(nearest(finding("x"), index), list)
    words = search_words(Finding(Signature("m", ""), Kind.WRONG_VALUE, "not python ("))
    assert words.operators == () and words.names == ""


def test_the_message_is_searched_without_what_torch_wraps_around_it():
    fault = {"type": "InductorError", "message": "outer", "cause_type": "builtins.IndexError",
             "cause_message": "tuple index out of range\nfrom user code"}  # fmt: skip
    item = finding("x.cumsum(0)", Kind.COMPILE_ERROR, faults={"run": fault})
    assert "IndexError tuple index out of range" in search_words(item).others
    assert "user code" not in search_words(item).others


def test_an_operator_named_in_the_title_outweighs_symptoms():
    words = Words(("argmax",), "wrong results")
    named, loud = Similar(1, "argmax fails", "", "", False, 1.0), Similar(2, "wrong results", "", "", False, 1.0)
    ordered = ranked(words, [named], [loud, named])
    assert [item.number for item, _score in ordered] == [1, 2]
    assert ranked(words, [], []) == []
