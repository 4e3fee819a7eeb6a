"""`/v1`: models, chat completions and completions, as OpenAI's clients know them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from engine.core.clock import Clock
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.http.answers import Piece, generate_answers
from engine.http.backend import Backend
from engine.http.errors import TooManyRequests
from engine.http.fields import parse_object
from engine.http.middleware import describe_error
from engine.http.openai_chunks import ChatChunks, Chunks, CompletionChunks
from engine.http.openai_prompts import Prompt
from engine.http.openai_requests import (
    DEFAULT_CHAT_TOKENS,
    DEFAULT_COMPLETION_TOKENS,
    GenerationOptions,
    chat_request,
    check_model,
    check_prompt,
    completion_request,
    sampling_params,
)
from engine.http.openai_responses import (
    Envelope,
    Json,
    TokenText,
    Usage,
    chat_choice,
    completion_choice,
    dumps,
    model_json,
)
from engine.http.sse import EventStream
from engine.models.tokenizer import ChatTokenizer

_INLINE_CHARS = 20_000
"""Longer prompts are tokenized beside the event loop, so that other streams go on."""


@dataclass(slots=True)
class _Job:
    """One request, ready to run: every sequence with its parameters."""

    options: GenerationOptions
    envelope: Envelope
    tokenizer: ChatTokenizer
    prompts: list[tuple[int, ...]] = field(default_factory=list)
    params: list[SamplingParams] = field(default_factory=list)
    echoes: list[str] = field(default_factory=list)
    """Text to give back before each answer."""
    prompt_tokens: int = 0

    def add(self, prompt: tuple[int, ...], params: Sequence[SamplingParams], echo: str) -> None:
        """Add one prompt with its choices."""
        self.prompts += [prompt] * len(params)
        self.params += params
        self.echoes += [echo] * len(params)
        self.prompt_tokens += len(prompt)


class OpenAiRoutes:
    """Handlers of `/v1`."""

    def __init__(self, backend: Backend, clock: Clock, *, max_concurrent: int) -> None:
        self._backend = backend
        self._clock = clock
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
        spec, tokenizer = self._model_for(wanted.options)
        messages = [{"role": turn.role, "content": turn.content} for turn in wanted.messages]
        size_chars = sum(len(turn.content) for turn in wanted.messages)
        prompt = await _encode(lambda: tokenizer.encode_chat(messages), size_chars)
        job = _Job(wanted.options, self._envelope("chatcmpl", spec), tokenizer)
        self._add(job, spec, prompt, "", param="messages", default_tokens=DEFAULT_CHAT_TOKENS)
        with self._slot():
            if wanted.options.stream:
                include_usage = wanted.options.include_usage
                return await self._stream(
                    request, job, ChatChunks(job.envelope, len(job.prompts), include_usage)
                )
            return await self._collect(job, "chat.completion", chat_choice)

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """Continue one or several texts."""
        wanted = completion_request(parse_object(await request.read()))
        spec, tokenizer = self._model_for(wanted.options)
        job = _Job(wanted.options, self._envelope("cmpl", spec), tokenizer)
        for prompt in wanted.prompts:
            ids = await _prompt_ids(tokenizer, prompt)
            # Before decoding for the echo: an id outside the vocabulary has no text.
            check_prompt(ids, spec, param="prompt")
            text = prompt if isinstance(prompt, str) else tokenizer.decode(ids)
            echo = text if wanted.echo else ""
            self._add(
                job, spec, ids, echo, param="prompt", default_tokens=DEFAULT_COMPLETION_TOKENS
            )
        with self._slot():
            if wanted.options.stream:
                include_usage = wanted.options.include_usage
                return await self._stream(
                    request, job, CompletionChunks(job.envelope, job.echoes, include_usage)
                )
            return await self._collect(job, "text_completion", completion_choice)

    def _model_for(self, options: GenerationOptions) -> tuple[ModelSpec, ChatTokenizer]:
        spec, tokenizer = self._backend.model()
        check_model(options.model, spec)
        return spec, tokenizer

    def _envelope(self, prefix: str, spec: ModelSpec) -> Envelope:
        answer_id = f"{prefix}-{secrets.token_hex(12)}"
        return Envelope(answer_id, int(self._clock.unix_s()), spec.model_id)

    def _add(
        self,
        job: _Job,
        spec: ModelSpec,
        prompt: tuple[int, ...],
        echo: str,
        *,
        param: str,
        default_tokens: int,
    ) -> None:
        check_prompt(prompt, spec, param=param)
        params = sampling_params(
            job.options,
            spec,
            prompt_tokens=len(prompt),
            default_max_tokens=default_tokens,
            random_seed=secrets.randbits(64),
        )
        job.add(prompt, params, echo)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._free_slots <= 0:
            raise TooManyRequests("Too many requests are running here; try again in a moment.")
        self._free_slots -= 1
        try:
            yield
        finally:
            self._free_slots += 1

    def _run(self, job: _Job) -> AsyncGenerator[Piece, None]:
        return generate_answers(
            self._backend,
            job.tokenizer,
            job.prompts,
            job.params,
            job.options.stop,
            job.options.prefixes,
            job.options.lossy,
        )

    async def _collect(
        self, job: _Job, object_name: str, choice: Callable[..., Json]
    ) -> web.Response:
        texts = [[echo] for echo in job.echoes]
        tokens: list[list[TokenText]] = [[] for _ in job.prompts]
        finishes = {}
        usage = Usage(job.prompt_tokens, job.options.n)
        async with aclosing(self._run(job)) as pieces:
            async for piece in pieces:
                usage.count(piece.index, piece.reused_tokens)
                texts[piece.index].append(piece.text)
                tokens[piece.index].extend(piece.tokens)
                if piece.finish is not None:
                    finishes[piece.index] = piece.finish
        with_logprobs = job.options.logprobs is not None
        answer = job.envelope.json(
            object_name,
            [
                choice(
                    index, "".join(texts[index]), tokens[index] if with_logprobs else None, finish
                )
                for index, finish in sorted(finishes.items())
            ],
        )
        answer["usage"] = usage.json()
        return _json(answer)

    async def _stream(self, request: web.Request, job: _Job, chunks: Chunks) -> web.StreamResponse:
        usage = Usage(job.prompt_tokens, job.options.n)
        async with aclosing(self._run(job)) as pieces:
            # The first token decides whether there is an answer at all, so the status waits for it.
            piece: Piece | None = await anext(pieces)
            events = await EventStream.open(request)
            try:
                for chunk in chunks.first():
                    await events.send(chunk)
                while piece is not None:
                    usage.count(piece.index, piece.reused_tokens)
                    for chunk in chunks.of(piece):
                        await events.send(chunk)
                    piece = await anext(pieces, None)
                if job.options.include_usage:
                    await events.send(chunks.usage(usage.json()))
                await events.send("[DONE]")
            except ConnectionResetError:
                return events.response  # the client left; closing `pieces` frees its sessions
            except Exception as error:  # noqa: BLE001 - too late for a status; logged in there
                await events.send(describe_error(error)[1])
            return await events.end()


async def _prompt_ids(tokenizer: ChatTokenizer, prompt: Prompt) -> tuple[int, ...]:
    if isinstance(prompt, tuple):
        return prompt
    return await _encode(lambda: tokenizer.encode(prompt), len(prompt))


async def _encode(encode: Callable[[], Sequence[int]], size_chars: int) -> tuple[int, ...]:
    if size_chars > _INLINE_CHARS:
        return tuple(await asyncio.to_thread(encode))
    return tuple(encode())


def _json(value: Json) -> web.Response:
    return web.Response(text=dumps(value), content_type="application/json")
