"""From state to words, colours and icon names.

Pure: no Qt. Translation comes in as a function, so that these texts pass through `tr()` like those
of the windows. Texts address a volunteer: what is going on, why, and what can be done.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from app.messages import Command
from app.state import AppState, Owner, Process
from app.words import (
    Tr,
    counted,
    end_of_pause,
    in_words,
    model_name,
    number,
    progress_words,
    share_of,
    size,
)
from engine.core.plans import Span
from engine.localapi.schema import EngineState, EngineStatus, PauseRequest
from engine.localapi.updates import UpdateStep

HOUR_S = 3600.0


class Icon(StrEnum):
    """File names in `app/icons`, without `.svg`."""

    SERVING = "serving"
    IDLE = "idle"
    PAUSED = "paused"
    YIELDING = "yielding"
    STARTING = "starting"
    DRAINING = "draining"
    OFFLINE = "offline"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Action:
    """A menu entry or button."""

    label: str
    visible: bool = True
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class PauseChoice:
    """One way to pause."""

    label: str
    request: PauseRequest


@dataclass(frozen=True, slots=True)
class Overview:
    """What the tray, the home window and the dashboard's head show."""

    icon: Icon
    headline: str
    """The state in a few words."""
    detail: str
    """Its reason, or what it is good for; may be empty."""
    tooltip: str
    pause: Action
    """The control as a whole."""
    pauses: tuple[PauseChoice, ...]
    """What it offers; none while no pause can begin."""
    resume: Action
    start: Action
    chat: Action
    dashboard: Action
    batches: Action
    settings: Action
    update: Action
    """To a new version."""
    quit: Action
    facts: tuple[tuple[str, str], ...]
    """Labelled numbers for the home window."""


def overview(state: AppState, now: datetime, tr: Tr) -> Overview:
    """The state for tray and home window; `now` carries the local time zone."""
    icon, headline, detail = state_words(state, now, tr)
    if state.command_error:
        detail = state.command_error
    status = state.status if state.linked else None
    free = state.command is None and not state.quitting
    pauses = _pauses(status, tr)
    stays = state.owner is Owner.FOUND and not (status is not None and status.leased)
    return Overview(
        icon=icon,
        headline=headline,
        detail=detail,
        tooltip="\n".join(filter(None, ("Shoal", headline, detail))),
        pause=Action(tr("&Pause"), visible=bool(pauses), enabled=free),
        pauses=pauses,
        resume=Action(
            tr("&Keep serving") if is_in(status, EngineState.DRAINING) else tr("&Resume"),
            visible=is_in(status, EngineState.PAUSED) or is_in(status, EngineState.DRAINING),
            enabled=free,
        ),
        start=Action(
            tr("&Try again") if state.process_note else tr("&Start the engine"),
            visible=state.process is Process.STOPPED,
            enabled=not state.quitting,
        ),
        chat=Action(tr("&Open chat"), enabled=not state.quitting),
        dashboard=Action(tr("Open &dashboard"), enabled=not state.quitting),
        batches=Action(tr("Open &batches"), enabled=not state.quitting),
        settings=Action(tr("Setti&ngs"), enabled=not state.quitting),
        update=_update(status, tr),
        quit=Action(
            tr("&Quit (engine keeps running)") if stays else tr("&Quit Shoal"),
            enabled=not state.quitting,
        ),
        facts=_facts(status, tr) if status else (),
    )


def _update(status: EngineStatus | None, tr: Tr) -> Action:
    info = None if status is None else status.update
    if info is None or info.step not in (UpdateStep.AVAILABLE, UpdateStep.READY):
        return Action("", visible=False)
    return Action(tr("&Update to Shoal {version}").format(version=info.version))


def _pauses(status: EngineStatus | None, tr: Tr) -> tuple[PauseChoice, ...]:
    """The ways to pause that make sense now; a pause outranks yielding, so it is offered then too."""
    if status is None or status.state is EngineState.PAUSED or status.awaits_setup:
        return ()
    until_resumed = PauseRequest()
    if status.state is EngineState.DRAINING:
        return (PauseChoice(tr("&Pause now"), until_resumed),)
    choices = [
        PauseChoice(tr("Pause for 1 &hour"), PauseRequest(seconds=HOUR_S)),
        PauseChoice(tr("Pause until &tomorrow"), PauseRequest(until_tomorrow=True)),
        PauseChoice(tr("&Pause until I resume"), until_resumed),
        PauseChoice(tr("&Finish, then pause"), PauseRequest(finish_first=True)),
    ]
    if status.swarm is not None:
        choices.append(
            PauseChoice(tr("Pause &everything, chat too"), PauseRequest(scope="everything"))
        )
    return tuple(choices)


