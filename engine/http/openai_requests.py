"""OpenAI's requests as the engine's values.

Pure. Unknown fields are ignored, as OpenAI's clients expect; known ones that we cannot honour are
refused, because an answer that silently ignores `tools` or a JSON schema is worse than none.
Beyond OpenAI's fields there are `top_k`, `min_p`, `repetition_penalty`; `share_prefixes`: whether
stages may let others reuse what they compute of the prompt, and us what they computed for others;
`lossy`: whether and how stages may round what they send one another; and `draft`, with `draft_tokens`:
what proposes tokens that are verified several at a time, which changes nothing but the speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from engine.core.errors import ContextTooLong, ModelNotFound, RequestError
from engine.core.generation import (
    DRAFT_KINDS,
    MAX_DRAFT_TOKENS,
    Lossy,
    PrefixUse,
    Speculation,
)
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.http.fields import Fields, check_range, text_value, wrong_type
from engine.http.openai_prompts import ChatMessage, Prompt, chat_messages, completion_prompts

MAX_CHOICES: Final = 16
MAX_SEQUENCES: Final = 256
"""Prompts times choices of one request."""
MAX_STOPS: Final = 4
MAX_TOP_LOGPROBS: Final = 20
MAX_LOGIT_BIASES: Final = 4096
DEFAULT_MODEL: Final = "default"
LOSSY_VALUES: Final[tuple[Lossy, ...]] = ("", "rows8", "blocks8")

DEFAULT_CHAT_TOKENS: Final = 2048
"""KV room is reserved for the whole answer when a session opens, so "as long as you like" must
have an end or two chats would fill a small cache. The answer then ends with `length`."""
DEFAULT_COMPLETION_TOKENS: Final = 16
"""OpenAI's own default for `/v1/completions`."""

_GREEDY_BELOW_TEMPERATURE: Final = 1e-5
"""Logits divided by less than this overflow; the most likely token is what such a value means."""
_LEAST_TOP_P: Final = 1e-6
"""What `top_p: 0` becomes: a nucleus always holds at least the most likely token."""
_INT64: Final = (-(1 << 63), (1 << 63) - 1)
_MAX_TOKENS: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """What both endpoints have in common, checked, and not yet bound to a model."""

    model: str | None
    stream: bool
    include_usage: bool
    n: int
    stop: tuple[str, ...]
    max_tokens: int | None
    temperature: float | None
    """None, here and below: as the model's makers recommend."""
    top_p: float | None
    top_k: int | None
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: tuple[tuple[int, float], ...]
    seed: int | None
    logprobs: int | None
    prefixes: PrefixUse | None
    """None, here and below: as the settings say."""
    lossy: Lossy | None
    speculation: Speculation | None


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
    options = _options(fields, logprobs=(top or 0) if wanted else None)
    return ChatRequest(options, chat_messages(fields.raw("messages")))


def completion_request(body: Mapping[str, object]) -> CompletionRequest:
    """Check a completion request.

    Raises:
        RequestError: A field is wrong, missing, or asks for something we cannot do.
    """
    fields = Fields(body)
    logprobs = fields.integer("logprobs", 0, MAX_TOP_LOGPROBS)
    options = _options(fields, logprobs=logprobs)
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


def _options(fields: Fields, *, logprobs: int | None) -> GenerationOptions:
    _refuse_formats(fields)
    stream = fields.boolean("stream")
    stream_options = fields.mapping("stream_options")
    if stream_options and not stream:
        raise RequestError("stream_options needs stream to be true.", param="stream_options")
    include_usage = stream_options.get("include_usage")
    if include_usage is not None and not isinstance(include_usage, bool):
        raise wrong_type("stream_options.include_usage", "a boolean", include_usage)
    temperature = fields.optional_number("temperature", 0.0, 2.0)
    if temperature is not None and temperature < _GREEDY_BELOW_TEMPERATURE:
        temperature = 0.0
    top_p = fields.optional_number("top_p", 0.0, 1.0)
    return GenerationOptions(
        model=fields.text("model"),
        stream=stream,
        include_usage=include_usage is True,
        n=fields.integer("n", 1, MAX_CHOICES) or 1,
        stop=_stops(fields.raw("stop")),
        max_tokens=_max_tokens(fields),
        temperature=temperature,
        top_p=None if top_p is None else max(_LEAST_TOP_P, top_p),
        top_k=fields.integer("top_k", 0, _MAX_TOKENS),
        min_p=fields.number("min_p", 0.0, 0.0, 1.0),
        repetition_penalty=fields.number("repetition_penalty", 1.0, 0.01, 100.0),
        presence_penalty=fields.number("presence_penalty", 0.0, -2.0, 2.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -2.0, 2.0),
        logit_bias=_logit_bias(fields.mapping("logit_bias")),
        seed=fields.integer("seed", *_INT64),
        logprobs=logprobs,
        prefixes=_PREFIXES[fields.optional_boolean("share_prefixes")],
        lossy=_lossy(fields.text("lossy")),
        speculation=_speculation(fields),
    )


