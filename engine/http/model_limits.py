"""Requests against the model that shall answer them: its name, its vocabulary, its context. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from engine.core.errors import ContextTooLong, ModelNotFound, RequestError
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.http.openai_options import GenerationOptions

DEFAULT_MODEL: Final = "default"
DEFAULT_CHAT_TOKENS: Final = 2048
"""KV room is reserved for the whole answer when a session opens, so "as long as you like" must
have an end or two chats would fill a small cache. The answer then ends with `length`."""
DEFAULT_COMPLETION_TOKENS: Final = 16
"""OpenAI's own default for `/v1/completions`."""

_N = TypeVar("_N", int, float)


def check_model(requested: str | None, spec: ModelSpec) -> None:
    """Refuse a model that is not the one we serve.

    Raises:
        ModelNotFound: With the names that would do.
    """
    if requested not in (None, DEFAULT_MODEL, spec.model_id, spec.name):
        raise ModelNotFound(
            f"The model {requested[:100]!r} is not served here; available: {spec.model_id} "
            f"(also as {spec.name!r} or {DEFAULT_MODEL!r})."
        )


def check_prompt(prompt: Sequence[int], spec: ModelSpec, *, param: str) -> None:
    """Refuse token ids that the model cannot take.

    Raises:
        RequestError: There are none, or one is not in the vocabulary.
        ContextTooLong: There are more than the context holds.
    """
    if not prompt:
        raise RequestError(f"{param} is empty: there is nothing to continue.", param=param)
    if max(prompt) >= spec.vocab_size:
        raise RequestError(
            f"{param} holds the token id {max(prompt)}, but the vocabulary ends at "
            f"{spec.vocab_size - 1}.",
            param=param,
        )
    if len(prompt) >= spec.max_position_embeddings:
        raise ContextTooLong(
            f"The prompt has {len(prompt)} tokens, but the model's context holds "
            f"{spec.max_position_embeddings} with the answer; shorten the prompt.",
            param=param,
        )


def sampling_params(
    options: GenerationOptions,
    spec: ModelSpec,
    *,
    prompt_tokens: int,
    default_max_tokens: int,
    random_seed: int,
) -> tuple[SamplingParams, ...]:
    """One value for each of the `n` choices of one prompt.

    Args:
        options: The request.
        spec: The model it runs on.
        prompt_tokens: Length of the prompt, already checked by `check_prompt`.
        default_max_tokens: Length of the answer when the request does not say.
        random_seed: 64 random bits, used when the request gives no seed.

    Raises:
        ContextTooLong: Prompt and answer together exceed the context.
        RequestError: A biased token is not in the vocabulary.
    """
    room = spec.max_position_embeddings - prompt_tokens
    if options.max_tokens is not None and options.max_tokens > room:
        raise ContextTooLong(
            f"The prompt has {prompt_tokens} tokens and max_tokens asks for {options.max_tokens} "
            f"more, but the model's context holds {spec.max_position_embeddings}; shorten one of "
            "them.",
            param="max_tokens",
        )
    for token_id, _ in options.logit_bias:
        if token_id >= spec.vocab_size:
            raise RequestError(
                f"logit_bias names the token id {token_id}, but the vocabulary ends at "
                f"{spec.vocab_size - 1}.",
                param="logit_bias",
            )
    seed = random_seed if options.seed is None else options.seed
    return tuple(
        SamplingParams(
            temperature=_or(options.temperature, spec.default_temperature),
            top_p=_or(options.top_p, spec.default_top_p),
            top_k=_or(options.top_k, spec.default_top_k),
            min_p=options.min_p,
            repetition_penalty=options.repetition_penalty,
            presence_penalty=options.presence_penalty,
            frequency_penalty=options.frequency_penalty,
            logit_bias=options.logit_bias,
            seed=seed % (1 << 64),
            choice=choice,
            logprobs=options.logprobs,
            stop_token_ids=spec.eos_token_ids,
            max_new_tokens=options.max_tokens or min(default_max_tokens, room),
        )
        for choice in range(options.n)
    )


def _or(asked: _N | None, default: _N) -> _N:
    return default if asked is None else asked