def state_words(state: AppState, now: datetime, tr: Tr) -> tuple[Icon, str, str]:
    """Icon, headline and detail."""
    if state.quitting:
        return Icon.DRAINING, tr("Stopping…"), ""
    if state.process is Process.STOPPED:
        return Icon.ERROR, tr("The engine is not running"), state.process_note
    if state.process is Process.RESTARTING:
        return Icon.STARTING, tr("Restarting the engine…"), state.process_note
    if not state.linked:
        if state.status is not None:
            return Icon.OFFLINE, tr("Reconnecting to the engine…"), state.link_note
        return Icon.STARTING, tr("Starting the engine…"), ""
    assert state.status is not None
    if state.command is Command.PAUSE:
        return Icon.DRAINING, tr("Pausing…"), ""
    if state.command is Command.RESUME:
        return Icon.STARTING, tr("Resuming…"), ""
    return _status_words(state.status, now, tr)


def _status_words(status: EngineStatus, now: datetime, tr: Tr) -> tuple[Icon, str, str]:
    if status.awaits_setup and status.progress is None:
        return Icon.IDLE, tr("Not set up yet"), tr("Open Shoal to choose how it begins.")
    reason = in_words(status.reason_said, status.reason, tr)
    match status.state:
        case EngineState.STARTING:
            headline = (
                progress_words(status.progress, tr) if status.progress else tr("Getting ready…")
            )
            return Icon.STARTING, headline, reason
        case EngineState.SERVING:
            return Icon.SERVING, _serving(status, tr), reason
        case EngineState.IDLE:
            return Icon.IDLE, _ready(status, tr), reason
        case EngineState.DRAINING:
            headline = counted(
                status.sessions,
                tr("Finishing {n} session, then pausing|Finishing {n} sessions, then pausing"),
                tr,
            )
            return Icon.DRAINING, headline, reason
        case EngineState.PAUSED:
            headline = tr("Paused {end}").format(end=end_of_pause(status.until, now, tr))
            says_the_same = reason.rstrip(".").casefold() == headline.casefold()
            return Icon.PAUSED, headline, "" if says_the_same else reason
        case EngineState.YIELDING:
            return Icon.YIELDING, _yielding(status, now, tr), reason
        case EngineState.OFFLINE:
            return Icon.OFFLINE, tr("Offline: no connection to the swarm"), reason
        case EngineState.ERROR:
            return Icon.ERROR, tr("Shoal cannot serve"), reason
        case _:
            assert_never(status.state)


def _yielding(status: EngineStatus, now: datetime, tr: Tr) -> str:
    if status.until is None:
        return tr("Yielding to you for now")
    return tr("Yielding {end}").format(end=end_of_pause(status.until, now, tr))


def _serving(status: EngineStatus, tr: Tr) -> str:
    if status.span is None:
        text = tr("Serving {model}")
    elif status.span == (0, status.num_blocks):
        text = tr("Serving all {count} blocks of {model}")
    else:
        text = tr("Serving blocks {span} of {model}")
    return _held(text, status, tr)


def _ready(status: EngineStatus, tr: Tr) -> str:
    if status.span is None:
        text = tr("Ready with {model}")
    elif status.span == (0, status.num_blocks):
        text = tr("Ready with all {count} blocks of {model}")
    else:
        text = tr("Ready with blocks {span} of {model}")
    return _held(text, status, tr)


def _held(text: str, status: EngineStatus, tr: Tr) -> str:
    model = model_name(status.model) if status.model else tr("the model")
    span = "" if status.span is None else Span(*status.span)
    return text.format(count=status.num_blocks, span=span, model=model)


def progress_share(state: AppState) -> float | None:
    """How far what goes on is, 0 to 1; below 0: the end is not known; None: nothing goes on."""
    if state.process is Process.STOPPED:
        return None
    if not state.linked or state.status is None:
        return -1.0
    if state.status.state in (EngineState.IDLE, EngineState.SERVING):
        return -1.0
    if state.status.state is not EngineState.STARTING:
        return None
    progress = state.status.progress
    return share_of(progress) if progress and progress.total > 0 else -1.0


def _facts(status: EngineStatus, tr: Tr) -> tuple[tuple[str, str], ...]:
    facts = [
        (tr("Swarm"), status.swarm or tr("none: solo on this computer")),
        (tr("Sessions now"), number(status.sessions, tr)),
        (tr("Tokens served"), number(status.tokens_served, tr)),
        (tr("Tokens used"), number(status.tokens_used, tr)),
    ]
    if status.swarm is not None:
        facts.insert(1, (tr("Other nodes"), number(status.peers, tr)))
    if status.worker_rss_bytes:
        facts.append((tr("Memory in use"), size(status.worker_rss_bytes, tr)))
    return tuple(facts)


def sentence(headline: str, detail: str) -> str:
    """Both as one line."""
    return (
        f"{headline}. {detail}"
        if detail and not headline.endswith("…")
        else (f"{headline} {detail}".strip())
    )


def is_in(status: EngineStatus | None, state: EngineState) -> bool:
    """Whether the engine is known to be in `state`."""
    return status is not None and status.state is state
