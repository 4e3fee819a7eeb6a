"""From what is known of conversations to what the chat window shows.

Pure: no Qt, no clock. Translation comes in as a function.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.chat_state import Answering, Chat, Chats
from app.presenters import Action, Icon, is_in, progress_share, sentence, state_words
from app.state import AppState, Process
from app.words import Tr, counted, day_words, in_words, model_name, number
from engine.core.reach import LinkPath
from engine.localapi.chats import (
    ChatSettings,
    DraftingInfo,
    Ending,
    Message,
    Preset,
    Privacy,
    Speaker,
)
from engine.localapi.schema import EngineState, EngineStatus


@dataclass(frozen=True, slots=True)
class Row:
    """One conversation in the list."""

    id: int
    title: str
    detail: str
    """When it was changed, or where the search has found it."""
    answering: bool


@dataclass(frozen=True, slots=True)
class SidebarView:
    """The list of conversations."""

    rows: tuple[Row, ...]
    selected: int | None
    more: bool
    empty: str
    """Why there is none; empty when there are some."""
    undo: str
    """What was deleted just now; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Badge:
    """Who can read the messages, in a word and in a sentence."""

    privacy: Privacy
    label: str
    explanation: str


@dataclass(frozen=True, slots=True)
class ChatView:
    """What the chat window shows beside the list."""

    icon: Icon
    chat: int | None
    title: str
    subtitle: str
    model: str
    turns: tuple[Message, ...]
    more: bool
    opening: bool
    can_send: bool
    can_stop: bool
    can_change: bool
    """Whether questions can be edited, answers repeated, branches switched."""
    can_continue: bool
    notice: str
    """Why nothing can be asked now; empty when it can."""
    progress: float | None
    """0 to 1, or below 0 when the end is not known; None: nothing is in progress."""
    resume: Action
    start: Action
    failure: str
    """Why the last thing that was wanted did not happen."""
    can_retry: bool
    live_line: str
    path: str
    """The stages that an answer goes through, for whoever asks."""
    badge: Badge | None
    context_line: str
    context_is_full: bool
    placeholder: str
    welcome: str
    """Who reads the messages, for the empty conversation."""
    said: int
    settings: ChatSettings
    presets: tuple[Preset, ...]


def sidebar_view(chats: Chats, now: datetime, tr: Tr) -> SidebarView:
    """The list of conversations."""
    rows = tuple(
        Row(
            summary.id,
            summary.title or tr("New chat"),
            summary.found or day_words(summary.updated_unix_s, now, tr),
            summary.answering,
        )
        for summary in chats.listed
    )
    empty = ""
    if chats.problem and not rows:
        empty = chats.problem
    elif not rows and chats.known:
        empty = (
            tr("Nothing is found. Try fewer or other words.")
            if chats.query
            else tr("Your conversations will be listed here.")
        )
    undo = ""
    if chats.undo is not None:
        undo = tr("“{title}” is in the trash.").format(title=chats.undo.title or tr("New chat"))
    return SidebarView(rows, chats.open.id, chats.more, empty, undo)


def chat_view(state: AppState, now: datetime, tr: Tr) -> ChatView:
    """The state for the chat window."""
    icon, headline, detail = state_words(state, now, tr)
    status = state.status if state.linked else None
    chat = state.chats.open
    answering = chat.answering is not Answering.NOT
    ready = status is not None and status.can_chat and not state.quitting
    notice = "" if ready or answering else _why_closed(state, headline, detail, tr)
    paused = is_in(status, EngineState.PAUSED)
    newest = chat.newest
    ended_early = newest is not None and newest.ending not in (None, Ending.COMPLETE)
    line, full = _context(chat, tr)
    return ChatView(
        icon=icon,
        chat=chat.id,
        title=chat.title or tr("New chat"),
        subtitle=headline,
        model=model_name(status.model) if status and status.model else tr("No model yet"),
        turns=chat.turns,
        more=chat.more and not chat.older_coming,
        opening=chat.opening,
        can_send=ready and not answering and not chat.opening,
        can_stop=answering and chat.answering is not Answering.ASKED,
        can_change=ready and not answering,
        can_continue=ready
        and not answering
        and ended_early
        and newest is not None
        and bool(newest.text),
        notice=notice,
        progress=progress_share(state) if notice else None,
        resume=Action(tr("Resume"), visible=bool(notice) and paused, enabled=state.command is None),
        start=Action(tr("Try again"), visible=bool(notice) and state.process is Process.STOPPED),
        failure=chat.failure,
        can_retry=newest is not None
        and newest.speaker is Speaker.ASSISTANT
        and newest.ending in (Ending.FAILED, Ending.INTERRUPTED),
        live_line=_live_line(chat, status, tr),
        path=_path(status, tr) if status else "",
        badge=badge(status, tr),
        context_line=line,
        context_is_full=full,
        placeholder=tr("Ask anything") if ready else tr("You can type now and send later"),
        welcome=_who_reads(status, tr),
        said=chat.said,
        settings=chat.settings,
        presets=state.chats.presets,
    )