_PREFIXES: Final = {None: None, True: PrefixUse.SHARED, False: PrefixUse.OWN}
_N = TypeVar("_N", int, float)


def _or(asked: _N | None, default: _N) -> _N:
    return default if asked is None else asked


def _max_tokens(fields: Fields) -> int | None:
    older = fields.integer("max_tokens", 1, _MAX_TOKENS)
    newer = fields.integer("max_completion_tokens", 1, _MAX_TOKENS)
    if older is not None and newer is not None and older != newer:
        raise RequestError(
            "max_tokens and max_completion_tokens contradict each other; send only one of them.",
            param="max_tokens",
        )
    return older if newer is None else newer


def _stops(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    if len(values) > MAX_STOPS:
        raise RequestError(f"stop may hold {MAX_STOPS} strings, not {len(values)}.", param="stop")
    stops = tuple(text_value(item, "stop") for item in values)
    if "" in stops:
        raise RequestError("stop must not hold an empty string.", param="stop")
    return stops


def _lossy(value: str | None) -> Lossy | None:
    if value is None:
        return None
    for known in LOSSY_VALUES:
        if value == known:
            return known
    raise RequestError(
        "lossy must be rows8 or blocks8, or an empty string for exact answers.", param="lossy"
    )


def _speculation(fields: Fields) -> Speculation | None:
    draft, most = fields.text("draft"), fields.integer("draft_tokens", 1, MAX_DRAFT_TOKENS)
    if draft is None:
        return None
    for known in DRAFT_KINDS:
        if draft == known:
            return Speculation(known) if most is None else Speculation(known, most)
    raise RequestError(f"draft must be one of {', '.join(DRAFT_KINDS)}.", param="draft")


def _logit_bias(biases: Mapping[str, object]) -> tuple[tuple[int, float], ...]:
    if len(biases) > MAX_LOGIT_BIASES:
        raise RequestError(
            f"logit_bias may name {MAX_LOGIT_BIASES} tokens, not {len(biases)}.",
            param="logit_bias",
        )
    result: dict[int, float] = {}
    for key, bias in biases.items():
        # isdecimal alone would let Arabic or full-width digits through.
        if not (key.isascii() and key.isdecimal() and len(key) <= 9):
            raise RequestError(
                f"logit_bias maps token ids to numbers; {key[:40]!r} is not a token id.",
                param="logit_bias",
            )
        if isinstance(bias, bool) or not isinstance(bias, int | float):
            raise wrong_type(f"logit_bias[{key}]", "a number", bias)
        check_range(f"logit_bias[{key}]", bias, -100, 100)
        result[int(key)] = float(bias)
    return tuple(sorted(result.items()))


def _refuse_tools(fields: Fields) -> None:
    for name in ("tools", "functions"):
        if fields.raw(name):
            raise RequestError(f"{name} are not supported; leave them out.", param=name)
    for name in ("tool_choice", "function_call"):
        if fields.raw(name) not in (None, "none", "auto"):
            raise RequestError(f"{name} is not supported; leave it out.", param=name)


def _refuse_formats(fields: Fields) -> None:
    response_format = fields.mapping("response_format")
    if response_format and response_format.get("type") != "text":
        raise RequestError(
            "response_format can only be text: answers cannot be bound to JSON or a schema.",
            param="response_format",
        )
    if fields.raw("modalities") not in (None, ["text"]):
        raise RequestError("modalities can only be text.", param="modalities")
    if fields.raw("audio") is not None:
        raise RequestError("audio is not supported; leave it out.", param="audio")
