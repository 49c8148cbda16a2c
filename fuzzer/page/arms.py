"""What the bandits believe, by kind of arm: mean, interval and pulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuzzer.loop_state import LoopState
from fuzzer.policy.bandit import ArmSet

#: Rows of one kind; a campaign has about a thousand operators, and the tail says little.
_ROWS = 150
#: Of these, how many are shown before a person asks for the rest.
SHOWN = 12


@dataclass(frozen=True)
class Arm:
    """``mean`` with its 5 % and 95 % quantiles: chance of a reward a pull. ``pulls`` are discounted, as in the bandit.

    ``factor`` multiplies its score (1: none): advice, or a blocker's damper.
    """

    name: str
    mean: float
    low: float
    high: float
    pulls: float
    factor: float


@dataclass(frozen=True)
class ArmKind:
    """Arms that compete, the best mean first. ``rate`` is the mean over all of them, ``left_out`` how many more."""

    name: str
    note: str
    rate: float
    arms: tuple[Arm, ...]
    left_out: int

    @property
    def scale(self) -> float:
        """End of the common axis: the largest upper quantile shown."""
        return max((arm.high for arm in self.arms), default=1.0)


def arm_kinds(state: LoopState) -> list[ArmKind]:
    """All kinds that hold any arm."""
    schedule = state.schedule
    single = [
        ("Engines", "who writes the program", {"": schedule.engines}),
        ("Mutations", "what is done to a seed", {"": schedule.mutations}),
        ("Prompts", "what the language model is asked for, and in which form", {"": schedule.prompts}),
        ("Dimensions", "which kind of feature is asked for", {"": schedule.vectors.dimensions}),
        ("Features", "credited where realised", {"": schedule.vectors.values}),
        ("Operator families", "credited where used", {"": schedule.families}),
        ("Operators", "within their family; the most pulled ones", schedule.operators),
        ("Knowledge", "bug patterns and subgraphs, credited where realised", {"": schedule.entries}),
    ]
    kinds = [_kind(name, note, sets) for name, note, sets in single]
    return [kind for kind in kinds if kind.arms]


def _kind(name: str, note: str, sets: Mapping[str, ArmSet]) -> ArmKind:
    everything = sorted(_pulled(sets), key=lambda item: (-item[0], item[1]))
    rows = [_arm(sets[group], group, arm) for _pulls, group, arm in everything[:_ROWS]]
    rows.sort(key=lambda arm: (-arm.mean, arm.name))
    weights = [arms.total_pulls for arms in sets.values()]
    rates = [arms.rate for arms in sets.values()]
    return ArmKind(name, note, _mean(rates, weights), tuple(rows), len(everything) - len(rows))


def _pulled(sets: Mapping[str, ArmSet]) -> Iterator[tuple[float, str, str]]:
    for group, arms in sets.items():
        for arm in arms.arms:
            yield arms.pulls(arm), group, arm


def _arm(arms: ArmSet, group: str, name: str) -> Arm:
    mean, low, high = arms.posterior(name)
    shown = f"{name} ({group})" if group else name
    return Arm(shown, mean, low, high, arms.pulls(name), arms.multiplier(name))


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    if total <= 0:
        return sum(values) / len(values) if values else 0.0
    return sum(value * weight for value, weight in zip(values, weights)) / total
