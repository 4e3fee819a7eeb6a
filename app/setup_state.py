"""What the first steps and the settings know, and how each message changes it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from app.setup_messages import (
    ChangeAsked,
    ChangeDone,
    ChangeFailed,
    InviteGiven,
    KeptModelsArrived,
    MachineMeasured,
    MeasuringBegan,
    MeasuringFailed,
    PlanArrived,
    PlanFailed,
    SettingsArrived,
    SetupMessage,
    SwarmArrived,
)
from engine.localapi.measurements import MeasuredProfile
from engine.localapi.schema import SwarmInfo
from engine.localapi.settings import KeptModels, Settings
from engine.localapi.setup import PlanPreview


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that the first steps and the settings draw, beside the engine's status."""

    invite: str = ""
    """From a link or file that was opened, until it is used or refused."""
    measuring: bool = False
    profile: MeasuredProfile | None = None
    measuring_error: str = ""
    preview: PlanPreview | None = None
    preview_error: str = ""
    changing: bool = False
    change_error: str = ""
    note: str = ""
    """What the last change has led to."""
    swarm: SwarmInfo | None = None
    settings: Settings | None = None
    kept: KeptModels | None = None


def apply_to_setup(setup: Setup, message: SetupMessage) -> Setup:
    """The state after `message`."""
    match message:
        case InviteGiven(text):
            return replace(setup, invite=text, change_error="")
        case MeasuringBegan():
            return replace(setup, measuring=True, measuring_error="")
        case MachineMeasured(profile):
            return replace(setup, measuring=False, profile=profile, measuring_error="")
        case MeasuringFailed(reason):
            return replace(setup, measuring=False, measuring_error=reason)
        case PlanArrived(preview):
            return replace(setup, preview=preview, preview_error="")
        case PlanFailed(reason):
            return replace(setup, preview_error=reason)
        case ChangeAsked():
            return replace(setup, changing=True, change_error="", note="")
        case ChangeDone(note):
            return replace(setup, changing=False, change_error="", note=note)
        case ChangeFailed(reason):
            return replace(setup, changing=False, change_error=reason)
        case SwarmArrived(swarm):
            return replace(setup, swarm=swarm)
        case SettingsArrived(settings):
            return replace(setup, settings=settings)
        case KeptModelsArrived(kept):
            return replace(setup, kept=kept)
        case _:
            assert_never(message)
