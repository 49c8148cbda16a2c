"""The corpus: seeds are drawn in proportion to their energies, however stale the stored ones are."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.corpus import KEYS_KEPT, Corpus, Seed
from fuzzer.policy.fenwick import Fenwick


def grown(seeds: int = 12, later_runs: int = 300, seed: int = 0) -> Corpus:
    """A corpus whose frequencies have moved on since its seeds were added."""
    rng, corpus = random.Random(seed), Corpus()

    def keys() -> list[str]:
        return [f"{d}:{min(int(rng.expovariate(0.2)), 30)}" for d in ("kernels", "events", "pairs") for _ in range(3)]

    for number in range(seeds):
        seen = keys()
        corpus.observe(seen)
        corpus.add(
            Seed(f"s{number}", keys=tuple(seen), first=number % 3 * 10, seconds=rng.uniform(0.2, 5),
                 features=frozenset(rng.sample("abcdefgh", 3)))
        )  # fmt: skip
    for _ in range(later_runs):
        corpus.observe(keys())
    return corpus


def test_draws_follow_the_current_energies() -> None:
    corpus = grown()
    rng = random.Random(1)
    energies = {seed.id: corpus.energy(seed.id) for seed in corpus.seeds}
    total = sum(energies.values())
    draws = Counter(corpus.seeds[corpus._draw(rng)].id for _ in range(30_000))
    for name, energy in energies.items():
        assert draws[name] / 30_000 == pytest.approx(energy / total, abs=0.012)


def test_rare_keys_give_energy_and_lose_it_as_they_become_common() -> None:
    corpus = Corpus()
    corpus.observe(["kernels:common", "kernels:rare"])
    for _ in range(50):
        corpus.observe(["kernels:common"])
    corpus.add(Seed("plain", keys=("kernels:common",)))
    corpus.add(Seed("special", keys=("kernels:rare",)))
    before = corpus.energy("special")
    assert before > 20 * corpus.energy("plain")
    for _ in range(9):
        corpus.observe(["kernels:rare"])
    assert corpus.energy("special") == pytest.approx(before / 10, rel=0.1)


def test_a_large_domain_does_not_drown_a_small_one() -> None:
    corpus = Corpus({"kernels": 1.0, "pairs": 1.0})
    corpus.observe([f"pairs:{number}" for number in range(1000)])
    corpus.observe(["kernels:one"])
    corpus.add(Seed("many", keys=tuple(f"pairs:{number}" for number in range(KEYS_KEPT))))
    corpus.add(Seed("one", keys=("kernels:one",)))
    assert corpus.energy("one") > corpus.energy("many")


def test_the_bonus_of_first_hits_decays_with_use() -> None:
    corpus = Corpus()
    corpus.add(Seed("s", first=100))
    before = corpus.energy("s")
    for _ in range(9):
        assert corpus.choose(random.Random(0)) is corpus.get("s")
    assert corpus.get("s").chosen == 9
    assert corpus.energy("s") < 0.15 * before


def test_slow_seeds_get_less() -> None:
    corpus = Corpus()
    corpus.observe(["events:a", "events:b"])
    corpus.add(Seed("fast", keys=("events:a",), seconds=1.0))
    corpus.add(Seed("slow", keys=("events:b",), seconds=9.0))
    assert corpus.energy("fast") > 1.5 * corpus.energy("slow")


def test_lineage_and_counters() -> None:
    corpus = Corpus()
    assert corpus.choose(random.Random(0)) is None
    assert corpus.add(Seed("a", parents=("gone",)))
    assert corpus.add(Seed("b", parents=("a",)))
    assert corpus.add(Seed("c", parents=("b", "a")))
    assert not corpus.add(Seed("a"))
    assert corpus.ancestors("c") == ["b", "a", "gone"]
    assert corpus.get("a").children == 2
    corpus.record_finding("a")
    corpus.record_finding("unknown")
    assert corpus.get("a").findings == 1


def test_only_the_rarest_keys_are_kept() -> None:
    corpus = Corpus()
    common, rare = [f"ops:c{i}" for i in range(50)], [f"ops:r{i}" for i in range(5)]
    corpus.observe(common)
    corpus.observe(common + rare)
    corpus.add(Seed("s", keys=tuple(common + rare)))
    kept = corpus.get("s").keys
    assert len(kept) == KEYS_KEPT and set(rare) <= set(kept)


def test_a_donor_is_another_seed_and_tends_to_differ() -> None:
    corpus, rng = Corpus(), random.Random(3)
    assert corpus.add(Seed("only", features=frozenset("ab")))
    assert corpus.donor(rng, corpus.get("only")) is None
    corpus.add(Seed("twin", features=frozenset("ab")))
    corpus.add(Seed("other", features=frozenset("cd")))
    donors = Counter(corpus.donor(rng, corpus.get("only")).id for _ in range(300))
    assert "only" not in donors and donors["other"] > 2 * donors["twin"]


@given(st.integers(0, 10**6), st.integers(0, 8))
def test_a_restored_corpus_draws_the_same_seeds(seed: int, warm: int) -> None:
    corpus, rng = grown(8, 30, seed), random.Random(seed)
    for _ in range(warm):
        corpus.choose(rng)
    copy = Corpus.from_map(corpus.to_map())
    assert copy.to_map() == corpus.to_map()
    left, right = random.Random(seed), random.Random(seed)
    assert [corpus.choose(left).id for _ in range(10)] == [copy.choose(right).id for _ in range(10)]
    assert copy.to_map() == corpus.to_map()


weights = st.floats(0, 100, allow_subnormal=False)


@given(st.lists(weights, min_size=1, max_size=40), st.lists(st.tuples(st.integers(0, 39), weights)), st.floats(0, 1))
def test_fenwick_agrees_with_a_running_sum(values: list[float], changes: list, fraction: float) -> None:
    tree = Fenwick()
    for value in values:
        tree.append(value)
    for place, value in changes:
        tree.set(place % len(values), value)
    plain = list(tree.weights)
    assert tree.total == pytest.approx(sum(plain), abs=1e-9)
    point = fraction * tree.total
    found = tree.find(point)
    assert sum(plain[:found]) <= point + 1e-6
    assert point <= sum(plain[: found + 1]) + 1e-6
