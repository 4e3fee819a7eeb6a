"""From the engine's tokens to text that is safe to show: stop strings, halves of characters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from engine.core.errors import WorkerFailed
from engine.core.generation import (
    DraftMode,
    FinishReason,
    Lossy,
    PrefixUse,
    SpeculationWish,
    TokenEvent,
)
from engine.core.sampling_params import SamplingParams
from engine.http.backend import Backend
from engine.http.openai_responses import TokenText
from engine.models.tokenizer import ChatTokenizer, StopMatcher, TextStream


@dataclass(frozen=True, slots=True)
class Piece:
    """What one more token adds to one answer; often nothing, while text is held back."""

    index: int
    text: str
    tokens: tuple[TokenText, ...]
    """Tokens whose text begins in what has been shown so far, each given once; empty unless
    log-probabilities are wanted."""
    finish: FinishReason | None
    reused_tokens: int = 0
    """On an answer's first piece: how much of its prompt had been computed before."""
    drafted_tokens: int = 0
    """As in `TokenEvent`."""
    accepted_tokens: int = 0
    mode: DraftMode = DraftMode.SHARED


class Answer:
    """One answer in the making.

    Text is held back while it could be the beginning of a stop string or the first bytes of a
    character; log-probabilities are held back with the text they belong to.
    """

    def __init__(self, index: int, tokenizer: ChatTokenizer, stops: Sequence[str]) -> None:
        self._index = index
        self._tokenizer = tokenizer
        self._stream = TextStream(tokenizer)
        self._matcher = StopMatcher(stops)
        self._waiting: list[TokenText] = []
        self._read_chars = 0
        self._shown_chars = 0

    def push(self, event: TokenEvent) -> Piece:
        """Take the next token. With `finish` set in the result, the answer is complete."""
        text = ""
        if event.finish is not FinishReason.STOP:
            self._remember(event)
            text = self._stream.push(event.id)
        if event.finish is not None:
            text += self._stream.flush()
        self._read_chars += len(text)
        shown, hit = self._matcher.push(text)
        finish = FinishReason.STOP if hit else event.finish
        if finish is not None and not hit:
            shown += self._matcher.flush()
        self._shown_chars += len(shown)
        tokens = self._release(everything=not hit and bool(finish))
        return Piece(
            self._index,
            shown,
            tokens,
            finish,
            event.reused_tokens,
            event.drafted_tokens,
            event.accepted_tokens,
            event.mode,
        )

    def _remember(self, event: TokenEvent) -> None:
        if event.logprobs is None:
            return
        self._waiting.append(
            TokenText(
                data=self._tokenizer.token_bytes(event.id),
                text_offset=self._read_chars,
                logprobs=event.logprobs,
                top_data=tuple(
                    self._tokenizer.token_bytes(other) for other, _ in event.logprobs.top
                ),
            )
        )

    def _release(self, *, everything: bool) -> tuple[TokenText, ...]:
        ready = tuple(
            token for token in self._waiting if everything or token.text_offset < self._shown_chars
        )
        self._waiting = self._waiting[len(ready) :]
        return ready


async def generate_answers(
    backend: Backend,
    tokenizer: ChatTokenizer,
    prompts: Sequence[Sequence[int]],
    params: Sequence[SamplingParams],
    stops: Sequence[str],
    prefixes: PrefixUse | None = None,
    lossy: Lossy | None = None,
    speculation: SpeculationWish | None = None,
) -> AsyncGenerator[Piece, None]:
    """Continue each prompt; one piece for each token, until every answer has finished.

    Closing the generator frees the sessions at once. With stop strings each sequence runs on its
    own, because only so can one be given up while the others go on; without, they are one batch.

    Raises:
        EngineError: The engine could not go on.
    """

    # The contract asks for iterators that can be closed, which are generators to the type system.
    def events(some: slice) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        events = backend.generate(prompts[some], params[some], prefixes, lossy, speculation)
        return cast(AsyncGenerator[tuple[int, TokenEvent], None], events)

    def batch(some: slice) -> AsyncGenerator[Piece, None]:
        answers = [Answer(index, tokenizer, stops) for index in range(len(prompts))[some]]
        return _batch(events(some), answers)

    if stops and len(prompts) > 1:
        pieces = _merge([batch(slice(index, index + 1)) for index in range(len(prompts))])
    else:
        pieces = batch(slice(None))
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece


async def _batch(
    events: AsyncGenerator[tuple[int, TokenEvent], None], answers: Sequence[Answer]
) -> AsyncGenerator[Piece, None]:
    unfinished = set(range(len(answers)))
    async with aclosing(events):
        async for row, event in events:
            piece = answers[row].push(event)
            if piece.finish is not None:
                unfinished.discard(row)
            yield piece
            if not unfinished:
                return
    raise WorkerFailed("The engine stopped before the answer was complete; ask again.")


async def _merge(sources: Sequence[AsyncGenerator[Piece, None]]) -> AsyncGenerator[Piece, None]:
    pending = {asyncio.create_task(_next(source)): source for source in sources}
    try:
        while pending:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                source = pending.pop(task)
                piece = task.result()
                if piece is not None:
                    pending[asyncio.create_task(_next(source))] = source
                    yield piece
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for source in sources:
            await source.aclose()


async def _next(source: AsyncIterator[Piece]) -> Piece | None:
    return await anext(source, None)
