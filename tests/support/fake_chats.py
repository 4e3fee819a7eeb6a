"""Conversations of the small engine: the real tables, and answers from a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from pydantic import BaseModel

from engine.chats import conversations, export, messages, presets
from engine.chats.messages import Growth
from engine.localapi.chats import (
    AnswerEvent,
    AnswerRequest,
    ChatChange,
    ChatSettings,
    CountRequest,
    Ending,
    Message,
    PresetSettings,
    TokenCount,
)
from tests.support.chat_tables import tables


class FakeChats:
    """State and routes; `asked` is what the test reads."""

    def __init__(self, answer: str, tokens_per_s: float, asked: dict[str, Any]) -> None:
        self.answer = answer
        self.tokens_per_s = tokens_per_s
        self.asked = asked
        self.next_failure: dict[str, Any] | None = None
        self._tables = tables()
        self.db = self._tables.__enter__()
        self._running: dict[int, asyncio.Event] = {}

    def routes(self) -> list[web.RouteDef]:
        one = "/shoal/v1/chats/{id:[0-9]+}"
        return [
            web.get("/shoal/v1/chats", self.list),
            web.post("/shoal/v1/chats", self.create),
            web.get(one, self.info),
            web.patch(one, self.change),
            web.delete(one, self.delete),
            web.post(f"{one}/restore", self.restore),
            web.get(f"{one}/messages", self.page),
            web.get(f"{one}/export", self.export),
            web.post(f"{one}/answer", self.reply),
            web.post(f"{one}/stop", self.stop),
            web.get("/shoal/v1/presets", self.presets),
            web.put("/shoal/v1/presets/{name}", self.put_preset),
            web.delete("/shoal/v1/presets/{name}", self.delete_preset),
            web.post("/shoal/v1/tokens", self.count),
        ]

    def fill(self, count: int) -> None:
        """A conversation of so many messages."""
        chat = conversations.create(self.db, ChatSettings(title=f"{count} messages"), 1.0).id
        self.db.execute("BEGIN")
        parent = None
        for number in range(count):
            parent = self.db.execute(
                "INSERT INTO messages (chat, parent, speaker, text, attachments, ending,"
                " created_unix_s) VALUES (?, ?, ?, ?, '[]', 'complete', 0)",
                (chat, parent, "assistant" if number % 2 else "user", f"message {number}"),
            ).lastrowid
        self.db.execute("UPDATE chats SET leaf = ? WHERE id = ?", (parent, chat))
        self.db.execute("COMMIT")

    async def list(self, request: web.Request) -> web.Response:
        self.asked["searches"].append(request.query.get("query", ""))
        after, limit = request.query.get("after"), int(request.query["limit"])
        last = None if after is None else int(after)
        found = conversations.listed(
            self.db, request.query.get("query", ""), after=last, limit=limit, deleted=False
        )
        return _json(found)

    async def create(self, request: web.Request) -> web.Response:
        settings = ChatSettings.model_validate_json(await request.read())
        return _json(conversations.create(self.db, settings, 2.0))

    async def info(self, request: web.Request) -> web.Response:
        return _json(conversations.info(self.db, _id(request)))

    async def change(self, request: web.Request) -> web.Response:
        wanted = ChatChange.model_validate_json(await request.read())
        if wanted.show is not None:
            messages.show(self.db, _id(request), wanted.show)
        return _json(conversations.change(self.db, _id(request), wanted))

    async def delete(self, request: web.Request) -> web.Response:
        return _json(conversations.delete(self.db, _id(request), 3.0))

    async def restore(self, request: web.Request) -> web.Response:
        return _json(conversations.restore(self.db, _id(request)))

    async def page(self, request: web.Request) -> web.Response:
        before = request.query.get("before")
        found = messages.page(
            self.db,
            _id(request),
            before=None if before is None else int(before),
            limit=int(request.query["limit"]),
        )
        return _json(found)

    async def export(self, request: web.Request) -> web.Response:
        info = conversations.info(self.db, _id(request))
        return web.Response(text=export.as_json(info, messages.whole(self.db, info.id)))

    async def presets(self, _: web.Request) -> web.Response:
        return _json(presets.presets(self.db))

    async def put_preset(self, request: web.Request) -> web.Response:
        settings = PresetSettings.model_validate_json(await request.read())
        return _json(presets.put(self.db, request.match_info["name"], settings))

    async def delete_preset(self, request: web.Request) -> web.Response:
        return _json(presets.remove(self.db, request.match_info["name"]))

    async def count(self, request: web.Request) -> web.Response:
        wanted = CountRequest.model_validate_json(await request.read())
        counts = tuple(len(text.split()) for text in wanted.texts)
        return _json(TokenCount(counts=counts, context_tokens=8192))

    async def stop(self, request: web.Request) -> web.Response:
        self.asked["stops"] += 1
        if (running := self._running.get(_id(request))) is not None:
            running.set()
        return _json(conversations.info(self.db, _id(request)))

    async def reply(self, request: web.Request) -> web.StreamResponse:
        chat = _id(request)
        wanted = AnswerRequest.model_validate_json(await request.read())
        self.asked["chats"].append(wanted.model_dump(exclude_none=True))
        failure, self.next_failure = self.next_failure, None
        if failure and not failure.get("after_tokens"):
            body = {"message": failure["message"], "type": "x", "param": None, "code": "no_route"}
            return web.json_response({"error": body}, status=failure.get("status", 503))
        said, answer = self._open(chat, wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(event: AnswerEvent) -> None:
            await response.write(f"data: {event.model_dump_json()}\n\n".encode())

        await send(AnswerEvent(kind="begun", question=said, answer=answer))
        await self._stream(chat, answer, failure, send)
        return response

    def _open(self, chat: int, wanted: AnswerRequest) -> tuple[Message | None, Message]:
        if wanted.go_on is not None:
            return None, messages.reopen_answer(self.db, chat, wanted.go_on)
        if wanted.again is not None:
            return None, messages.begin_answer(self.db, chat, wanted.again, 2.0)
        assert wanted.say is not None
        said = messages.say(self.db, chat, wanted.say, 2.0)
        return said, messages.begin_answer(self.db, chat, said.id, 2.0)

    async def _stream(
        self,
        chat: int,
        answer: Message,
        failure: dict[str, Any] | None,
        send: Callable[[AnswerEvent], Any],
    ) -> None:
        stopped = self._running[chat] = asyncio.Event()
        text, count, ending, why = answer.text, 0, Ending.COMPLETE, ""
        began = asyncio.get_running_loop().time()
        for count, token in enumerate(_tokens(self.answer), 1):
            if failure and count > failure["after_tokens"]:
                ending, why = Ending.FAILED, failure["message"]
                break
            if stopped.is_set():
                ending = Ending.STOPPED
                break
            text += token
            await send(AnswerEvent(kind="text", text=token, tokens=count))
            due = began + count / self.tokens_per_s  # a late token does not delay all others
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
        del self._running[chat]
        messages.keep(self.db, answer.id, text, Growth(model="starter", tokens=count, seconds=1.0))
        over = messages.end(self.db, chat, answer.id, ending, why, 2.0)
        await send(AnswerEvent(kind="ended", answer=over))


def _tokens(answer: str) -> list[str]:
    """Words with the blank before them, as tokenizers cut them."""
    words = answer.split(" ")
    return [words[0], *(f" {word}" for word in words[1:])]


def _id(request: web.Request) -> int:
    return int(request.match_info["id"])


def _json(answer: BaseModel) -> web.Response:
    return web.Response(text=answer.model_dump_json(), content_type="application/json")
