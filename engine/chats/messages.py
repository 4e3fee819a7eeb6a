"""The tree of one conversation: functions over a connection, for `Database.read` and `write`.

A message's children are what has been said after it; those beside the first are branches. Children
have greater ids than their parents, and a branch that is opened again is the newest one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row

from engine.chats.conversations import title_from
from engine.core.errors import RequestError
from engine.localapi.chats import (
    Attachment,
    AttachmentInfo,
    Ending,
    Message,
    MessagePage,
    NewMessage,
    Privacy,
    Speaker,
)

_UP = """
    WITH RECURSIVE up(id, parent, step) AS (
        SELECT id, parent, 1 FROM messages WHERE id = :start
        UNION ALL
        SELECT m.id, m.parent, up.step + 1 FROM up JOIN messages m ON m.id = up.parent
        WHERE up.step < :limit
    )
    SELECT m.* FROM up JOIN messages m ON m.id = up.id ORDER BY m.id
"""
_DOWN = """
    WITH RECURSIVE down(id) AS (
        SELECT :start
        UNION ALL
        SELECT (SELECT max(m.id) FROM messages m WHERE m.chat = :chat AND m.parent = down.id)
        FROM down WHERE down.id IS NOT NULL
    )
    SELECT max(id) FROM down
"""
NO_LIMIT = 1 << 60


@dataclass(frozen=True, slots=True)
class Said:
    """A message as the model is shown it."""

    id: int
    speaker: Speaker
    text: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Growth:
    """What is kept of an answer beside its text."""

    model: str = ""
    tokens: int = 0
    seconds: float = 0.0
    context_tokens: int = 0
    stages: int = 0
    privacy: Privacy | None = None
    left_out: int = 0


def say(connection: Connection, chat: int, new: NewMessage, now_unix_s: float) -> Message:
    """Add what the person says.

    Raises:
        RequestError: It follows nothing that is there, or says nothing.
    """
    attachments = list(new.attachments)
    if new.attachments_of is not None:
        attachments = [*_row(connection, chat, new.attachments_of).attachments, *attachments]
    if not new.text.strip() and not attachments:
        raise RequestError("The message is empty; write something or attach a file.", param="say")
    if new.parent is not None:
        parent = _row(connection, chat, new.parent)
        if parent.speaker is not Speaker.ASSISTANT:
            raise RequestError("A message can only follow an answer.", param="say.parent")
    title = title_from(new.text) or attachments[0].name
    connection.execute("UPDATE chats SET title = ? WHERE id = ? AND title = ''", (title, chat))
    return _add(
        connection,
        chat,
        new.parent,
        Speaker.USER,
        now_unix_s,
        text=new.text,
        attachments=attachments,
        ending=Ending.COMPLETE,
    )


def begin_answer(connection: Connection, chat: int, question: int, now_unix_s: float) -> Message:
    """Add an empty answer to a message of the person, beside those that it has.

    Raises:
        RequestError: There is no such message.
    """
    if _row(connection, chat, question).speaker is not Speaker.USER:
        raise RequestError("Only what you have said can be answered.", param="again")
    return _add(connection, chat, question, Speaker.ASSISTANT, now_unix_s)


def reopen_answer(connection: Connection, chat: int, answer: int) -> Message:
    """Let an answer that has ended grow again.

    Raises:
        RequestError: There is no such answer, or something has been said after it.
    """
    if _row(connection, chat, answer).speaker is not Speaker.ASSISTANT:
        raise RequestError("Only an answer can be continued.", param="go_on")
    follows = connection.execute(
        "SELECT 1 FROM messages WHERE chat = ? AND parent = ? LIMIT 1", (chat, answer)
    ).fetchone()
    if follows is not None:
        raise RequestError("Only the last answer can be continued.", param="go_on")
    connection.execute("UPDATE messages SET ending = NULL, failure = '' WHERE id = ?", (answer,))
    connection.execute("UPDATE chats SET leaf = ? WHERE id = ?", (answer, chat))
    return message(connection, chat, answer)


def keep(connection: Connection, answer: int, text: str, growth: Growth) -> None:
    """Keep what an answer is so far."""
    connection.execute(
        "UPDATE messages SET text = ?, model = ?, tokens = ?, seconds = ?, context_tokens = ?,"
        " stages = ?, privacy = ?, left_out = ? WHERE id = ?",
        (
            text,
            growth.model,
            growth.tokens,
            growth.seconds,
            growth.context_tokens,
            growth.stages,
            growth.privacy,
            growth.left_out,
            answer,
        ),
    )


def end(
    connection: Connection,
    chat: int,
    answer: int,
    ending: Ending,
    failure: str,
    now_unix_s: float,
) -> Message:
    """Say that an answer is over."""
    connection.execute(
        "UPDATE messages SET ending = ?, failure = ? WHERE id = ?", (ending, failure, answer)
    )
    connection.execute("UPDATE chats SET updated_unix_s = ? WHERE id = ?", (now_unix_s, chat))
    return message(connection, chat, answer)


def end_all_interrupted(connection: Connection) -> None:
    """After a start: what was being written when the engine ended is over."""
    connection.execute("UPDATE messages SET ending = ? WHERE ending IS NULL", (Ending.INTERRUPTED,))


def show(connection: Connection, chat: int, through: int) -> None:
    """Show the newest branch that leads through a message.

    Raises:
        RequestError: There is no such message.
    """
    _row(connection, chat, through)
    leaf = connection.execute(_DOWN, {"start": through, "chat": chat}).fetchone()[0]
    connection.execute("UPDATE chats SET leaf = ? WHERE id = ?", (leaf, chat))


def page(connection: Connection, chat: int, *, before: int | None, limit: int) -> MessagePage:
    """The last messages of the branch that is shown, or the last before one of them.

    Raises:
        RequestError: There is no message `before`.
    """
    if before is None:
        row = connection.execute("SELECT leaf FROM chats WHERE id = ?", (chat,)).fetchone()
        start = None if row is None else row["leaf"]
    else:
        _row(connection, chat, before)
        start = connection.execute(
            "SELECT parent FROM messages WHERE id = ?", (before,)
        ).fetchone()["parent"]
    rows = connection.execute(_UP, {"start": start, "limit": limit}).fetchall()
    return MessagePage(
        messages=tuple(_messages(connection, chat, rows)),
        more=bool(rows) and rows[0]["parent"] is not None,
    )


def message(connection: Connection, chat: int, wanted: int) -> Message:
    """One message.

    Raises:
        RequestError: There is none of this id here.
    """
    row = connection.execute(
        "SELECT * FROM messages WHERE id = ? AND chat = ?", (wanted, chat)
    ).fetchone()
    if row is None:
        raise RequestError(f"This conversation has no message {wanted}.")
    return next(iter(_messages(connection, chat, [row])))


def branch(connection: Connection, leaf: int) -> tuple[Said, ...]:
    """All that leads to a message, itself included, in order."""
    rows = connection.execute(_UP, {"start": leaf, "limit": NO_LIMIT}).fetchall()
    return tuple(_said(row) for row in rows)


def whole(connection: Connection, chat: int) -> tuple[Message, ...]:
    """Every message of every branch, in the order in which they were said."""
    rows = connection.execute("SELECT * FROM messages WHERE chat = ? ORDER BY id", (chat,))
    return tuple(_messages(connection, chat, rows.fetchall()))


def _add(
    connection: Connection,
    chat: int,
    parent: int | None,
    speaker: Speaker,
    now_unix_s: float,
    *,
    text: str = "",
    attachments: Sequence[Attachment] = (),
    ending: Ending | None = None,
) -> Message:
    cursor = connection.execute(
        "INSERT INTO messages (chat, parent, speaker, text, attachments, ending, created_unix_s)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            chat,
            parent,
            speaker,
            text,
            json.dumps([attachment.model_dump() for attachment in attachments]),
            ending,
            now_unix_s,
        ),
    )
    assert cursor.lastrowid is not None
    connection.execute(
        "UPDATE chats SET leaf = ?, updated_unix_s = ? WHERE id = ?",
        (cursor.lastrowid, now_unix_s, chat),
    )
    return message(connection, chat, cursor.lastrowid)


def _row(connection: Connection, chat: int, wanted: int) -> Said:
    row = connection.execute(
        "SELECT * FROM messages WHERE id = ? AND chat = ?", (wanted, chat)
    ).fetchone()
    if row is None:
        raise RequestError(f"This conversation has no message {wanted}.")
    return _said(row)


def _said(row: Row) -> Said:
    files = json.loads(row["attachments"])
    return Said(
        row["id"],
        Speaker(row["speaker"]),
        row["text"],
        tuple(Attachment.model_construct(**file) for file in files),
    )


def _messages(connection: Connection, chat: int, rows: Sequence[Row]) -> list[Message]:
    places = {row["parent"] for row in rows}
    siblings: dict[int | None, list[int]] = {}
    for parent in places:
        siblings[parent] = [
            found["id"]
            for found in connection.execute(
                "SELECT id FROM messages WHERE chat = ? AND parent IS ? ORDER BY id", (chat, parent)
            )
        ]
    return [
        Message(
            id=row["id"],
            parent=row["parent"],
            speaker=Speaker(row["speaker"]),
            text=row["text"],
            attachments=tuple(
                AttachmentInfo(name=file["name"], chars=len(file["text"]))
                for file in json.loads(row["attachments"])
            ),
            siblings=tuple(siblings[row["parent"]]),
            created_unix_s=row["created_unix_s"],
            ending=None if row["ending"] is None else Ending(row["ending"]),
            failure=row["failure"],
            model=row["model"],
            tokens=row["tokens"],
            seconds=row["seconds"],
            context_tokens=row["context_tokens"],
            stages=row["stages"],
            privacy=None if row["privacy"] is None else Privacy(row["privacy"]),
            left_out=row["left_out"],
        )
        for row in rows
    ]
