"""Loading patterns and subgraphs: malformed entries are named, the rest loads; what ships is whole and broad."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.knowledge.patterns import Pattern, load_patterns, load_subgraphs

GOOD = """
[[pattern]]
id = "good-one"
title = "a title"
trigger = "layout=transposed"
action = "what goes wrong"
oracle = "value"
issues = [1]
code = ["r = x.t()"]
"""


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('trigger = "layout="', r"good-two\.trigger: cannot read"),
        ('oracle = "guess"', r"good-two\.oracle: 'guess' is none"),
        ("weight = 0", r"good-two\.weight: 0 is no number"),
        ('issues = ["1"]', r"good-two\.issues: not a list of numbers"),
        ('code = ["r = ("]', r"good-two\.code: not Python"),
        ("code = []", r"good-two\.code: nothing that the engine could apply"),
        ('on = "round"', r"good-two\.on: no word 'round'"),
        ("colour = 1", r"good-two\.colour: unknown key"),
        ('title = " "', r"good-two\.title: missing"),
        ('id = "good-one"', r"good-one\.id: 'good-one' is taken"),
        ('id = "Good One"', r"'Good One' is no id"),
    ],
)
def test_a_malformed_entry_is_named_and_the_rest_loads(tmp_path: Path, bad: str, message: str) -> None:
    key = bad.partition(" =")[0]
    lines = GOOD.replace("good-one", "good-two").splitlines()
    changed = [bad if line.startswith(f"{key} =") else line for line in lines]
    text = "\n".join(changed if bad in changed else [*changed, bad])
    (tmp_path / "family.toml").write_text(GOOD + text)
    loaded = load_patterns(tmp_path)
    assert [entry.id for entry in loaded.entries] == ["good-one"]
    (fault,) = loaded.faults
    with pytest.raises(UserError, match=message):
        raise UserError(fault)
    with pytest.raises(UserError, match=message):
        load_patterns(tmp_path, strict=True)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = ")
    (tmp_path / "b.toml").write_text("[[subgraph]]\nid = 'x'\n")
    (tmp_path / "c.toml").write_text(GOOD)
    loaded = load_patterns(tmp_path)
    assert len(loaded.entries) == 1 and loaded.entries[0].family == "c"
    assert "a.toml: not valid TOML" in loaded.faults[0] and "b.toml: holds more or less" in loaded.faults[1]


def test_what_ships_is_whole_and_broad() -> None:
    patterns, subgraphs = load_patterns(strict=True), load_subgraphs(strict=True)
    assert len(patterns.entries) >= 150 and len(subgraphs.entries) >= 60
    families = Counter(entry.family for entry in patterns.entries)
    assert len(families) >= 24 and min(families.values()) >= 5
    ids = [entry.id for entry in (*patterns.entries, *subgraphs.entries)]
    assert len(ids) == len(set(ids)), "show finds an entry by its id alone"
    cited = {issue for entry in patterns.entries if isinstance(entry, Pattern) for issue in entry.issues}
    assert len(cited) >= 150


def test_brings_are_the_necessary_features(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(
        GOOD.replace("layout=transposed", "layout=transposed & op=t & (mode=backward | shape=odd) & !shape=empty")
    )
    (entry,) = load_patterns(tmp_path).entries
    assert entry.brings == ("layout=transposed",)