def badge(status: EngineStatus | None, tr: Tr) -> Badge | None:
    """Who can read what is said now; None while unknown."""
    if status is None:
        return None
    if status.swarm is None:
        return Badge(Privacy.LOCAL, tr("Local"), tr("Your messages do not leave this computer."))
    if status.private:
        return Badge(
            Privacy.PRIVATE,
            tr("Private"),
            tr("Members of {swarm}, who were invited, can read your messages.").format(
                swarm=status.swarm
            ),
        )
    return Badge(
        Privacy.PUBLIC,
        tr("Public"),
        tr(
            "Strangers' computers hold parts of the model, and each on the way of a message can "
            "read it."
        ),
    )


def answer_facts(answer: Message, tr: Tr) -> str:
    """`SmolLM2 · 84 tokens · 12.3 tokens/s`: for below an answer."""
    facts = [model_name(answer.model)] if answer.model else []
    if answer.tokens:
        facts.append(_tokens(answer.tokens, tr))
    if answer.tokens > 1 and answer.seconds > 0:
        facts.append(_rate((answer.tokens - 1) / answer.seconds, tr))
    if answer.left_out:
        facts.append(
            counted(
                answer.left_out,
                tr("without the first message|without the first {n} messages"),
                tr,
            )
        )
    return " · ".join(facts)


def as_text(turns: tuple[Message, ...], tr: Tr) -> str:
    """A conversation for the clipboard."""
    names = {Speaker.USER: tr("You"), Speaker.ASSISTANT: tr("Answer")}
    return "\n\n".join(f"{names[turn.speaker]}:\n{turn.text.strip()}" for turn in turns)


def _live_line(chat: Chat, status: EngineStatus | None, tr: Tr) -> str:
    where = [_through(status, tr)] if status else []
    if chat.answering in (Answering.ASKED, Answering.WAITING):
        return " · ".join([tr("Waiting for the first token…"), *where])
    newest = chat.newest
    if chat.answering is Answering.NOT or newest is None:
        return " · ".join(where)
    # A narrow window cuts the end off.
    how = [_rate(chat.tokens_per_s, tr)] if chat.tokens_per_s > 0 else []
    how += [] if chat.drafting is None else [_drafting(chat.drafting, tr)]
    return " · ".join([*how, _tokens(newest.tokens, tr), *where])


def _drafting(drafting: DraftingInfo, tr: Tr) -> str:
    """`2.1 tokens at once, drafted by look-up`, or why nothing is drafted."""
    if drafting.draft == "off":
        return tr("no draft: {reason}").format(reason=in_words(drafting.said, drafting.reason, tr))
    rate = number(drafting.tokens_per_round, tr, 1)
    if drafting.draft == "model":
        return tr("{rate} tokens a round with a draft model").format(rate=rate)
    return tr("{rate} tokens a round by looking up").format(rate=rate)


def _tokens(count: int, tr: Tr) -> str:
    return counted(count, tr("{n} token|{n} tokens"), tr)


def _rate(tokens_per_s: float, tr: Tr) -> str:
    return tr("{rate} tokens/s").format(rate=number(tokens_per_s, tr, 1))


def _through(status: EngineStatus, tr: Tr) -> str:
    if status.swarm is None:
        return tr("on this computer")
    hops = len(status.plan)
    if hops < 2:
        return status.swarm
    words = counted(hops, tr("{swarm}, {n} stage|{swarm}, {n} stages"), tr, swarm=status.swarm)
    on_the_way = {stage.peer for stage in status.plan}
    relayed = sum(link.path is LinkPath.RELAYED for link in status.links if link.peer in on_the_way)
    if not relayed:
        return words
    return f"{words}, {counted(relayed, tr('{n} relayed|{n} relayed'), tr)}"


def _path(status: EngineStatus, tr: Tr) -> str:
    """`blocks 0–9 → 10–19 (this computer) → 20–29`."""
    spans = [
        f"{stage.start}–{stage.end - 1}" + (f" ({tr('this computer')})" if stage.is_self else "")
        for stage in status.plan
    ]
    return tr("Blocks {path}").format(path=" → ".join(spans)) if spans else ""


def _context(chat: Chat, tr: Tr) -> tuple[str, bool]:
    """How much of the context conversation and draft take, and whether that is too much."""
    used = chat.draft_tokens
    answers = [turn for turn in reversed(chat.turns) if turn.context_tokens]
    if answers:
        used += answers[0].context_tokens
    if not chat.context_tokens or not used:
        return "", False
    words = tr("{used} of {all} tokens").format(
        used=number(used, tr), all=number(chat.context_tokens, tr)
    )
    return words, used > chat.context_tokens


def _why_closed(state: AppState, headline: str, detail: str, tr: Tr) -> str:
    """Why nothing can be asked now."""
    status = state.status if state.linked and not state.quitting else None
    if status is not None and status.state in (EngineState.IDLE, EngineState.SERVING):
        if status.swarm is None:
            return tr("Almost ready…")
        return tr(
            "Nobody holds some of the model's blocks now. The chat opens when a node with them joins."
        )
    return sentence(headline, detail)


def _who_reads(status: EngineStatus | None, tr: Tr) -> str:
    if status is not None and status.swarm is None:
        return tr("The model runs on this computer alone: your messages do not leave it.")
    return tr(
        "Your message travels through the computers that hold the model. "
        "They must read it to answer, so do not write secrets here."
    )
