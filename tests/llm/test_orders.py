"""What the schedule does with the language model's engine: orders, offers, credit, advice that fades."""

from __future__ import annotations

import msgpack
from llm_base import operators

from fuzzer.features.space import FeatureSpace
from fuzzer.loop_state import LoopState
from fuzzer.policy.corpus import Seed
from fuzzer.policy.plan import Order, Outcome, Plan
from fuzzer.policy.schedule import Schedule

SPACE = FeatureSpace.load()
ARMS = ("fresh:steps", "mutate:steps", "fresh:free")


def state() -> LoopState:
    made = LoopState(operators(), SPACE, 7)
    made.corpus.add(Seed("s1", (), "template", frozenset(), (), ("ops:aten.add",), 1, 1.0, 1))
    return made


def outcome(plan: Plan, reward: float, tokens: int = 0) -> Outcome:
    return Outcome(plan, "pass", reward, 1.0, tokens=tokens)


def test_orders_survive_the_journal() -> None:
    order = state().order(ARMS)
    data = msgpack.unpackb(msgpack.packb(order.to_map()))
    assert Order.from_map(data) == order and 2 <= len(order.features) <= 6 and order.families
    assert (order.family, order.form) == tuple(order.arm.split(":"))


def test_a_family_that_needs_a_seed_waits_for_one() -> None:
    empty, full = LoopState(operators(), SPACE, 7), state()
    orders = [empty.order(ARMS) for _ in range(40)]
    assert {order.arm for order in orders} == {"fresh:steps", "fresh:free"}
    shown = {order.arm: order.seed for order in (full.order(ARMS) for _ in range(40))}
    assert shown == {"fresh:steps": "", "mutate:steps": "s1", "fresh:free": ""}


def test_orders_do_not_shift_what_is_drawn_for_others() -> None:
    """Without an offer the plans are those of a campaign without a model, but for what features were asked before."""
    plain, asked = state(), state()
    for _ in range(3):
        asked.order(ARMS)
    for _ in range(20):
        one, other = plain.plan(), asked.plan()
        assert (one.engine, one.operator, one.seed, one.random) == (
            other.engine,
            other.operator,
            other.seed,
            other.random,
        )


def test_an_offer_is_taken_by_its_arm_or_always() -> None:
    made = state()
    order = made.order(ARMS)
    offer = {"order": order.to_map(), "always": True}
    plan = made.plan(offer)
    assert (plan.engine, plan.operator, plan.features) == ("llm", order.arm, order.features)
    assert Plan.from_map(plan.to_map()) == plan
    engines = {made.plan({**offer, "always": False}).engine for _ in range(200)}
    assert engines == {"template", "mutate", "llm"}
    assert "llm" not in {made.plan().engine for _ in range(200)}


def test_arms_that_pay_are_asked_more_and_tokens_count() -> None:
    made = state()
    rewards = {"fresh:steps": (0.3, 500), "fresh:free": (0.3, 20_000)}
    for _ in range(300):
        order = made.order(tuple(rewards))
        plan = made.plan({"order": order.to_map(), "always": True})
        reward, tokens = rewards[order.arm]
        made.schedule.learn(outcome(plan, reward, tokens))
    pulls = made.schedule.prompts.pulls
    assert pulls("fresh:steps") > 5 * pulls("fresh:free") > 0


def test_advice_fades_and_survives_a_snapshot() -> None:
    made = state()
    made.apply({"t": "advice", "factors": {"reduction": 9.0, "mutate": 0.25, "stranger": 2.0}})
    schedule = made.schedule
    assert schedule.families.multiplier("reduction") == 4.0 and schedule.engines.multiplier("mutate") == 0.25
    assert set(schedule.advice) == {"reduction", "mutate"}
    factors = [4.0]
    for _ in range(40):
        for _ in range(50):
            schedule.learn(outcome(Plan(1, "template"), 0.0))
        factors.append(schedule.families.multiplier("reduction"))
        restored = LoopState(operators(), SPACE, 7)
        restored.restore(made.to_map())
        assert restored.schedule.advice == schedule.advice
    assert factors == sorted(factors, reverse=True) and factors[3] < 2.1 and factors[-1] == 1.0
    assert schedule.advice == {} and isinstance(schedule, Schedule)
