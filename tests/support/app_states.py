"""Builders of what the app knows, so that a test shows only what matters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.chat_messages import (
    AnswerAsked,
    AnswerBegun,
    AnswerEnded,
    AnswerGrew,
    ChatMessage,
    ChatSettled,
)
from app.messages import Message as AppMessage
from app.state import AppState, apply
from engine.config import Config
from engine.localapi.chats import ChatInfo, Message
from engine.localapi.schema import EngineStatus
from engine.localapi.settings import Setting, Settings
from engine.localapi.setup import PlanPreview
from engine.node.settings import effect_of

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)


def status(**fields: Any) -> EngineStatus:
    """A solo node that holds all of the starter model and waits for work."""
    known = {
        "state": "idle",
        "span": (0, 30),
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct@5f1c",
        "num_blocks": 30,
        "version": "0.1.0",
        "api_url": "http://127.0.0.1:4000",
        "can_chat": True,
    }
    return EngineStatus.model_validate(known | fields)


def plan_preview(**fields: Any) -> PlanPreview:
    """A machine on whose CPU all of the starter model fits."""
    known = {
        "model": "SmolLM2-135M-Instruct", "num_blocks": 30, "span": (0, 30),
        "reason": "The whole model fits.", "is_certain": True, "on_gpu": False,
        "device": "A processor", "memory_bytes": 2_000_000_000,
        "memory_free_bytes": 12_000_000_000, "memory_total_bytes": 16_000_000_000,
        "token_bytes": 2304,
    }  # fmt: skip
    return PlanPreview.model_validate(known | fields)


def engine_settings(**values: Any) -> Settings:
    """All settings, with some that are not as they come (`branch__field`)."""
    changed = {name.replace("__", "."): value for name, value in values.items()}
    tree = Config().model_dump(mode="json")
    return Settings(
        file="/home/ada/.config/shoal/settings.toml",
        settings=tuple(
            Setting(
                name=f"{branch}.{field}",
                value=changed.get(f"{branch}.{field}", value),
                default=value,
                about="",
                effect=effect_of(f"{branch}.{field}"),
            )
            for branch, fields in tree.items()
            for field, value in fields.items()
        ),
    )


def after(*messages: AppMessage, start: AppState | None = None) -> AppState:
    """The state that `messages` lead to."""
    state = AppState() if start is None else start
    for message in messages:
        state = apply(state, message)
    return state


def info(chat: int = 1, title: str = "Fish", **fields: Any) -> ChatInfo:
    """A conversation of today."""
    known = {"id": chat, "title": title, "updated_unix_s": 0.0, "created_unix_s": 0.0}
    return ChatInfo.model_validate(known | fields)


def question(number: int, text: str, parent: int | None = None, **fields: Any) -> Message:
    """What the person has said."""
    return _message(number, "user", text, parent, {"ending": "complete"} | fields)


def answer(number: int, text: str, parent: int, **fields: Any) -> Message:
    """What was answered."""
    return _message(number, "assistant", text, parent, {"ending": "complete"} | fields)


def begun(number: int, text: str = "", parent: int | None = None) -> tuple[ChatMessage, ...]:
    """A question of chat 1 that is kept, with an answer of which nothing has come."""
    said = question(number, text or "Why?", parent)
    return (
        *((AnswerAsked(), ChatSettled(info())) if parent is None else (AnswerAsked(),)),
        AnswerBegun(1, said, answer(number + 1, "", number, ending=None)),
    )


def grew(text: str, tokens: int, at_s: float) -> AnswerGrew:
    """More of the answer in chat 1."""
    return AnswerGrew(1, text, tokens, at_s)


def answered(text: str, said: str, number: int = 1) -> tuple[ChatMessage, ...]:
    """A question and its whole answer, ten words a second; the next number is two higher."""
    words = said.split(" ")
    parts = (grew(f"{word} ", at + 1, 0.1 * at) for at, word in enumerate(words))
    parent = number - 1 if number > 1 else None
    whole = answer(number + 1, said, number, tokens=len(words), seconds=0.1 * len(words))
    return (*begun(number, text, parent), *parts, AnswerEnded(1, whole))


def _message(
    number: int, speaker: str, text: str, parent: int | None, fields: dict[str, Any]
) -> Message:
    known = {
        "id": number, "parent": parent, "speaker": speaker, "text": text, "siblings": (number,),
        "created_unix_s": 0.0,
    }  # fmt: skip
    return Message.model_validate(known | fields)
