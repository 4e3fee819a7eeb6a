"""`/shoal/v1/chats`, presets and token counts; see `engine.localapi.chats`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from sqlite3 import Connection
from typing import Any, cast
from weakref import WeakSet

from aiohttp import web

from engine.chats import conversations, export, messages, presets
from engine.core.clock import Clock
from engine.core.errors import RequestError
from engine.http.backend import Backend
from engine.http.bodies import json_response, read_body
from engine.http.chat_answers import ChatAnswers, Running
from engine.http.sse import EventStream
from engine.localapi.chats import (
    MAX_PAGE,
    AnswerEvent,
    AnswerRequest,
    ChatChange,
    ChatInfo,
    ChatSettings,
    CountRequest,
    PresetSettings,
    TokenCount,
)
from engine.storage.database import Database

_PAGE = 50
_MAX_ID = (1 << 63) - 1
_MAX_NAME_CHARS = 100
_COUNT_PART_CHARS = 1 << 16


class ChatRoutes:
    """Handlers of conversations."""

    def __init__(self, backend: Backend, database: Database, clock: Clock) -> None:
        self._backend = backend
        self._database = database
        self._clock = clock
        self._answers = ChatAnswers(backend, database, clock)
        self._followers: WeakSet[asyncio.Task[Any]] = WeakSet()

    async def clean_up(self) -> None:
        """After a start: end what the last engine left unfinished, empty the old trash."""

        def clean(connection: Connection) -> None:
            messages.end_all_interrupted(connection)
            conversations.empty_trash(connection, self._clock.unix_s())

        await self._database.write(clean)

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        chats, one = "/shoal/v1/chats", "/shoal/v1/chats/{id:[0-9]+}"
        return [
            web.get(chats, self.list),
            web.post(chats, self.create),
            web.get(one, self.info),
            web.patch(one, self.change),
            web.delete(one, self.delete),
            web.post(f"{one}/restore", self.restore),
            web.get(f"{one}/messages", self.page),
            web.get(f"{one}/export", self.export),
            web.post(f"{one}/answer", self.answer),
            web.get(f"{one}/answer", self.follow),
            web.post(f"{one}/stop", self.stop),
            web.get("/shoal/v1/presets", self.presets),
            web.put("/shoal/v1/presets/{name}", self.put_preset),
            web.delete("/shoal/v1/presets/{name}", self.delete_preset),
            web.post("/shoal/v1/tokens", self.count),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """End the answers, keeping what they have, and those who follow them."""
        await self._answers.close()
        for task in list(self._followers):
            task.cancel()

    async def list(self, request: web.Request) -> web.Response:
        """The conversations, the last changed first."""
        query = request.query.get("query", "")[:1000]
        after, limit = _number(request, "after"), _limit(request)
        deleted = request.query.get("deleted") == "1"
        found = await self._database.read(
            lambda c: conversations.listed(c, query, after=after, limit=limit, deleted=deleted)
        )
        chats = tuple(
            chat.model_copy(update={"answering": self._answers.is_answering(chat.id)})
            for chat in found.chats
        )
        return json_response(found.model_copy(update={"chats": chats}))

    async def create(self, request: web.Request) -> web.Response:
        """Begin one."""
        settings = await read_body(request, ChatSettings)
        now = self._clock.unix_s()
        return json_response(
            await self._database.write(lambda c: conversations.create(c, settings, now))
        )

    async def info(self, request: web.Request) -> web.Response:
        """One without its messages."""
        return self._response(await self._info(_chat(request)))

    async def change(self, request: web.Request) -> web.Response:
        """Another title, system prompt, sampling or branch."""
        chat, wanted = _chat(request), await read_body(request, ChatChange)
        if wanted.show is not None and self._answers.running(chat) is not None:
            raise RequestError(
                "The conversation is being answered; stop that before you show another branch.",
                param="show",
            )

        def change(connection: Connection) -> ChatInfo:
            if wanted.show is not None:
                messages.show(connection, chat, wanted.show)
            return conversations.change(connection, chat, wanted)

        return self._response(await self._database.write(change))

    async def delete(self, request: web.Request) -> web.Response:
        """Into the trash; an answer under way ends."""
        chat, now = _chat(request), self._clock.unix_s()
        await self._answers.stop(chat)
        return self._response(
            await self._database.write(lambda c: conversations.delete(c, chat, now))
        )

    async def restore(self, request: web.Request) -> web.Response:
        """Out of the trash."""
        chat = _chat(request)
        return self._response(await self._database.write(lambda c: conversations.restore(c, chat)))

    async def page(self, request: web.Request) -> web.Response:
        """Some messages of the branch that is shown."""
        chat, before, limit = _chat(request), _number(request, "before"), _limit(request)
        await self._info(chat)
        page = await self._database.read(
            lambda c: messages.page(c, chat, before=before, limit=limit)
        )
        shown = self._answers.endings.shown(chat, page.messages)
        return json_response(page.model_copy(update={"messages": shown}))

    async def export(self, request: web.Request) -> web.Response:
        """The whole of it as a text."""
        chat, form = _chat(request), request.query.get("format", "markdown")
        if form not in ("markdown", "json"):
            raise RequestError("format must be markdown or json.", param="format")

        def text(connection: Connection) -> str:
            info, shown = conversations.info(connection, chat), self._answers.endings.shown
            if form == "json":
                return export.as_json(info, shown(chat, messages.whole(connection, chat)))
            page = messages.page(connection, chat, before=None, limit=messages.NO_LIMIT)
            return export.as_markdown(info, shown(chat, page.messages))

        return web.Response(
            text=await self._database.read(text),
            content_type="application/json" if form == "json" else "text/markdown",
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Say something, ask again or let go on; the answer as it comes."""
        wanted = await read_body(request, AnswerRequest)
        running = await self._answers.begin(_chat(request), wanted)
        return await self._stream(request, running)

    async def follow(self, request: web.Request) -> web.StreamResponse:
        """The answer under way."""
        running = self._answers.running(_chat(request))
        if running is None:
            raise RequestError("This conversation is not being answered at the moment.")
        return await self._stream(request, running)

    async def stop(self, request: web.Request) -> web.Response:
        """End the answer under way; without one nothing happens."""
        chat = _chat(request)
        await self._answers.stop(chat)
        return self._response(await self._info(chat))

    async def presets(self, request: web.Request) -> web.Response:
        """All presets."""
        return json_response(await self._database.read(presets.presets))

    async def put_preset(self, request: web.Request) -> web.Response:
        """Keep one."""
        name, settings = _preset(request), await read_body(request, PresetSettings)
        return json_response(await self._database.write(lambda c: presets.put(c, name, settings)))

    async def delete_preset(self, request: web.Request) -> web.Response:
        """Forget one."""
        name = _preset(request)
        return json_response(await self._database.write(lambda c: presets.remove(c, name)))

    async def count(self, request: web.Request) -> web.Response:
        """How many tokens texts have, and how many there is room for."""
        wanted = await read_body(request, CountRequest)
        spec, tokenizer = self._backend.model()

        def counts() -> tuple[int, ...]:
            # In parts, because the time of some tokenizers grows faster than the text.
            return tuple(
                sum(
                    len(tokenizer.encode_more(text[at : at + _COUNT_PART_CHARS]))
                    for at in range(0, len(text), _COUNT_PART_CHARS)
                )
                for text in wanted.texts
            )

        found = await asyncio.to_thread(counts)
        return json_response(TokenCount(counts=found, context_tokens=spec.max_position_embeddings))

    def _response(self, info: ChatInfo) -> web.Response:
        """A conversation; only who writes its answer knows whether that goes on."""
        answering = self._answers.is_answering(info.id)
        return json_response(info.model_copy(update={"answering": answering}))

    async def _info(self, chat: int) -> ChatInfo:
        return await self._database.read(lambda c: conversations.info(c, chat))

    async def _stream(self, request: web.Request, running: Running) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._followers.add(task)
        stream = await EventStream.open(request)
        events = cast(AsyncGenerator[AnswerEvent, None], self._answers.follow(running))
        try:
            async with aclosing(events):
                async for event in events:
                    await stream.send(event.model_dump_json(exclude_defaults=event.kind == "text"))
        except ConnectionResetError:
            return stream.response  # the answer goes on, and is kept
        return await stream.end()


def _chat(request: web.Request) -> int:
    return min(int(request.match_info["id"]), _MAX_ID)


def _preset(request: web.Request) -> str:
    name = request.match_info["name"].strip()
    if not name or len(name) > _MAX_NAME_CHARS:
        raise RequestError(
            f"A preset needs a name of at most {_MAX_NAME_CHARS} characters.", param="name"
        )
    return name


def _limit(request: web.Request) -> int:
    return min(_number(request, "limit") or _PAGE, MAX_PAGE)


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise RequestError(f"{name} must be a number, not {text[:40]!r}.", param=name)
    return int(text)
