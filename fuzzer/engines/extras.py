"""Statements that no feature asks for: arguments at their limits, whole subgraphs, and what eager must refuse."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fuzzer.engines.candidates import Proposer
from fuzzer.engines.trials import Trials
from fuzzer.knowledge.operators import Operator

_TRIES = 8
#: Share of subgraphs that are the only way to an operator family.
_ORPHANS = 0.1
#: Refusals that say nothing of an argument at its limit: no kernel, no memory, a fault of eager's own, another type.
_OTHER_REFUSAL = re.compile(r"not implemented|support|INTERNAL ASSERT|memory|allocat|NotImplemented|TypeError|dtype")


class Extras:
    """Adds such statements to the draft of ``trials``."""

    def __init__(self, proposer: Proposer, trials: Trials) -> None:
        self.proposer = proposer
        self.trials = trials
        self.draft, self.wishes, self.rng = trials.draft, trials.wishes, trials.rng

    async def at_limit(self, operators: Sequence[Operator]) -> bool:
        """A call of one of the operators with one argument at a limit that eager accepts."""
        for operator in operators[:_TRIES]:
            found = self.proposer.at_limit(operator, self.draft, self.wishes, self.rng)
            if found and await self.trials.accept(found):
                return True
        return False

    async def subgraph(self) -> bool:
        """A subgraph of knowledge as it stands, on a live tensor where it fits one."""
        entries = self.proposer.idioms.subgraphs
        if self.proposer.orphans and self.rng.random() < _ORPHANS:
            entries = self.proposer.orphans
        kind = self.rng.choice(sorted({entry.family for entry in entries})) if entries else ""
        entries = tuple(entry for entry in entries if entry.family == kind)
        found = self.proposer.by_entry(entries, self.draft, self.wishes, self.rng)
        return bool(found) and await self.trials.accept(found)

    async def refusal(self, operators: Sequence[Operator]) -> str:
        """A last statement that eager refuses: an operator at a limit, or a bug pattern that looks for lost checks.

        Its would-be result is returned, so that no compiler may drop it. Returns what eager says; "" when
        nothing that was tried is refused for the sake of an argument.
        """
        options = [
            self.proposer.at_limit(op, self.draft, self.wishes, self.rng, pure=True) for op in operators[:_TRIES]
        ]
        tried = [found[-1] for found in options if found]
        tried += self.proposer.by_entry(self.proposer.idioms.refused, self.draft, self.wishes, self.rng)[:1]
        for candidate in self.rng.sample(tried, len(tried)):
            if not candidate.target:
                continue
            (answer,) = await self.trials.probe([[candidate.text()]], tried=[candidate])
            error = str(answer["errors"][0]) if answer["chosen"] < 0 else ""
            if error and not _OTHER_REFUSAL.search(error):
                self.draft.accept(candidate, {})
                self.draft.live[candidate.target] = {"kind": "refused"}
                self.draft.kept.add(candidate.target)
                return error
        return ""
