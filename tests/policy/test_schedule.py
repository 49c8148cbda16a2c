"""The schedule: deterministic, resumable, and moved only by what was realised."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import msgpack
import pytest

from fuzzer.features.space import FeatureSpace
from fuzzer.policy.corpus import Corpus, Seed
from fuzzer.policy.plan import Outcome, Plan
from fuzzer.policy.schedule import Schedule
from fuzzer.policy.vector import VectorSampler

SPACE = FeatureSpace.load()
FAMILIES = ["pointwise", "reduction", "view", "index_reduction", "scan", "matmul"]
OPERATORS = {family: [f"{family}.{number}" for number in range(10)] for family in FAMILIES}
MUTATIONS = ["shape", "dtype", "layout", "splice"]


def make(seed: int = 1, **options) -> Schedule:
    return Schedule(SPACE, FAMILIES, OPERATORS, MUTATIONS, seed, **options)


def play(schedule: Schedule, corpus: Corpus, rounds: range, reward=lambda plan, realised: 0.0) -> list[Plan]:
    """A campaign in miniature. What becomes of a plan depends on the plan alone."""
    plans = []
    for _ in rounds:
        plan = schedule.next(corpus)
        rng = random.Random(plan.random)
        operators = [key for family in plan.families for key in schedule.choose_operators(family, rng, 2)]
        realised = frozenset(feature for feature in plan.features if rng.random() < 0.8) | {"mode=forward"}
        name = f"{plan.random:016x}"
        corpus.observe([f"kernels:{rng.randrange(40)}"])
        if rng.random() < 0.3:
            corpus.add(Seed(name, keys=(f"kernels:{rng.randrange(40)}",), features=realised))
        schedule.learn(
            Outcome(plan, "pass", reward(plan, realised), 1.0 + rng.random(), realised, tuple(operators),
                    {"python": 1} if rng.random() < 0.2 else {}, rng.random() < 0.02, name)
        )  # fmt: skip
        plans.append(plan)
    return plans


def test_same_seed_same_plans() -> None:
    first = play(make(), Corpus(), range(150))
    assert first == play(make(), Corpus(), range(150))
    assert first[:20] != play(make(2), Corpus(), range(20))
    assert {plan.engine for plan in first} == {"template", "mutate"}
    assert {plan.operator for plan in first} == {"", *MUTATIONS}
    assert [plan.number for plan in first] == list(range(1, 151))


def test_a_resumed_campaign_continues_as_it_would_have() -> None:
    schedule, corpus = make(), Corpus()
    play(schedule, corpus, range(120))
    saved = msgpack.unpackb(msgpack.packb([schedule.to_map(), corpus.to_map()]), strict_map_key=False)
    resumed = Schedule.from_map(saved[0], SPACE, FAMILIES, OPERATORS, MUTATIONS)
    copy = Corpus.from_map(saved[1])
    assert resumed.to_map() == schedule.to_map()
    assert play(resumed, copy, range(60)) == play(schedule, corpus, range(60))


def test_vectors_are_small_consistent_and_differ() -> None:
    sampler, rng = VectorSampler(SPACE), random.Random(1)
    vectors = [sampler.draw(rng, 2, 6) for _ in range(300)]
    for vector in vectors:
        assert 2 <= len(vector) <= 6 and len(set(vector)) == len(vector)
        assert all(SPACE.compatible(a, b) for a in vector for b in vector)
        assert not any(vector_feature.startswith("op_family=") for vector_feature in vector)
    assert len({frozenset(vector) for vector in vectors}) == 300
    asked = {feature for vector in vectors for feature in vector}
    assert len(asked) > 0.8 * sum(1 for f in SPACE.features.values() if SPACE.dimensions[f.dimension].sampled)


def test_drawn_vectors_lie_farther_from_the_past_than_plain_candidates() -> None:
    sampler, rng = VectorSampler(SPACE), random.Random(2)
    for _ in range(200):
        sampler.draw(rng, 3, 3)

    def nearest(vector: tuple[str, ...]) -> float:
        return sampler._distance(sampler._bits(vector))[0]

    plain = [nearest(sampler._candidate(rng, 3, None)) for _ in range(60)]
    drawn = []
    for _ in range(20):
        past = list(sampler.recent)
        vector = sampler.draw(rng, 3, 3)
        sampler.recent.clear()
        sampler.recent.extend(past)
        drawn.append(nearest(vector))
    assert sum(drawn) / len(drawn) > sum(plain) / len(plain) + 0.02


def test_only_realised_features_are_credited() -> None:
    schedule = make()
    plan = Plan(1, "template", features=("dtype=uint8", "layout=expanded"), families=("scan",))
    schedule.learn(Outcome(plan, "pass", 1.0, 1.0, frozenset({"layout=expanded", "shape=ones"}), ("view.1", "view.2")))
    values, dimensions = schedule.vectors.values, schedule.vectors.dimensions
    assert [values.pulls(f) for f in ("layout=expanded", "shape=ones", "dtype=uint8")] == [1.0, 1.0, 0.0]
    assert [dimensions.pulls(d) for d in ("layout", "shape", "dtype")] == [1.0, 0.0, 0.0]  # asked and realised
    assert [schedule.families.pulls(f) for f in ("view", "scan")] == [1.0, 0.0]  # used, not asked
    assert [schedule.operators["view"].pulls(k) for k in ("view.1", "view.2", "view.3")] == [1.0, 1.0, 0.0]
    assert "scan" not in schedule.operators


def test_a_rewarding_feature_and_family_are_asked_more() -> None:
    def pays(plan: Plan, realised: frozenset[str]) -> float:
        return float("layout=expanded" in realised or "scan" in plan.families)

    def count(plans: list[Plan]) -> tuple[int, int]:
        return (
            sum("layout=expanded" in plan.features for plan in plans),
            sum("scan" in plan.families for plan in plans),
        )

    learning, uniform = make(), make(uniform=True)
    learnt = count(play(learning, Corpus(), range(800), pays)[400:])
    flat = count(play(uniform, Corpus(), range(800), pays)[400:])
    assert learnt[0] > 2 * flat[0] > 0
    assert learnt[1] > 1.5 * flat[1] > 0


def test_an_asked_edge_brings_families_for_both_ends() -> None:
    families = make()._draw_families(("adjacency=view>index_reduction",))
    assert families[:2] == ("view", "index_reduction")


def test_the_neighbourhood_of_a_finding_is_explored_but_not_only_that() -> None:
    schedule, corpus = make(), Corpus()
    corpus.add(Seed("found"))
    plan = Plan(1, "template", features=("dtype=uint8", "layout=expanded"))
    schedule.learn(Outcome(plan, "wrong_value", 1.0, 1.0, frozenset({"dtype=uint8"}), ("scan.1",), {}, True, "found"))
    plans = [schedule.next(corpus) for _ in range(60)]
    near = [p for p in plans if p.features == ("dtype=uint8",) and p.families == ("scan",)]
    assert Counter(p.engine for p in near) == {"mutate": 3, "template": 3}  # every mutation but splice, and transfers
    assert {p.seed for p in near if p.engine == "mutate"} == {"found"}
    assert not schedule.exploit
    for number in range(100):
        schedule.learn(replace(Outcome(plan, "crash", 1.0, 1.0), new_finding=True, program=f"p{number}"))
    assert len(schedule.exploit) == 64


def test_open_loop_is_moved_by_nothing() -> None:
    def run(pays: float) -> list[Plan]:
        return play(make(open_loop=True), Corpus(), range(60), lambda plan, realised: pays)

    assert run(0.0) == run(1.0)
    assert {plan.engine for plan in run(1.0)} == {"template"}


def test_a_blocker_loses_weight() -> None:
    schedule = make()
    for number in range(100):
        plan = Plan(number + 1, "template")
        hit = number % 10 == 0
        realised = frozenset({"dtype=int8"} if hit else {"dtype=float32"})
        operators = ("reduction.3",) if hit else (f"view.{number % 10}",)
        schedule.learn(
            Outcome(plan, "wrong_value" if hit else "pass", 0.0, 1.0, realised, operators, bucket="b" if hit else "")
        )
    assert schedule.vectors.values.multiplier("dtype=int8") == 0.25
    assert schedule.operators["reduction"].multiplier("reduction.3") == 0.25
    assert schedule.vectors.values.multiplier("dtype=float32") == 1.0


def test_plateau_raises_exploration() -> None:
    schedule = make()
    for number in range(500):
        assert schedule.exploration is None
        schedule.learn(Outcome(Plan(number + 1, "template"), "pass", 0.0, 1.0, species=("same",)))
    assert schedule.exploration == 0.2
    for number in range(20):
        schedule.learn(Outcome(Plan(number + 501, "template"), "pass", 0.1, 1.0, new_coverage={"python": 1}))
    assert schedule.exploration is None


def test_advice_is_bounded_and_unknown_arms_are_reported() -> None:
    schedule = make()
    assert schedule.advise({"dtype=uint8": 99.0, "splice": 0.5, "scan.4": 2.0, "nonsense": 2.0}) == ["nonsense"]
    assert schedule.vectors.values.multiplier("dtype=uint8") == 4.0
    assert schedule.operators["scan"].multiplier("scan.4") == 2.0


def test_targets_take_turns_and_bare_catalogues_work() -> None:
    schedule = Schedule(SPACE, [], {}, [], 1, targets=2)
    corpus = Corpus()
    corpus.add(Seed("s"))
    plans = [schedule.next(corpus) for _ in range(4)]
    assert [plan.target for plan in plans] == [0, 1, 0, 1]
    assert all(plan.engine == "template" and plan.families == () for plan in plans)
    assert schedule.choose_operators("scan", random.Random(0), 2) == []


@pytest.mark.parametrize("grown", [True, False])
def test_a_catalogue_may_change_between_runs(grown: bool) -> None:
    schedule, corpus = make(), Corpus()
    play(schedule, corpus, range(40))
    families = [*FAMILIES, "conv"] if grown else FAMILIES[:2]
    mutations = [*MUTATIONS, "values"] if grown else MUTATIONS[:1]
    operators = {family: OPERATORS.get(family, ["conv.0"]) for family in families}
    resumed = Schedule.from_map(schedule.to_map(), SPACE, families, operators, mutations)
    resumed.exploit.clear()
    plans = play(resumed, corpus, range(300))
    assert {family for plan in plans for family in plan.families} == set(families)
    new = [plan for plan in plans if plan.seed and "found" not in plan.seed]
    assert {plan.operator for plan in new} == set(mutations)
