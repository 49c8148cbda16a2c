"""Patterns and subgraphs as what engines draw from: idioms of features, mutations, and switches for ablation."""

from __future__ import annotations

import random

import pytest

from fuzzer.engines.idioms import Idioms, Knowledge, default_idioms
from fuzzer.engines.mutate import MUTATIONS, MutationContext, mutate
from fuzzer.engines.wishes import askable
from fuzzer.knowledge.patterns import default_entries
from fuzzer.program import Program

PARENT = Program.parse(
    "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n    torch.manual_seed(0)\n    return torch.randn(4, 7), "
    "torch.randn(4, 7)\n\n\ndef fn(a, b):\n    c = torch.sin(a) + b\n    d = c.t().argmax()\n    return c, d\n"
)
ENTRIES = {entry.id: entry for entry in default_entries()}


def test_entries_join_the_idioms_of_what_they_bring_and_ask_for_nothing_new() -> None:
    bare, full = Idioms.load(), default_idioms()
    assert full.features == bare.features and full.groups == bare.groups
    assert askable() >= full.features
    joined = {idiom.entry: idiom for key in full.features for idiom in full.of(key)}
    assert "beta-zero" in {idiom.entry for idiom in full.of("boundary=alpha")}, "it can be named in the program"
    assert all(full.of(key)[: len(bare.of(key))] == bare.of(key) for key in bare.features)
    assert not any("mode" in idiom.meta for key in full.features for idiom in full.of(key)), "the plan's to choose"
    refused = {entry.id for entry in ENTRIES.values() if entry.refused}
    assert refused and refused.isdisjoint(joined)


def test_each_source_has_a_switch() -> None:
    kinds = {entry.kind for entry in Knowledge(patterns=False).entries()}
    assert kinds == {"subgraph"} and {entry.kind for entry in Knowledge(subgraphs=False).entries()} == {"pattern"}
    off = Knowledge(patterns=False, subgraphs=False)
    bare = Idioms.load()
    assert all(off.idioms().of(key) == bare.of(key) for key in bare.features)
    assert set(MUTATIONS) - set(off.mutations(MUTATIONS)) == {"apply_pattern", "insert_subgraph"}
    assert set(Knowledge().mutations(MUTATIONS)) == set(MUTATIONS)


@pytest.mark.parametrize(("name", "kind"), [("apply_pattern", "pattern"), ("insert_subgraph", "subgraph")])
def test_mutations_write_entries_and_tell_which(name: str, kind: str) -> None:
    used = set()
    for seed in range(40):
        child = mutate(PARENT, name, MutationContext(random.Random(seed), features=("layout=transposed",)))
        again = mutate(PARENT, name, MutationContext(random.Random(seed), features=("layout=transposed",)))
        assert (child and child.text) == (again and again.text)
        if child is not None:
            (entry,) = child.meta["knowledge"]
            assert ENTRIES[entry].kind == kind and len(child.text) > len(PARENT.text)
            used.add(entry)
    assert len(used) >= 8, "not always the same"


def test_patterns_that_fit_the_program_are_preferred() -> None:
    chosen = []
    for seed in range(60):
        child = mutate(PARENT, "apply_pattern", MutationContext(random.Random(seed), features=("layout=transposed",)))
        if child is not None:
            chosen.append(ENTRIES[child.meta["knowledge"][0]])
    index = [entry for entry in chosen if entry.family == "index_reduction"]
    assert len(index) > len(chosen) / 10, "the parent takes argmax of a transpose; one family in 29 by chance"
