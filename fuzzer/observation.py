"""An observation: the facts of one execution, read from the wire. No judgement lives here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: ``End.why`` of a program under which a second, fresh fork server died as well begins so: its doing, not ours.
ENDED_TWICE = "the program ended its fork server twice"


@dataclass(frozen=True)
class Fault:
    """An exception as the child saw it. ``frames`` are ``file:function``, outermost first; ``line`` is the program's
    own line that was running, 0 where none is known."""

    type: str
    message: str
    cause_type: str = ""
    cause_message: str = ""
    frames: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Stage:
    """One stage that began. ``seconds`` is wall time, ``cpu`` processor time of the child and its own children."""

    name: str
    seconds: float
    cpu: float
    fault: Fault | None = None


@dataclass(frozen=True)
class End:
    """How the child ended: done | signal | exit | timeout | memory | processes | output | files | lost."""

    how: str = "done"
    signal: int = 0
    status: int = 0
    stage: str = ""
    why: str = ""


@dataclass(frozen=True)
class Observation:
    """Everything that one execution showed. ``raw`` keeps the wire's map (see ``harness.wire.ObservationMap``)."""

    id: str
    variant: str
    stages: tuple[Stage, ...]
    end: End
    leaves: tuple[dict[str, Any], ...] = ()
    self_leaves: tuple[dict[str, Any], ...] = ()
    second_leaves: tuple[dict[str, Any], ...] = ()
    ops: tuple[dict[str, Any], ...] = ()
    coverage: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_map(cls, message: dict[str, Any]) -> Observation:
        """Read the wire's map; missing keys take their empty value, unknown keys stay in ``raw``."""
        return cls(
            id=str(message.get("id", "")),
            variant=str(message.get("variant", "")),
            stages=tuple(_stage(item) for item in message.get("stages", ())),
            end=End(**{key: value for key, value in message.get("end", {}).items() if key in End.__annotations__}),
            leaves=tuple(message.get("leaves", ())),
            self_leaves=tuple(message.get("self_leaves", ())),
            second_leaves=tuple(message.get("second_leaves", ())),
            ops=tuple(message.get("ops", ())),
            coverage=message.get("coverage", {}),
            seconds=float(message.get("seconds", 0.0)),
            cpu=float(message.get("cpu", 0.0)),
            raw=message,
        )

    def stage(self, name: str) -> Stage | None:
        """The stage of that name, or None when it never began."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def fault(self, name: str) -> Fault | None:
        stage = self.stage(name)
        return stage.fault if stage else None

    @property
    def log(self) -> str:
        return str(self.raw.get("log", ""))

    @property
    def operators(self) -> list[str]:
        """Names of the operators that ran eagerly, in order, e.g. ``aten.add.Tensor``."""
        return [str(op["op"]) for op in self.ops]


def _stage(item: dict[str, Any]) -> Stage:
    fault = item.get("fault")
    return Stage(
        name=item["name"],
        seconds=float(item.get("seconds", 0.0)),
        cpu=float(item.get("cpu", 0.0)),
        fault=Fault(
            type=fault.get("type", ""),
            message=fault.get("message", ""),
            cause_type=fault.get("cause_type", ""),
            cause_message=fault.get("cause_message", ""),
            frames=tuple(fault.get("frames", ())),
            line=int(fault.get("line", 0)),
        )
        if fault
        else None,
    )
