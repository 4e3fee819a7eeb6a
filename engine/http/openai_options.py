"""How answers are to be made: the fields that OpenAI's chats and completions have in common. Pure.

Beyond OpenAI's there are `top_k`, `min_p`, `repetition_penalty`; `share_prefixes`: whether stages may let
others reuse what they compute of the prompt, and us what they computed for others; `lossy`: whether and how
stages may round what they send one another; and `draft`, with `draft_tokens` and `pipelined`: what proposes
tokens that are verified several at a time, and whether the next set out before the last ones are (or
wait at the first stage, beside a closed ring), which changes nothing but the speed; and `draft_mode`: how a
model's are verified where tokens are drawn by chance, `auto` for any way that keeps the distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.core.errors import RequestError
from engine.core.generation import (
    DRAFT_KINDS,
    MAX_DRAFT_TOKENS,
    PIPELINED_VALUES,
    DraftMode,
    DraftModeWish,
    Lossy,
    PrefixUse,
    SpeculationWish,
)
from engine.http.fields import Fields, check_range, text_value, wrong_type

MAX_CHOICES: Final = 16
MAX_STOPS: Final = 4
MAX_TOP_LOGPROBS: Final = 20
MAX_LOGIT_BIASES: Final = 4096
LOSSY_VALUES: Final[tuple[Lossy, ...]] = ("", "rows8", "blocks8")


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
    speculation: SpeculationWish | None


def generation_options(fields: Fields, *, logprobs: int | None) -> GenerationOptions:
    """Check the fields that both endpoints have.

    Raises:
        RequestError: One is wrong, or asks for something we cannot do.
    """
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


def _speculation(fields: Fields) -> SpeculationWish | None:
    draft, most = fields.text("draft"), fields.integer("draft_tokens", 1, MAX_DRAFT_TOKENS)
    asked = fields.text("pipelined")
    pipelined = next((known for known in PIPELINED_VALUES if asked in (known, None)), None)
    if pipelined is None:
        raise RequestError(
            f"pipelined must be one of {', '.join(PIPELINED_VALUES)}.", param="pipelined"
        )
    mode = _draft_mode(fields.text("draft_mode"))
    kind = next((known for known in DRAFT_KINDS if draft == known), None)
    if kind is None and draft is not None:
        raise RequestError(f"draft must be one of {', '.join(DRAFT_KINDS)}.", param="draft")
    if kind is None and mode not in (DraftMode.SHARED, "auto"):
        raise RequestError("draft_mode needs draft to be model.", param="draft_mode")
    if (kind, most, asked, mode) == (None, None, None, DraftMode.SHARED):
        return None
    return SpeculationWish(kind, most, pipelined, mode)


def _draft_mode(value: str | None) -> DraftModeWish:
    if value == "auto":
        return "auto"
    try:
        return DraftMode.SHARED if value is None else DraftMode(value)
    except ValueError as error:
        raise RequestError(
            f"draft_mode must be one of {', '.join(DraftMode)}, auto.", param="draft_mode"
        ) from error


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
