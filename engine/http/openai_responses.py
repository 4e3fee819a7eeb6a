"""The engine's values as OpenAI's answers. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.generation import DraftMode, FinishReason, TokenLogprobs
from engine.core.model_spec import ModelSpec

Json = dict[str, object]


def dumps(value: Json) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class TokenText:
    """One token of an answer and where its text begins."""

    data: bytes
    """UTF-8, perhaps a part of a character."""
    text_offset: int
    """Characters of the answer before it."""
    logprobs: TokenLogprobs
    top_data: tuple[bytes, ...]
    """The same for each of `logprobs.top`, in their order."""


@dataclass(slots=True)
class Usage:
    """Tokens read and written; a prompt counts once, however many choices continue it."""

    prompt_tokens: int
    choices: int
    """Of each prompt."""
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompts, those that had been computed before."""
    drafted_tokens: int = 0
    """Proposed for the answers, whatever became of them."""
    accepted_tokens: int = 0
    """Of these, those that are part of the answers."""
    draft_rounds: Counter[DraftMode] = field(default_factory=Counter)
    """Rounds that had drafts, by how those were verified."""

    def count(
        self,
        index: int,
        *,
        reused_tokens: int,
        drafted_tokens: int,
        accepted_tokens: int,
        mode: DraftMode = DraftMode.SHARED,
    ) -> None:
        """Count a token of answer `index`, with what its event says."""
        self.completion_tokens += 1
        self.drafted_tokens += drafted_tokens
        self.draft_rounds[mode] += drafted_tokens > 0
        self.accepted_tokens += accepted_tokens
        if index % self.choices == 0:
            self.cached_tokens += reused_tokens

    def json(self) -> Json:
        """OpenAI's usage object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
            "drafted_tokens": self.drafted_tokens,
            "accepted_tokens": self.accepted_tokens,
            "draft_rounds": {
                mode.value: rounds for mode, rounds in self.draft_rounds.items() if rounds
            },
        }


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all chunks of one answer share."""

    id: str
    created_unix_s: int
    model_id: str

    def json(self, object_name: str, choices: Sequence[Json]) -> Json:
        """An answer or chunk without usage."""
        return {
            "id": self.id,
            "object": object_name,
            "created": self.created_unix_s,
            "model": self.model_id,
            "choices": list(choices),
        }


def model_json(spec: ModelSpec, created_unix_s: int) -> Json:
    """One entry of `/v1/models`."""
    return {
        "id": spec.model_id,
        "object": "model",
        "created": created_unix_s,
        "owned_by": "shoal",
        "context_length": spec.max_position_embeddings,
    }


def chat_choice(
    index: int, text: str, tokens: Sequence[TokenText] | None, finish: FinishReason
) -> Json:
    """One whole answer of `/v1/chat/completions`."""
    return {
        "index": index,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None if tokens is None else chat_logprobs(tokens),
        "finish_reason": finish.value,
    }


def chat_delta(
    index: int,
    delta: Json,
    tokens: Sequence[TokenText] | None = None,
    finish: FinishReason | None = None,
) -> Json:
    """A piece of an answer of `/v1/chat/completions`."""
    return {
        "index": index,
        "delta": delta,
        "logprobs": chat_logprobs(tokens) if tokens else None,
        "finish_reason": None if finish is None else finish.value,
    }


def completion_choice(
    index: int, text: str, tokens: Sequence[TokenText] | None, finish: FinishReason | None
) -> Json:
    """An answer of `/v1/completions`, or a piece of one: they have the same shape."""
    return {
        "index": index,
        "text": text,
        "logprobs": None if tokens is None else completion_logprobs(tokens),
        "finish_reason": None if finish is None else finish.value,
    }


def chat_logprobs(tokens: Sequence[TokenText]) -> Json:
    """OpenAI's log-probabilities, the chat form."""
    return {
        "content": [
            {
                **_chat_token(token.data, token.logprobs.logprob),
                "top_logprobs": [
                    _chat_token(data, logprob)
                    for data, (_, logprob) in zip(token.top_data, token.logprobs.top, strict=True)
                ],
            }
            for token in tokens
        ],
        "refusal": None,
    }


def completion_logprobs(tokens: Sequence[TokenText]) -> Json:
    """OpenAI's log-probabilities, the older form."""
    return {
        "tokens": [_text(token.data) for token in tokens],
        "token_logprobs": [_finite(token.logprobs.logprob) for token in tokens],
        "top_logprobs": [
            {
                _text(data): _finite(logprob)
                # Two ids may share a text (halves of a character); the likelier one stays.
                for data, (_, logprob) in reversed(
                    list(zip(token.top_data, token.logprobs.top, strict=True))
                )
            }
            for token in tokens
        ],
        "text_offset": [token.text_offset for token in tokens],
    }


def _chat_token(data: bytes, logprob: float) -> Json:
    return {"token": _text(data), "logprob": _finite(logprob), "bytes": list(data)}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _finite(logprob: float) -> float:
    return max(logprob, -9999.0)  # JSON has no infinity; this is OpenAI's own floor
