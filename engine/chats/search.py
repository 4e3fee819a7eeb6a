"""Finding conversations by words in their titles and messages.

Finished messages are indexed by trigrams, so that any three characters in a row are found, in every
language; shorter words are looked for one message after another.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

_INDEXED_CHARS: Final = 3
_MAX_WORDS: Final = 8
_BEFORE_CHARS: Final = 24
_EXCERPT_CHARS: Final = 90


@dataclass(frozen=True, slots=True)
class Wanted:
    """The words of a search, of which each must be there."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, query: str) -> Wanted:
        """What a person has typed; words beyond the eighth are not looked for."""
        return cls(tuple(query.replace("\0", " ").split()[:_MAX_WORDS]))

    def condition(self) -> tuple[str, list[str]]:
        """SQL that holds for rows of `chats` with all words in the title or in one message."""
        in_title = " AND ".join("title LIKE ? ESCAPE '!'" for _ in self.words)
        values = [_pattern(word) for word in self.words]
        in_message, message_values = self.in_message()
        in_messages = f"SELECT m.chat FROM messages m WHERE {in_message}"  # noqa: S608 - fixed pieces
        return f"(({in_title}) OR id IN ({in_messages}))", values + message_values

    def in_message(self) -> tuple[str, list[str]]:
        """SQL for rows `m` of `messages`."""
        indexed = [word for word in self.words if len(word) >= _INDEXED_CHARS]
        short = [word for word in self.words if len(word) < _INDEXED_CHARS]
        parts: list[str] = []
        values: list[str] = []
        if indexed:
            parts.append("m.id IN (SELECT rowid FROM message_words WHERE message_words MATCH ?)")
            values.append(" AND ".join('"' + word.replace('"', '""') + '"' for word in indexed))
        for word in short:
            parts.append("m.text LIKE ? ESCAPE '!'")
            values.append(_pattern(word))
        return " AND ".join(parts), values


def excerpt(connection: sqlite3.Connection, chat: int, wanted: Wanted) -> str:
    """The piece of the newest message of `chat` in which the words are; empty: they are its title."""
    condition, values = wanted.in_message()
    row = connection.execute(
        f"SELECT m.text FROM messages m WHERE m.chat = ? AND {condition} ORDER BY m.id DESC LIMIT 1",  # noqa: S608 - fixed pieces
        (chat, *values),
    ).fetchone()
    return "" if row is None else _around(row["text"], wanted.words[0])


def _around(text: str, word: str) -> str:
    at = max(text.casefold().find(word.casefold()), 0)
    start = max(at - _BEFORE_CHARS, 0)
    piece = " ".join(text[start : start + _EXCERPT_CHARS].split())
    return ("…" if start else "") + piece + ("…" if start + _EXCERPT_CHARS < len(text) else "")


def _pattern(word: str) -> str:
    escaped = word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
