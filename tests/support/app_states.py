"""Builders of what the app knows, so that a test shows only what matters."""

from __future__ import annotations

from typing import Any

from app.messages import ChatAsked, ChatEnded, ChatToken, Ending, Message
from app.state import AppState, apply
from engine.localapi.schema import EngineStatus


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


def after(*messages: Message, start: AppState | None = None) -> AppState:
    """The state that `messages` lead to."""
    state = AppState() if start is None else start
    for message in messages:
        state = apply(state, message)
    return state


def answered(question: str, answer: str) -> tuple[Message, ...]:
    """A question and its whole answer, ten words a second."""
    words = answer.split(" ")
    tokens = (ChatToken(f"{word} ", 0.1 * at) for at, word in enumerate(words))
    return (ChatAsked(question), *tokens, ChatEnded(Ending.COMPLETE))
