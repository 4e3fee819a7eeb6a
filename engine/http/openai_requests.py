"""OpenAI's requests as the engine's values.

Pure. Unknown fields are ignored, as OpenAI's clients expect; known ones that we cannot honour are
refused, because an answer that silently ignores `tools` or a JSON schema is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.core.errors import RequestError
from engine.http.fields import Fields
from engine.http.openai_options import (
    MAX_CHOICES,
    MAX_TOP_LOGPROBS,
    GenerationOptions,
    generation_options,
)
from engine.http.openai_prompts import ChatMessage, Prompt, chat_messages, completion_prompts

MAX_SEQUENCES: Final = 256
"""Prompts times choices of one request."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A body of `/v1/chat/completions`."""

    options: GenerationOptions
    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A body of `/v1/completions`."""

    options: GenerationOptions
    prompts: tuple[Prompt, ...]
    echo: bool


def chat_request(body: Mapping[str, object]) -> ChatRequest:
    """Check a chat request.

    Raises:
        RequestError: A field is wrong, missing, or asks for something we cannot do.
    """
    fields = Fields(body)
    _refuse_tools(fields)
    top = fields.integer("top_logprobs", 0, MAX_TOP_LOGPROBS)
    wanted = fields.boolean("logprobs")
    if top is not None and not wanted:
        raise RequestError("top_logprobs needs logprobs to be true.", param="top_logprobs")
    options = generation_options(fields, logprobs=(top or 0) if wanted else None)
    return ChatRequest(options, chat_messages(fields.raw("messages")))


def completion_request(body: Mapping[str, object]) -> CompletionRequest:
    """Check a completion request.

    Raises:
        RequestError: A field is wrong, missing, or asks for something we cannot do.
    """
    fields = Fields(body)
    logprobs = fields.integer("logprobs", 0, MAX_TOP_LOGPROBS)
    options = generation_options(fields, logprobs=logprobs)
    echo = fields.boolean("echo")
    if echo and logprobs is not None:
        raise RequestError(
            "echo together with logprobs is not supported: probabilities are reported for new "
            "tokens alone.",
            param="echo",
        )
    best_of = fields.integer("best_of", 1, MAX_CHOICES)
    if best_of is not None and best_of != options.n:
        raise RequestError("best_of is only supported when it equals n.", param="best_of")
    if fields.text("suffix"):
        raise RequestError("suffix is not supported; leave it out.", param="suffix")
    prompts = completion_prompts(fields.raw("prompt"))
    if len(prompts) * options.n > MAX_SEQUENCES:
        raise RequestError(
            f"prompt and n ask for {len(prompts) * options.n} answers at once; the limit is "
            f"{MAX_SEQUENCES}.",
            param="prompt",
        )
    return CompletionRequest(options, prompts, echo)


def _refuse_tools(fields: Fields) -> None:
    for name in ("tools", "functions"):
        if fields.raw(name):
            raise RequestError(f"{name} are not supported; leave them out.", param=name)
    for name in ("tool_choice", "function_call"):
        if fields.raw(name) not in (None, "none", "auto"):
            raise RequestError(f"{name} is not supported; leave it out.", param=name)
