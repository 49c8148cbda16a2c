"""Search by words over the whole base."""

from __future__ import annotations

import pytest

from fuzzer.exits import UserError
from fuzzer.features.detect import default_space
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import default_entries
from fuzzer.knowledge.search import Document, documents, search

ALL = documents(Operators.load_extract(), default_space(), default_entries())


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        ("rotary embedding", "subgraph", "rotary-embedding"),
        ("argmax of a transposed view", "pattern", "arg-of-transposed-pointwise"),
        ("max_pool2d", "operator", "nn.functional.max_pool2d"),
        ("tensors that start inside their storage", "feature", "layout=offset"),
        ("embeddings summed per bag", "subgraph", "embedding-bag"),
    ],
)
def test_what_is_meant_is_near_the_top(words: str, kind: str, name: str) -> None:
    assert (kind, name) in [(hit.document.kind, hit.document.id) for hit in search(words, ALL, 8)]


def test_a_word_of_the_title_counts_more_than_one_of_the_text() -> None:
    known = [Document("k", "a", "fish", "bird tree stone"), Document("k", "b", "bird", "fish tree stone")]
    assert [hit.document.id for hit in search("bird", known)] == ["b", "a"]


def test_operators_of_the_query_language_are_plain_words() -> None:
    assert search('NOT "quoted* AND (near', [Document("k", "a", "near", "")])[0].document.id == "a"
    with pytest.raises(UserError, match="no word to search for"):
        search("* ( %", ALL)
