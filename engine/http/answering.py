"""From a checked request to its answer: prompts to ids, the engine's tokens to OpenAI's object."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from engine.core.clock import Clock
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.http.answers import Piece, generate_answers
from engine.http.backend import Backend
from engine.http.model_limits import (
    DEFAULT_CHAT_TOKENS,
    DEFAULT_COMPLETION_TOKENS,
    check_model,
    check_prompt,
    sampling_params,
)
from engine.http.openai_options import GenerationOptions
from engine.http.openai_prompts import Prompt
from engine.http.openai_requests import ChatRequest, CompletionRequest
from engine.http.openai_responses import (
    Envelope,
    Json,
    TokenText,
    Usage,
    chat_choice,
    completion_choice,
)
from engine.models.tokenizer import ChatTokenizer

_INLINE_CHARS: Final = 20_000
"""Longer prompts are tokenized beside the event loop, so that other streams go on."""


@dataclass(slots=True)
class Question:
    """One request, ready to run: every sequence with its parameters."""

    object_name: str
    """What OpenAI calls the answer."""
    choice: Callable[..., Json]
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


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """OpenAI's object, and what it cost."""

    json: Json
    usage: Usage


class Answering:
    """Answers requests through the engine."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock

    async def chat(self, wanted: ChatRequest) -> Question:
        """Prepare a conversation.

        Raises:
            EngineError: The model is not ready, or cannot take the request.
        """
        spec, tokenizer = self._model_for(wanted.options)
        messages = [{"role": turn.role, "content": turn.content} for turn in wanted.messages]
        size_chars = sum(len(turn.content) for turn in wanted.messages)
        prompt = await _encode(lambda: tokenizer.encode_chat(messages), size_chars)
        envelope = self._envelope("chatcmpl", spec)
        question = Question("chat.completion", chat_choice, wanted.options, envelope, tokenizer)
        _add(question, spec, prompt, "", param="messages", default_tokens=DEFAULT_CHAT_TOKENS)
        return question

    async def completions(self, wanted: CompletionRequest) -> Question:
        """Prepare texts to be continued.

        Raises:
            EngineError: The model is not ready, or cannot take the request.
        """
        spec, tokenizer = self._model_for(wanted.options)
        envelope = self._envelope("cmpl", spec)
        question = Question(
            "text_completion", completion_choice, wanted.options, envelope, tokenizer
        )
        for prompt in wanted.prompts:
            ids = await _prompt_ids(tokenizer, prompt)
            # Before decoding for the echo: an id outside the vocabulary has no text.
            check_prompt(ids, spec, param="prompt")
            text = prompt if isinstance(prompt, str) else tokenizer.decode(ids)
            echo = text if wanted.echo else ""
            _add(
                question, spec, ids, echo, param="prompt", default_tokens=DEFAULT_COMPLETION_TOKENS
            )
        return question

    def pieces(self, question: Question) -> AsyncGenerator[Piece, None]:
        """The answers as they come."""
        return generate_answers(
            self._backend,
            question.tokenizer,
            question.prompts,
            question.params,
            question.options.stop,
            question.options.prefixes,
            question.options.lossy,
            question.options.speculation,
        )

    async def answer(
        self, question: Question, on_token: Callable[[], None] = lambda: None
    ) -> WholeAnswer:
        """The answers as one object; `on_token` is called for each token.

        Raises:
            EngineError: The engine could not go on.
        """
        texts = [[echo] for echo in question.echoes]
        tokens: list[list[TokenText]] = [[] for _ in question.prompts]
        finishes = {}
        usage = Usage(question.prompt_tokens, question.options.n)
        async with aclosing(self.pieces(question)) as pieces:
            async for piece in pieces:
                on_token()
                usage.count(
                    piece.index,
                    reused_tokens=piece.reused_tokens,
                    drafted_tokens=piece.drafted_tokens,
                    accepted_tokens=piece.accepted_tokens,
                    mode=piece.mode,
                )
                texts[piece.index].append(piece.text)
                tokens[piece.index].extend(piece.tokens)
                if piece.finish is not None:
                    finishes[piece.index] = piece.finish
        with_logprobs = question.options.logprobs is not None
        answer = question.envelope.json(
            question.object_name,
            [
                question.choice(
                    index, "".join(texts[index]), tokens[index] if with_logprobs else None, finish
                )
                for index, finish in sorted(finishes.items())
            ],
        )
        answer["usage"] = usage.json()
        return WholeAnswer(answer, usage)

    def _model_for(self, options: GenerationOptions) -> tuple[ModelSpec, ChatTokenizer]:
        spec, tokenizer = self._backend.model()
        check_model(options.model, spec)
        return spec, tokenizer

    def _envelope(self, prefix: str, spec: ModelSpec) -> Envelope:
        answer_id = f"{prefix}-{secrets.token_hex(12)}"
        return Envelope(answer_id, int(self._clock.unix_s()), spec.model_id)


def _add(
    question: Question,
    spec: ModelSpec,
    prompt: tuple[int, ...],
    echo: str,
    *,
    param: str,
    default_tokens: int,
) -> None:
    check_prompt(prompt, spec, param=param)
    params = sampling_params(
        question.options,
        spec,
        prompt_tokens=len(prompt),
        default_max_tokens=default_tokens,
        random_seed=secrets.randbits(64),
    )
    question.add(prompt, params, echo)


async def _prompt_ids(tokenizer: ChatTokenizer, prompt: Prompt) -> tuple[int, ...]:
    if isinstance(prompt, tuple):
        return prompt
    return await _encode(lambda: tokenizer.encode(prompt), len(prompt))


async def _encode(encode: Callable[[], Sequence[int]], size_chars: int) -> tuple[int, ...]:
    if size_chars > _INLINE_CHARS:
        return tuple(await asyncio.to_thread(encode))
    return tuple(encode())
