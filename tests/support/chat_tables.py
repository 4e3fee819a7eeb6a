"""A database in memory with the tables of chats, for tests of the functions over a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from engine.chats import conversations, messages
from engine.chats.messages import Growth
from engine.localapi.chats import ChatSettings, Ending, Message, NewMessage
from engine.storage.migrations import MIGRATIONS


@contextmanager
def tables() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    for migration in MIGRATIONS:
        for statement in migration.statements:
            connection.execute(statement)
    yield connection
    assert connection.execute("PRAGMA foreign_key_check").fetchone() is None
    connection.close()


def begin(connection: sqlite3.Connection, title: str = "", at_s: float = 0.0) -> int:
    """A new conversation."""
    return conversations.create(connection, ChatSettings(title=title), at_s).id


def exchange(
    connection: sqlite3.Connection,
    chat: int,
    question: str,
    answer: str,
    parent: int | None = None,
    at_s: float = 1.0,
) -> tuple[Message, Message]:
    """A question and its whole answer."""
    said = messages.say(connection, chat, NewMessage(parent=parent, text=question), at_s)
    begun = messages.begin_answer(connection, chat, said.id, at_s)
    messages.keep(connection, begun.id, answer, Growth(tokens=len(answer.split())))
    return said, messages.end(connection, chat, begun.id, Ending.COMPLETE, "", at_s)


def shown(connection: sqlite3.Connection, chat: int) -> list[str]:
    """What the branch that is shown says."""
    page = messages.page(connection, chat, before=None, limit=messages.NO_LIMIT)
    return [message.text for message in page.messages]
