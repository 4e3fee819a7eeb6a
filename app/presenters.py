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
from app.state import Answering, AppState, Owner, Process, Turn
from app.words import Tr, end_of_pause, model_name, progress_words, share_of, size
from engine.core.plans import Span
from engine.localapi.schema import EngineState, EngineStatus, PauseRequest

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
    """What the tray and the home window show."""

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
    quit: Action
    facts: tuple[tuple[str, str], ...]
    """Labelled numbers for the home window."""


@dataclass(frozen=True, slots=True)
class ChatView:
    """What the chat window shows beside the turns themselves."""

    icon: Icon
    title: str
    subtitle: str
    turns: tuple[Turn, ...]
    can_send: bool
    can_stop: bool
    notice: str
    """Why nothing can be asked now; empty when it can."""
    progress: float | None
    """0 to 1, or below 0 when the end is not known; None: nothing is in progress."""
    resume: Action
    start: Action
    failure: str
    """Why the newest answer failed; empty when it has not."""
    live_line: str
    placeholder: str
    welcome: str
    """Who reads the messages, for the empty conversation."""


def overview(state: AppState, now: datetime, tr: Tr) -> Overview:
    """The state for tray and home window; `now` carries the local time zone."""
    icon, headline, detail = _state_words(state, now, tr)
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
            tr("&Keep serving") if _is(status, EngineState.DRAINING) else tr("&Resume"),
            visible=_is(status, EngineState.PAUSED) or _is(status, EngineState.DRAINING),
            enabled=free,
        ),
        start=Action(
            tr("&Try again") if state.process_note else tr("&Start the engine"),
            visible=state.process is Process.STOPPED,
            enabled=not state.quitting,
        ),
        chat=Action(tr("&Open chat"), enabled=not state.quitting),
        quit=Action(
            tr("&Quit (engine keeps running)") if stays else tr("&Quit Shoal"),
            enabled=not state.quitting,
        ),
        facts=_facts(status, tr) if status else (),
    )


def chat_view(state: AppState, now: datetime, tr: Tr) -> ChatView:
    """The state for the chat window."""
    icon, headline, detail = _state_words(state, now, tr)
    status = state.status if state.linked else None
    chat = state.chat
    answering = chat.answering is not Answering.NOT
    ready = status is not None and status.can_chat and not state.quitting
    notice = "" if ready or answering else _why_closed(state, headline, detail, tr)
    paused = _is(status, EngineState.PAUSED)
    return ChatView(
        icon=icon,
        title=model_name(status.model) if status and status.model else "Shoal",
        subtitle=headline,
        turns=chat.turns,
        can_send=ready and not answering,
        can_stop=answering,
        notice=notice,
        progress=_progress_share(state) if notice else None,
        resume=Action(tr("Resume"), visible=bool(notice) and paused, enabled=state.command is None),
        start=Action(tr("Try again"), visible=bool(notice) and state.process is Process.STOPPED),
        failure=chat.failure.message if chat.failure else "",
        live_line=_live_line(state, tr),
        placeholder=tr("Ask anything") if ready else tr("You can type now and send later"),
        welcome=_who_reads(status, tr),
    )


def _pauses(status: EngineStatus | None, tr: Tr) -> tuple[PauseChoice, ...]:
    """The ways to pause that make sense now; a pause outranks yielding, so it is offered then too."""
    if status is None or status.state is EngineState.PAUSED:
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


def _state_words(state: AppState, now: datetime, tr: Tr) -> tuple[Icon, str, str]:
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
    match status.state:
        case EngineState.STARTING:
            headline = progress_words(status.progress) if status.progress else tr("Getting ready…")
            return Icon.STARTING, headline, status.reason
        case EngineState.SERVING:
            return Icon.SERVING, _held(tr("Serving"), status, tr), status.reason
        case EngineState.IDLE:
            return Icon.IDLE, _held(tr("Ready with"), status, tr), status.reason
        case EngineState.DRAINING:
            headline = (
                tr("Finishing 1 session, then pausing")
                if status.sessions == 1
                else tr("Finishing {count} sessions, then pausing").format(count=status.sessions)
            )
            return Icon.DRAINING, headline, status.reason
        case EngineState.PAUSED:
            headline = tr("Paused {end}").format(end=end_of_pause(status.until, now, tr))
            says_the_same = status.reason.rstrip(".").casefold() == headline.casefold()
            return Icon.PAUSED, headline, "" if says_the_same else status.reason
        case EngineState.YIELDING:
            return Icon.YIELDING, _yielding(status, now, tr), status.reason
        case EngineState.OFFLINE:
            return Icon.OFFLINE, tr("Offline: no connection to the swarm"), status.reason
        case EngineState.ERROR:
            return Icon.ERROR, tr("Shoal cannot serve"), status.reason
        case _:
            assert_never(status.state)


