"""Essential features: which properties of a failing program does the failure need? Each is switched off in turn.

Switching is a transformation of the program (``fuzzer.switches``); whether the fault is still there is asked of a
predicate. What cannot be asked, since eager refuses the program without the feature as well, is neither needed nor
free: it is untold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.reduce import SameFault
from fuzzer.signature import normalise
from fuzzer.switches import SWITCHES, ways

#: True: fails without it. False: passes. None: cannot be told.
Ask = Callable[[Program], Awaitable["bool | None"]]

#: One program may have two dozen features; each costs an execution or two.
_MOST = 16
_WAYS = 2
#: Features whose ways each keep a part of what the feature is: all of them have to pass.
_EVERY_WAY = frozenset({"topology=multi_result"})
_ORDER = {dimension: place for place, dimension in enumerate(SWITCHES)}


@dataclass(frozen=True)
class Essential:
    """Ids of features (``dimension=value``). ``free``: the fault shows without them as well."""

    needed: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    executions: int = 0

    def to_map(self) -> dict[str, Any]:
        """The part of ``Finding.triage`` that this fills."""
        return {
            "essential_features": list(self.needed),
            "free_features": list(self.free),
            "untold_features": list(self.untold),
        }


@dataclass(frozen=True)
class Ablation:
    """One feature, and programs without it, the best first."""

    feature: str
    programs: tuple[Program, ...]

    async def answer(self, ask: Ask) -> tuple[bool | None, int]:
        """Is the fault still there without the feature, and how many executions did it take to say?

        The first way that can be told decides; a feature whose ways each keep a part of it needs all of them.
        """
        told: bool | None = None
        for number, program in enumerate(self.programs, 1):
            seen = await ask(program)
            told = seen if seen is not None else told
            if seen or (seen is False and self.feature not in _EVERY_WAY):
                return seen, number
        return told, len(self.programs)


async def essential_features(
    program: Program, realised: Iterable[str], ask: Ask, enough: Callable[[], bool] = lambda: False
) -> Essential | None:
    """Switch each realised feature that can be switched off in turn; None when ``enough`` came first."""
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    executions = 0
    for ablation in ablations(program, realised)[:_MOST]:
        if enough():
            return None
        told, count = await ablation.answer(ask)
        executions += count
        found[told].append(ablation.feature)
    needed, free, untold = (tuple(sorted(found[told])) for told in (False, True, None))
    return Essential(needed, free, untold, executions)


def ablations(program: Program, realised: Iterable[str]) -> list[Ablation]:
    """For those of the realised features that can be removed: programs without them. What tells most comes first."""
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return []
    plain = view.to_text()
    found = []
    for feature in sorted(set(realised), key=lambda name: (_ORDER.get(name.partition("=")[0], len(_ORDER)), name)):
        programs: dict[str, Program] = {}
        try:
            for changed in ways(view, feature):
                without = changed.to_program()
                if without.text != plain:
                    programs.setdefault(without.id, without)
        except (UserError, SyntaxError):
            pass  # the way spells something that is no program; those before it stand
        if programs:
            most = len(programs) if feature in _EVERY_WAY else _WAYS
            found.append(Ablation(feature, tuple(programs.values())[:most]))
    return found


class StillFails:
    """The predicate of an ablation: ``SameFault``, and what a program that both sides refuse tells of a lost check.

    A bug may be that compiled code accepts, or dies of, what eager refuses. Where both sides refuse it without the
    feature, with eager's very words of before, the check is back: the feature was needed.
    """

    def __init__(self, same: SameFault, original: Observation) -> None:
        self.same, self.words = same, refusal(original)

    async def __call__(self, program: Program) -> bool | None:
        answer = await self.same.ask(program)
        if answer is None and self.words:
            seen = await self.same.worker.execute(program, "refused", coverage=False)
            return False if refusal(seen) == self.words else None
        return answer


def refusal(seen: Observation) -> str:
    """Type and message, without its numbers, of what eager raised; "" where it raised nothing."""
    fault = seen.fault("eager") or seen.fault("eager_backward")
    return f"{fault.type}: {normalise(fault.message)}" if fault else ""
