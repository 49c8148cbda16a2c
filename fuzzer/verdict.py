"""A verdict: the judgement made from observations by pure code. Can be recomputed from stored observations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Kind(str, Enum):
    """Outcome kinds. The order within a group carries no meaning; ``is_fault`` separates the groups."""

    INVALID = "invalid"  # both sides refuse: the program is at fault
    PASS = "pass"
    UNSUPPORTED = "unsupported"  # documented limits: not a bug
    FLAKY = "flaky"  # seen, but not in every fresh process; or eager differs from itself
    HARNESS_ERROR = "harness_error"  # ours: counted, alarmed, never a finding
    WRONG_VALUE = "wrong_value"
    WRONG_GRADIENT = "wrong_gradient"
    WRONG_MUTATION = "wrong_mutation"  # inputs or buffers after the call
    METADATA = "metadata"  # dtype, shape, requires_grad, promised stride, aliasing
    COMPILE_ERROR = "compile_error"
    MISSING_CHECK = "missing_check"  # compiled accepts what eager refuses
    EXTRA_CHECK = "extra_check"  # compiled refuses, at run time, what eager accepts
    CRASH = "crash"
    EAGER_CRASH = "eager_crash"
    EAGER_INTERNAL_ASSERT = "eager_internal_assert"
    HANG = "hang"
    SLOW_COMPILE = "slow_compile"

    @property
    def is_fault(self) -> bool:
        """True for kinds that make a suspect, and a finding once confirmed."""
        return self not in _NOT_FAULTS


_NOT_FAULTS = frozenset({Kind.INVALID, Kind.PASS, Kind.UNSUPPORTED, Kind.FLAKY, Kind.HARNESS_ERROR})


@dataclass(frozen=True)
class Verdict:
    """One judgement.

    ``stage`` is where the fault showed; ``reason`` one line for a person; ``debatable`` names why maintainers may
    call a real difference intended (empty: not debatable); ``gates`` are (gate, outcome) pairs in the order in which
    they were applied, outcome being "kept", "dismissed: why" or "not run: why".
    """

    kind: Kind
    stage: str = ""
    reason: str = ""
    debatable: str = ""
    gates: tuple[tuple[str, str], ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def is_suspect(self) -> bool:
        return self.kind.is_fault
