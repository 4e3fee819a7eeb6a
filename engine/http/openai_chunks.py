"""Streamed answers, chunk by chunk, in OpenAI's two forms. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from engine.http.answers import Piece
from engine.http.openai_responses import Envelope, Json, chat_delta, completion_choice, dumps


class Chunks(Protocol):
    """What the routes send, as lines of JSON."""

    def first(self) -> Iterator[str]:
        """Before any token."""
        ...

    def of(self, piece: Piece) -> Iterator[str]:
        """For one more token; nothing while its text is held back."""
        ...

    def usage(self, usage: Json) -> str:
        """At the end, when usage was asked for."""
        ...


class ChatChunks:
    """A chat answer: who speaks, then text, then the reason to finish."""

    def __init__(self, envelope: Envelope, choices: int, include_usage: bool) -> None:
        self._envelope = envelope
        self._choices = choices
        self._include_usage = include_usage

    def first(self) -> Iterator[str]:
        """See `Chunks`."""
        for index in range(self._choices):
            yield self._chunk(chat_delta(index, {"role": "assistant", "content": ""}))

    def of(self, piece: Piece) -> Iterator[str]:
        """See `Chunks`."""
        if piece.text or piece.tokens:
            yield self._chunk(chat_delta(piece.index, {"content": piece.text}, piece.tokens))
        if piece.finish is not None:
            yield self._chunk(chat_delta(piece.index, {}, finish=piece.finish))

    def usage(self, usage: Json) -> str:
        """See `Chunks`."""
        return dumps(self._envelope.json("chat.completion.chunk", []) | {"usage": usage})

    def _chunk(self, choice: Json) -> str:
        chunk = self._envelope.json("chat.completion.chunk", [choice])
        return dumps(chunk | {"usage": None} if self._include_usage else chunk)


class CompletionChunks:
    """A completion; with `echo` the prompt comes first."""

    def __init__(self, envelope: Envelope, echoes: Sequence[str], include_usage: bool) -> None:
        self._envelope = envelope
        self._echoes = echoes
        self._include_usage = include_usage

    def first(self) -> Iterator[str]:
        """See `Chunks`."""
        for index, echo in enumerate(self._echoes):
            if echo:
                yield self._chunk(completion_choice(index, echo, None, None))

    def of(self, piece: Piece) -> Iterator[str]:
        """See `Chunks`."""
        if piece.text or piece.tokens or piece.finish is not None:
            tokens = piece.tokens or None
            yield self._chunk(completion_choice(piece.index, piece.text, tokens, piece.finish))

    def usage(self, usage: Json) -> str:
        """See `Chunks`."""
        return dumps(self._envelope.json("text_completion", []) | {"usage": usage})

    def _chunk(self, choice: Json) -> str:
        chunk = self._envelope.json("text_completion", [choice])
        return dumps(chunk | {"usage": None} if self._include_usage else chunk)
