"""Advice: the campaign's summary for the model, and its answer as bounded factors on arms. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.llm.schema import choice, listing, read_json, record
from fuzzer.loop_state import LoopState
from fuzzer.policy.bandit import ArmSet

MOST = 8  # changes of one advice
_LOW, _HIGH = 0.25, 4.0
_ROWS = 12  # arms of one set that are shown: the most pulled, the best and the untried


@dataclass(frozen=True)
class Advice:
    """``factors``: arm → ¼ … 4. ``reasons``: arm → words of the model, for the log."""

    factors: dict[str, float]
    reasons: dict[str, str]


def shown_arms(state: LoopState) -> dict[str, list[str]]:
    """Set → its arms that a summary shows."""
    schedule = state.schedule
    sets = {
        "writers": schedule.engines,
        "prompts": schedule.prompts,
        "mutations": schedule.mutations,
        "families": schedule.families,
        "features": schedule.vectors.values,
    }
    return {name: _few(arms) for name, arms in sets.items() if len(arms)}


def _few(arms: ArmSet) -> list[str]:
    if len(arms) <= _ROWS:
        return arms.arms
    by_pulls = sorted(arms.arms, key=lambda arm: (-arms.pulls(arm), arm))
    by_mean = sorted(arms.arms, key=lambda arm: (-arms.posterior(arm)[0], arm))
    third = _ROWS // 3
    return list(dict.fromkeys([*by_mean[:third], *by_pulls[:third], *by_pulls[-third:]]))


def summary(state: LoopState) -> str:
    """The campaign in some fifty lines: totals, then the arms."""
    counters, schedule = state.counters, state.schedule
    lines = [
        f"programs {counters.runs}, valid {100 * state.valid_rate:.0f} %, asked features realised "
        f"{100 * state.conformity:.0f} %, seeds {len(state.corpus)}",
        f"findings {sum(counters.findings.values())}, operators run {len(state.executed)}, on a plateau: "
        f"{'yes' if schedule.plateau.reached else 'no'} (runs that found something lately: "
        f"{100 * schedule.plateau.discovery_share:.0f} %)",
    ]
    sets = {"writers": schedule.engines, "prompts": schedule.prompts, "mutations": schedule.mutations}
    sets |= {"families": schedule.families, "features": schedule.vectors.values}
    for name, shown in shown_arms(state).items():
        arms = sets[name]
        lines.append(f"{name}:")
        for arm in shown:
            factor = f", factor {arms.multiplier(arm):.2g} now" if arms.multiplier(arm) != 1.0 else ""
            lines.append(f"  {arm}: {arms.pulls(arm):.0f}, {arms.posterior(arm)[0]:.3f}{factor}")
    return "\n".join(lines)


def schema(arms: Sequence[str]) -> dict[str, Any]:
    row = record(arm=choice(arms), factor={"type": "number"}, why={"type": "string"})
    return record(advice=listing(row, MOST))


def read(text: str, form: dict[str, Any]) -> Advice:
    """The answer, its factors held within bounds. Raises ``NoJson``."""
    rows = read_json(text, form)["advice"]
    factors = {
        row["arm"]: min(max(float(row["factor"]), _LOW), _HIGH) for row in rows if row["factor"] == row["factor"]
    }
    return Advice(factors, {row["arm"]: " ".join(str(row["why"]).split())[:200] for row in rows})
