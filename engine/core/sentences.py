"""Sentences for a person that a window can say in another language, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

Value = str | int | float


@dataclass(frozen=True, slots=True)
class Part:
    """One sentence, taken apart."""

    text: str
    """In English, with places like `{model}`."""
    values: Mapping[str, Value]
    """What goes there."""


class Sentence(str):
    """A text in English that also remembers what it is made of.

    It is handed on like any text; what is put together from it by other means is just a text.

    Attributes:
        parts: What it is made of.
    """

    parts: tuple[Part, ...]

    def __new__(cls, text: str, /, **values: Value) -> Self:
        """Say `text` with `values` in its places."""
        return cls._of((Part(text, values),))

    def then(self, more: Sentence) -> Self:
        """Say `more` after this."""
        return self._of((*self.parts, *more.parts))

    @classmethod
    def _of(cls, parts: tuple[Part, ...]) -> Self:
        made = super().__new__(cls, " ".join(map(_in_english, parts)))
        made.parts = parts
        return made


def _in_english(part: Part) -> str:
    shown = {
        name: f"{value:,}" if isinstance(value, int) else value
        for name, value in part.values.items()
    }
    return part.text.format(**shown)
