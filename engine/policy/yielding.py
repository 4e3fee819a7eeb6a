"""Whether the stage runs or yields: begins soon, ends late, and never flickers.

`step` takes the memory of what was and a reading, and returns the new memory, whose `decision` the
agent obeys. A person's own pause is not decided here: it outranks all of this (`engine.node.rest`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.config import GuestConfig
from engine.core.sentences import Sentence
from engine.policy.causes import Cause, Kind, first_cause
from engine.policy.readings import Reading

CONFIRM_S = 1.5
"""A load, shortage or heat that is gone again so soon was none."""
WINDOW_S = 600.0
MAX_FLIPS = 4
"""Beginnings and ends of yields within any such window."""

_SUDDEN = (Kind.FULL_SCREEN, Kind.GPU_MEMORY, Kind.TEMPERATURE)
_EXACT = (Kind.SCHEDULE, Kind.USER)
"""Ends that need no quiet period: the clock is sure, and being idle is a quiet period itself."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and what to tell the person."""

    runs: bool
    reason: str = ""
    until_unix_s: float | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What the policy remembers between two readings."""

    cause: Cause | None = None
    """What we yield to, or have until now; None: we run."""
    suspected_since_s: float | None = None
    clear_since_s: float | None = None
    resume_at_s: float | None = None
    """When the stage runs again if nothing new comes up."""
    held_bytes: int = 0
    """GPU memory that we held before we yielded."""
    flips_s: tuple[float, ...] = ()
    """When yields began and ended, within the window."""


def step(memory: Memory, reading: Reading, rules: GuestConfig) -> Memory:
    """Take one more reading into account."""
    now_s = reading.monotonic_s
    flips_s = tuple(flip_s for flip_s in memory.flips_s if now_s - flip_s < WINDOW_S)
    memory = replace(memory, flips_s=flips_s)
    current = None if memory.cause is None else memory.cause.kind
    cause = first_cause(reading, rules, current, memory.held_bytes)
    if memory.cause is None:
        return _running(memory, cause, reading)
    if cause is not None:
        return replace(memory, cause=cause, clear_since_s=None, resume_at_s=None)
    clear_since_s = now_s if memory.clear_since_s is None else memory.clear_since_s
    quiet_s = 0.0 if memory.cause.kind in _EXACT else rules.quiet_s
    resume_at_s = max(clear_since_s + quiet_s, _earliest_resume_s(flips_s))
    if now_s >= resume_at_s:
        return Memory(flips_s=(*flips_s, now_s))
    return replace(memory, clear_since_s=clear_since_s, resume_at_s=resume_at_s)


def decision(memory: Memory, reading: Reading) -> Decision:
    """What follows from `step`."""
    cause = memory.cause
    if cause is None:
        return Decision(runs=True)
    if memory.resume_at_s is None:
        return Decision(False, cause.reason, cause.until_unix_s, cause.kind)
    until_unix_s = reading.unix_s + memory.resume_at_s - reading.monotonic_s
    # Told to the second that was reckoned first: it must not tremble with every reading.
    return Decision(
        False,
        cause.reason.then(Sentence("That is over, so Shoal resumes soon.")),
        round(until_unix_s),
        cause.kind,
    )


def _running(memory: Memory, cause: Cause | None, reading: Reading) -> Memory:
    if cause is None:
        return replace(memory, suspected_since_s=None)
    now_s = reading.monotonic_s
    since_s = now_s if memory.suspected_since_s is None else memory.suspected_since_s
    if cause.kind in _SUDDEN and now_s - since_s < CONFIRM_S:
        return replace(memory, suspected_since_s=since_s)
    held_bytes = 0 if reading.gpu is None else reading.gpu.ours_bytes or 0
    return Memory(cause=cause, held_bytes=held_bytes, flips_s=(*memory.flips_s, now_s))


def _earliest_resume_s(flips_s: tuple[float, ...]) -> float:
    """When running again leaves room in the window for the next yield, which must never wait."""
    too_many = len(flips_s) - (MAX_FLIPS - 2)
    return flips_s[too_many - 1] + WINDOW_S if too_many > 0 else 0.0
