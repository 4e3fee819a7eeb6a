"""The list of conversations: functions over a connection, for `Database.read` and `write`."""

from __future__ import annotations

import json
import sqlite3
from typing import Final

from engine.chats.search import Wanted, excerpt
from engine.core.errors import ChatNotFound
from engine.localapi.chats import (
    MAX_TITLE_CHARS,
    ChatChange,
    ChatInfo,
    ChatList,
    ChatSettings,
    ChatSummary,
    Sampling,
)

TRASH_S: Final = 30 * 86400.0
"""How long a deleted conversation can be brought back."""
_TITLE_CHARS: Final = 60


def create(connection: sqlite3.Connection, settings: ChatSettings, now_unix_s: float) -> ChatInfo:
    """Begin a conversation."""
    cursor = connection.execute(
        "INSERT INTO chats (title, system_prompt, sampling, created_unix_s, updated_unix_s)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            settings.title.strip(),
            settings.system_prompt,
            settings.sampling.model_dump_json(exclude_none=True),
            now_unix_s,
            now_unix_s,
        ),
    )
    assert cursor.lastrowid is not None
    return info(connection, cursor.lastrowid)


def info(connection: sqlite3.Connection, chat: int) -> ChatInfo:
    """One conversation.

    Raises:
        ChatNotFound: There is none of this id.
    """
    row = connection.execute("SELECT * FROM chats WHERE id = ?", (chat,)).fetchone()
    if row is None:
        raise ChatNotFound(f"There is no conversation {chat}; it may have been deleted for good.")
    return ChatInfo(
        id=row["id"],
        title=row["title"],
        created_unix_s=row["created_unix_s"],
        updated_unix_s=row["updated_unix_s"],
        deleted=row["deleted_unix_s"] is not None,
        system_prompt=row["system_prompt"],
        sampling=Sampling(**json.loads(row["sampling"])),
        leaf=row["leaf"],
    )


def listed(
    connection: sqlite3.Connection, query: str, *, after: int | None, limit: int, deleted: bool
) -> ChatList:
    """The conversations in which all words of `query` are found, the last changed first.

    Args:
        connection: To read with.
        query: What to look for in titles and messages; empty: everything.
        after: The last conversation known already.
        limit: The most to give.
        deleted: Those in the trash instead of the others.
    """
    wanted = Wanted.of(query)
    conditions = [f"deleted_unix_s IS {'NOT ' if deleted else ''}NULL"]
    values: list[object] = []
    if after is not None:
        conditions.append(
            "(updated_unix_s, id) < (SELECT updated_unix_s, id FROM chats WHERE id = ?)"
        )
        values.append(after)
    if wanted.words:
        condition, more_values = wanted.condition()
        conditions.append(condition)
        values += more_values
    rows = connection.execute(
        f"SELECT id, title, updated_unix_s FROM chats WHERE {' AND '.join(conditions)}"  # noqa: S608 - fixed pieces
        " ORDER BY updated_unix_s DESC, id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    return ChatList(
        chats=tuple(
            ChatSummary(
                id=row["id"],
                title=row["title"],
                updated_unix_s=row["updated_unix_s"],
                found=excerpt(connection, row["id"], wanted) if wanted.words else "",
            )
            for row in rows[:limit]
        ),
        more=len(rows) > limit,
    )


def change(connection: sqlite3.Connection, chat: int, wanted: ChatChange) -> ChatInfo:
    """Change what `wanted` names, except the branch that is shown.

    Raises:
        ChatNotFound: There is none of this id.
    """
    if wanted.title is not None:
        connection.execute("UPDATE chats SET title = ? WHERE id = ?", (wanted.title.strip(), chat))
    if wanted.system_prompt is not None:
        connection.execute(
            "UPDATE chats SET system_prompt = ? WHERE id = ?", (wanted.system_prompt, chat)
        )
    if wanted.sampling is not None:
        connection.execute(
            "UPDATE chats SET sampling = ? WHERE id = ?",
            (wanted.sampling.model_dump_json(exclude_none=True), chat),
        )
    return info(connection, chat)


def delete(connection: sqlite3.Connection, chat: int, now_unix_s: float) -> ChatInfo:
    """Put a conversation into the trash; one that lies there keeps its day.

    Raises:
        ChatNotFound: There is none of this id.
    """
    connection.execute(
        "UPDATE chats SET deleted_unix_s = coalesce(deleted_unix_s, ?) WHERE id = ?",
        (now_unix_s, chat),
    )
    return info(connection, chat)


def restore(connection: sqlite3.Connection, chat: int) -> ChatInfo:
    """Take a conversation out of the trash.

    Raises:
        ChatNotFound: There is none of this id.
    """
    connection.execute("UPDATE chats SET deleted_unix_s = NULL WHERE id = ?", (chat,))
    return info(connection, chat)


def empty_trash(connection: sqlite3.Connection, now_unix_s: float) -> None:
    """Forget what has been in the trash for a month."""
    connection.execute("DELETE FROM chats WHERE deleted_unix_s < ?", (now_unix_s - TRASH_S,))


def title_from(text: str) -> str:
    """A title from the first message: its first line, cut between words."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = line[:MAX_TITLE_CHARS]
    if len(line) <= _TITLE_CHARS:
        return line
    head, space, _ = line[: _TITLE_CHARS + 1].rpartition(" ")
    return (head if space and len(head) > _TITLE_CHARS // 2 else line[:_TITLE_CHARS]) + "…"
