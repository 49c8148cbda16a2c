"""A bucket that eats the campaign is traced to what its runs have in common."""

from __future__ import annotations

import random

from fuzzer.policy.blockers import Blockers


def feed(blockers: Blockers, rng: random.Random, runs: int, bucket_share: float) -> None:
    for _ in range(runs):
        arms = [f"op{rng.randrange(20)}" for _ in range(3)]
        if rng.random() < bucket_share:
            blockers.observe("int8 amax", [*arms, "aten.amax", "dtype=int8"])
        else:
            blockers.observe("", [*arms, *(["dtype=int8"] if rng.random() < 0.1 else [])])


def test_guilty_arms_are_named_and_released() -> None:
    blockers, rng = Blockers(), random.Random(1)
    feed(blockers, rng, 600, 0.05)
    changes = blockers.review()
    assert {arm for _, arm, _ in changes} == {"aten.amax", "dtype=int8"}
    assert all(bucket == "int8 amax" and 0.25 <= factor < 1 for bucket, _, factor in changes)
    copy = Blockers.from_map(blockers.to_map())
    assert copy.to_map() == blockers.to_map()
    feed(blockers, rng, 3000, 0.0)
    assert {(arm, factor) for _, arm, factor in blockers.review()} == {("aten.amax", 1.0), ("dtype=int8", 1.0)}
    assert blockers.review() == []


def test_rare_buckets_are_left_alone() -> None:
    blockers, rng = Blockers(), random.Random(2)
    feed(blockers, rng, 2000, 0.003)
    assert blockers.review() == []


def test_buckets_are_bounded_and_weights_never_overflow() -> None:
    blockers = Blockers()
    for number in range(300):
        blockers.observe(f"bucket{number}", ["a"])
    assert len(blockers.hits) == len(blockers.arms) == 64
    before = blockers.share("bucket299")
    blockers._rescale()
    assert blockers.weight == 1.0 and abs(blockers.share("bucket299") - before) < 1e-12
