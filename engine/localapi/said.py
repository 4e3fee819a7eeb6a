"""Sentences of the engine, taken apart for windows that speak another language."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from engine.core.sentences import Sentence


class Said(BaseModel):
    """One sentence: its English text is its name, which never stands for another meaning."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    """With places like `{model}`."""
    values: dict[str, str | int | float] = Field(default_factory=dict)
    """What goes there; names that end in `_bytes` are sizes."""


def said(text: str) -> tuple[Said, ...]:
    """The parts of a `Sentence`; none of a text that is not one, which stays English."""
    if not isinstance(text, Sentence):
        return ()
    return tuple(Said(text=part.text, values=dict(part.values)) for part in text.parts)
