"""`/v1`: models, chat completions and completions, as OpenAI's clients know them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, contextmanager

from aiohttp import web

from engine.core.clock import Clock
from engine.http.answering import Answering, Question
from engine.http.answers import Piece
from engine.http.backend import Backend
from engine.http.errors import TooManyRequests
from engine.http.fields import parse_object
from engine.http.middleware import describe_error
from engine.http.model_limits import check_model
from engine.http.openai_chunks import ChatChunks, Chunks, CompletionChunks
from engine.http.openai_requests import chat_request, completion_request
from engine.http.openai_responses import Json, Usage, dumps, model_json
from engine.http.sse import EventStream


class OpenAiRoutes:
    """Handlers of `/v1`."""

    def __init__(
        self, backend: Backend, answering: Answering, clock: Clock, *, max_concurrent: int
    ) -> None:
        self._backend = backend
        self._answering = answering
        self._free_slots = max_concurrent
        self._started_unix_s = int(clock.unix_s())

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/v1/models", self.models),
            web.get("/v1/models/{id:.+}", self.model),
            web.post("/v1/chat/completions", self.chat),
            web.post("/v1/completions", self.completions),
        ]

    async def models(self, request: web.Request) -> web.Response:
        """List the one model that this engine runs."""
        spec, _ = self._backend.model()
        return _json({"object": "list", "data": [model_json(spec, self._started_unix_s)]})

    async def model(self, request: web.Request) -> web.Response:
        """Describe it, under any of its names."""
        spec, _ = self._backend.model()
        check_model(request.match_info["id"], spec)
        return _json(model_json(spec, self._started_unix_s))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer a conversation."""
        wanted = chat_request(parse_object(await request.read()))
        question = await self._answering.chat(wanted)
        with self._slot():
            if wanted.options.stream:
                chunks = ChatChunks(
                    question.envelope, len(question.prompts), wanted.options.include_usage
                )
                return await self._stream(request, question, chunks)
            return _json((await self._answering.answer(question)).json)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """Continue one or several texts."""
        wanted = completion_request(parse_object(await request.read()))
        question = await self._answering.completions(wanted)
        with self._slot():
            if wanted.options.stream:
                chunks = CompletionChunks(
                    question.envelope, question.echoes, wanted.options.include_usage
                )
                return await self._stream(request, question, chunks)
            return _json((await self._answering.answer(question)).json)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._free_slots <= 0:
            raise TooManyRequests("Too many requests are running here; try again in a moment.")
        self._free_slots -= 1
        try:
            yield
        finally:
            self._free_slots += 1

    async def _stream(
        self, request: web.Request, question: Question, chunks: Chunks
    ) -> web.StreamResponse:
        usage = Usage(question.prompt_tokens, question.options.n)
        async with aclosing(self._answering.pieces(question)) as pieces:
            # The first token decides whether there is an answer at all, so the status waits for it.
            piece: Piece | None = await anext(pieces)
            events = await EventStream.open(request)
            try:
                for chunk in chunks.first():
                    await events.send(chunk)
                while piece is not None:
                    usage.count(
                        piece.index,
                        reused_tokens=piece.reused_tokens,
                        drafted_tokens=piece.drafted_tokens,
                        accepted_tokens=piece.accepted_tokens,
                        mode=piece.mode,
                    )
                    for chunk in chunks.of(piece):
                        await events.send(chunk)
                    piece = await anext(pieces, None)
                if question.options.include_usage:
                    await events.send(chunks.usage(usage.json()))
                await events.send("[DONE]")
            except ConnectionResetError:
                return events.response  # the client left; closing `pieces` frees its sessions
            except Exception as error:  # noqa: BLE001 - too late for a status; logged in there
                await events.send(describe_error(error)[1])
            return await events.end()


def _json(value: Json) -> web.Response:
    return web.Response(text=dumps(value), content_type="application/json")
