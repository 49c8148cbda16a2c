"""A plan says what one program should be; an outcome says what became of it. Both are plain data for the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

ENGINES = ("template", "mutate", "llm")

#: The mutation that needs a second seed.
SPLICE = "splice"


@dataclass(frozen=True)
class Plan:
    """One order to an engine."""

    number: int  # 1, 2, 3 … in the order of decisions
    engine: str  # one of ENGINES
    operator: str = ""  # name of the mutation, or arm of the language model ("fresh:steps"); "" for the template engine
    seed: str = ""  # id of the program to mutate, or that the model was shown
    donor: str = ""  # id of the second program of a splice
    features: tuple[str, ...] = ()  # ids asked for; what is realised is another matter
    families: tuple[str, ...] = ()  # operator families to draw from, the most wanted first
    target: int = 0  # index of the target that runs it
    random: int = 0  # seeds the program's own stream, below 2**62

    def __post_init__(self) -> None:
        assert self.engine in ENGINES, self.engine
        assert bool(self.operator) == (self.engine != "template"), self
        assert self.engine == "llm" or bool(self.seed) == (self.engine == "mutate"), self
        assert bool(self.donor) == (self.operator == SPLICE), self

    @property
    def writer(self) -> str:
        """Who writes the program, as findings and seeds name it: ``template``, ``mutate:insert_view``, …"""
        return f"{self.engine}:{self.operator}" if self.operator else self.engine

    def to_map(self) -> dict[str, Any]:
        return _plain(asdict(self))

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Plan:
        """Read a map written by ``to_map``; keys of a newer version are ignored."""
        return cls(**_known(cls, data, {"features": tuple, "families": tuple}))


@dataclass(frozen=True)
class Order:
    """What the language model is asked to write; it becomes a plan when a worker takes the answer up."""

    number: int  # 1, 2, 3 … in the order of decisions
    arm: str  # "family:form", such as "fresh:steps"
    features: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    seed: str = ""  # id of the program that the model is shown
    random: int = 0  # seeds what is drawn for the prompt, below 2**62

    @property
    def family(self) -> str:
        return self.arm.partition(":")[0]

    @property
    def form(self) -> str:
        return self.arm.partition(":")[2]

    def to_map(self) -> dict[str, Any]:
        return _plain(asdict(self))

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Order:
        return cls(**_known(cls, data, {"features": tuple, "families": tuple}))


@dataclass(frozen=True)
class Outcome:
    """What the loop learns from. Everything in it was observed, never hoped for."""

    plan: Plan
    kind: str  # value of ``fuzzer.verdict.Kind``
    reward: float  # 0 … 1, see ``reward``
    cost: float  # seconds; 1.0 where the clock is switched off
    realised: frozenset[str] = frozenset()
    operators: tuple[str, ...] = ()  # keys of catalogue operators that ran
    new_coverage: dict[str, int] = field(default_factory=dict)  # domain → ids never seen before
    new_finding: bool = False
    program: str = ""  # id of the program that ran; the neighbourhood of a finding is explored from it
    bucket: str = ""  # major signature of a suspect; "" for none. Crowded buckets are blockers
    tokens: int = 0  # of the language model, spent on the program
    entries: tuple[str, ...] = ()  # ids of bug patterns and subgraphs in it, whose features were realised
    species: tuple[str, ...] = ()  # always observable keys (kernel classes), for the discovery estimate

    def to_map(self) -> dict[str, Any]:
        data = _plain({name: getattr(self, name) for name in self.__dataclass_fields__ if name != "plan"})
        return {"plan": self.plan.to_map(), **data}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Outcome:
        return cls(
            **_known(
                cls,
                data,
                {"plan": Plan.from_map, "realised": frozenset, "operators": tuple, "entries": tuple, "species": tuple},
            )
        )


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value
        for key, value in data.items()
    }


def _known(cls: Any, data: Mapping[str, Any], convert: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: convert[key](value) if key in convert else value
        for key, value in data.items()
        if key in cls.__dataclass_fields__
    }
