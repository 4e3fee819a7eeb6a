"""What can happen while somebody sets Shoal up or changes its settings, as frozen values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.localapi.measurements import MeasuredProfile
from engine.localapi.schema import SwarmInfo
from engine.localapi.settings import KeptModels, Settings
from engine.localapi.setup import PlanPreview


@dataclass(frozen=True, slots=True)
class InviteGiven:
    """A link or file was opened; empty: it has been dealt with."""

    text: str


@dataclass(frozen=True, slots=True)
class MeasuringBegan:
    """The engine measures this machine."""


@dataclass(frozen=True, slots=True)
class MachineMeasured:
    """What is known of this machine; None: nothing yet."""

    profile: MeasuredProfile | None


@dataclass(frozen=True, slots=True)
class MeasuringFailed:
    """It was not measured."""

    reason: str


@dataclass(frozen=True, slots=True)
class PlanArrived:
    """What the node would hold under the settings that were asked about last."""

    preview: PlanPreview


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """That cannot be told."""

    reason: str


@dataclass(frozen=True, slots=True)
class ChangeAsked:
    """Something is on its way: settings, another swarm, a beginning."""


@dataclass(frozen=True, slots=True)
class ChangeDone:
    """The engine has obeyed."""

    note: str = ""
    """What to tell the person, beyond what changes before their eyes."""


@dataclass(frozen=True, slots=True)
class ChangeFailed:
    """The engine has not obeyed."""

    reason: str


@dataclass(frozen=True, slots=True)
class SwarmArrived:
    """The swarm that the engine belongs to."""

    swarm: SwarmInfo


@dataclass(frozen=True, slots=True)
class SettingsArrived:
    """All settings of the engine."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class KeptModelsArrived:
    """The models on this computer's disk."""

    kept: KeptModels


SetupMessage = (
    InviteGiven
    | MeasuringBegan
    | MachineMeasured
    | MeasuringFailed
    | PlanArrived
    | PlanFailed
    | ChangeAsked
    | ChangeDone
    | ChangeFailed
    | SwarmArrived
    | SettingsArrived
    | KeptModelsArrived
)
