"""Setting the engine's environment up, before there is an engine to talk to: what is known of it.

`shoal-setup` tells an object a line (see `installers/setup_steps/engine_setup.py`). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError


class Phase(StrEnum):
    """How far it is."""

    LOOKING = "looking"
    OFFERED = "offered"
    WORKING = "working"
    STOPPING = "stopping"
    FAILED = "failed"
    READY = "ready"


class Offer(BaseModel):
    """What setting up would take, as `shoal-setup check --json` says."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    ready: bool
    folder: str
    case: str
    """Why this build of PyTorch: `card`, `no_card`, `no_driver`, `old_driver`, `old_card`."""
    driver: str
    """The oldest one that can be used."""
    download_bytes: int
    needed_bytes: int
    free_bytes: int
    problem: str
    """Why it cannot be done now, as a sentence; empty when it can."""


class Told(BaseModel):
    """A line of `shoal-setup install --json`; one of these is there."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: str | None = None
    progress: str | None = None
    share: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Preparation:
    """All that the window shows."""

    phase: Phase = Phase.LOOKING
    offer: Offer | None = None
    step: str = ""
    share: float | None = None
    """Of the step, 0 to 1; None while that is not known."""
    problem: str = ""


def offered(before: Preparation, line: str) -> Preparation:
    """After `check` has answered."""
    try:
        offer = Offer.model_validate_json(line)
    except ValidationError:
        return replace(before, phase=Phase.FAILED, problem=line.strip()[:500])
    if offer.ready:
        return Preparation(Phase.READY, offer)
    if offer.problem:
        return Preparation(Phase.FAILED, offer, problem=offer.problem)
    return Preparation(Phase.OFFERED, offer)


def told(before: Preparation, line: str) -> Preparation:
    """After `install` has said something."""
    try:
        said = Told.model_validate_json(line)
    except ValidationError:  # something that a library has printed
        return before
    if said.problem is not None:
        return replace(before, problem=said.problem)
    if said.step is not None:
        return replace(before, step=said.step, share=None)
    return before if said.progress is None else replace(before, share=said.share)


def ended(before: Preparation, *, well: bool) -> Preparation:
    """After `install` has ended."""
    if well:
        return replace(before, phase=Phase.READY)
    if before.phase is Phase.STOPPING and not before.problem:
        return replace(before, phase=Phase.OFFERED, step="", share=None)
    return replace(before, phase=Phase.FAILED, step="", share=None)