def _yielding(status: EngineStatus, now: datetime, tr: Tr) -> str:
    if status.until is None:
        return tr("Yielding to you for now")
    return tr("Yielding {end}").format(end=end_of_pause(status.until, now, tr))


def _held(verb: str, status: EngineStatus, tr: Tr) -> str:
    model = model_name(status.model) if status.model else tr("the model")
    if status.span is None:
        return f"{verb} {model}"
    if status.span == (0, status.num_blocks):
        return tr("{verb} all {count} blocks of {model}").format(
            verb=verb, count=status.num_blocks, model=model
        )
    return tr("{verb} blocks {span} of {model}").format(
        verb=verb, span=Span(*status.span), model=model
    )


def _progress_share(state: AppState) -> float | None:
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


def _live_line(state: AppState, tr: Tr) -> str:
    chat = state.chat
    where: list[str] = []
    if state.status is not None:
        if state.status.model:
            where.append(model_name(state.status.model))
        where.append(_through(state.status, tr))
    if chat.answering is Answering.WAITING:
        return " · ".join([tr("Waiting for the first token…"), *where])
    if not chat.tokens:
        return " · ".join(where)
    numbers = [tr("1 token") if chat.tokens == 1 else tr("{n} tokens").format(n=chat.tokens)]
    if chat.tokens_per_s > 0:
        numbers.insert(0, tr("{rate} tokens/s").format(rate=f"{chat.tokens_per_s:.1f}"))
    return " · ".join([*numbers, *where])


def _through(status: EngineStatus, tr: Tr) -> str:
    if status.swarm is None:
        return tr("solo")
    if len(status.plan) > 1:
        return tr("{swarm}, {n} stages").format(swarm=status.swarm, n=len(status.plan))
    return status.swarm


def _why_closed(state: AppState, headline: str, detail: str, tr: Tr) -> str:
    """Why nothing can be asked now."""
    status = state.status if state.linked and not state.quitting else None
    if status is not None and status.state in (EngineState.IDLE, EngineState.SERVING):
        if status.swarm is None:
            return tr("Almost ready…")
        return tr(
            "Nobody holds some of the model's blocks now. The chat opens when a node with them joins."
        )
    return _sentence(headline, detail)


def _who_reads(status: EngineStatus | None, tr: Tr) -> str:
    if status is not None and status.swarm is None:
        return tr("The model runs on this computer alone: your messages do not leave it.")
    return tr(
        "Your message travels through the computers that hold the model. "
        "They must read it to answer, so do not write secrets here."
    )


def _facts(status: EngineStatus, tr: Tr) -> tuple[tuple[str, str], ...]:
    facts = [
        (tr("Swarm"), status.swarm or tr("none: solo on this computer")),
        (tr("Sessions now"), f"{status.sessions:,}"),
        (tr("Tokens served"), f"{status.tokens_served:,}"),
        (tr("Tokens used"), f"{status.tokens_used:,}"),
    ]
    if status.swarm is not None:
        facts.insert(1, (tr("Other nodes"), f"{status.peers:,}"))
    if status.worker_rss_bytes:
        facts.append((tr("Memory in use"), size(status.worker_rss_bytes)))
    return tuple(facts)


def _sentence(headline: str, detail: str) -> str:
    return (
        f"{headline}. {detail}"
        if detail and not headline.endswith("…")
        else (f"{headline} {detail}".strip())
    )


def _is(status: EngineStatus | None, state: EngineState) -> bool:
    return status is not None and status.state is state
