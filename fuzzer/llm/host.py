"""What the language model's engine sees of the campaign, and the few things that it may do to it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fuzzer.knowledge.operators import Operators
from fuzzer.loop_state import LoopState
from fuzzer.policy.plan import Order

if TYPE_CHECKING:
    from fuzzer.campaign import Campaign


class Host(Protocol):
    """All state is read from here, so that answers depend on nothing else."""

    @property
    def state(self) -> LoopState: ...

    @property
    def operators(self) -> Operators: ...

    @property
    def executed(self) -> Collection[str]: ...

    def order(self, arms: Sequence[str]) -> Order:
        """The next order; recorded."""
        ...

    def choose_operators(self, family: str, rng: random.Random, count: int) -> list[str]: ...

    def text(self, seed: str) -> str:
        """A seed's program; "" when it is gone."""
        ...

    def advise(self, factors: Mapping[str, float], reasons: Mapping[str, str]) -> None:
        """Apply factors to arms; recorded."""
        ...

    def note(self, kind: str, text: str) -> None: ...


class CampaignHost:
    """The running campaign as a ``Host``: what changes its state goes through the journal."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    @property
    def state(self) -> LoopState:
        return self._campaign.state

    @property
    def operators(self) -> Operators:
        return self._campaign.state.operators

    @property
    def executed(self) -> Collection[str]:
        return self._campaign.state.executed

    def order(self, arms: Sequence[str]) -> Order:
        self._campaign.journal.append({"t": "order", "arms": list(arms)})
        return self._campaign.state.order(arms)

    def choose_operators(self, family: str, rng: random.Random, count: int) -> list[str]:
        return self._campaign.state.schedule.choose_operators(family, rng, count)

    def text(self, seed: str) -> str:
        stored = self._campaign.corpus_files.read(seed) if seed else None
        return str(stored["text"]) if stored is not None else ""

    def advise(self, factors: Mapping[str, float], reasons: Mapping[str, str]) -> None:
        record = {"t": "advice", "factors": dict(factors), "reasons": dict(reasons)}
        self._campaign.journal.append(record)
        self._campaign.state.apply(record)
        for arm, factor in factors.items():
            self.note("advice", f"{arm} ×{factor:.2g}: {reasons.get(arm, '')}")

    def note(self, kind: str, text: str) -> None:
        self._campaign.note(kind, text)
