"""The ends of answers: kept for certain, also when the disk is full at that moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Final

from engine.chats import messages
from engine.chats.messages import Growth
from engine.core.errors import EngineError, RequestError
from engine.localapi.chats import Ending, Message
from engine.storage.database import Database

logger = logging.getLogger(__name__)

RETRY_S: Final = 5.0
"""An end that could not be kept is tried again this often."""


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """How an answer has ended."""

    chat: int
    answer: Message
    """As it was when it began."""
    text: str
    growth: Growth
    ending: Ending
    failure: str
    unix_s: float


@dataclass(frozen=True, slots=True)
class _Late:
    """An end that is not kept yet."""

    end: AnswerEnd
    shown: Message
    """What the person sees meanwhile."""


class ChatEndings:
    """Writes ends, and holds those that could not be written until they are.

    There is at most one of a conversation: whoever goes on with it catches up first.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._late: dict[int, _Late] = {}
        self._retrying: asyncio.Task[None] | None = None

    async def keep(self, end: AnswerEnd) -> Message:
        """Keep an end, now or as soon as that is possible.

        Returns:
            The answer as it is shown from now on; one that is not kept yet says so and why.
        """
        try:
            return await self._write(end)
        except EngineError as error:
            logger.error("an answer is not kept yet: %s", error)
            shown = end.answer.model_copy(
                update={
                    "text": end.text,
                    "tokens": end.growth.tokens,
                    "ending": Ending.FAILED,
                    "failure": f"The answer is not kept yet, and this is tried again: {error}",
                }
            )
            self._late[end.chat] = _Late(end, shown)
            if self._retrying is None or self._retrying.done():
                self._retrying = asyncio.create_task(self._retry(), name="chat-endings")
            return shown

    def shown(self, chat: int, found: Sequence[Message]) -> tuple[Message, ...]:
        """Messages as they were read, with the end of the one that is not kept yet."""
        late = self._late.get(chat)
        if late is None:
            return tuple(found)
        # Where it stands among its siblings is as it was read.
        return tuple(
            late.shown.model_copy(update={"siblings": message.siblings})
            if message.id == late.shown.id
            else message
            for message in found
        )

    async def catch_up(self, chat: int) -> None:
        """Keep what is late of a conversation, before it goes on.

        Raises:
            EngineError: It still cannot be kept.
        """
        late = self._late.get(chat)
        if late is None:
            return
        try:
            await self._write(late.end)
        except RequestError:
            logger.warning("an answer was not kept: its conversation is gone")
        if self._late.get(chat) is late:
            del self._late[chat]

    async def close(self) -> None:
        """Try a last time; what still cannot be kept is lost but for what was kept of it before."""
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)
        await self._catch_up_with_all()

    async def _retry(self) -> None:
        while self._late:
            await asyncio.sleep(RETRY_S)
            await self._catch_up_with_all()

    async def _catch_up_with_all(self) -> None:
        for chat in list(self._late):
            try:
                await self.catch_up(chat)
            except EngineError as error:
                logger.warning("an answer is still not kept: %s", error)

    async def _write(self, end: AnswerEnd) -> Message:
        def write(connection: Connection) -> Message:
            messages.keep(connection, end.answer.id, end.text, end.growth)
            return messages.end(
                connection, end.chat, end.answer.id, end.ending, end.failure, end.unix_s
            )

        return await self._database.write(write)
