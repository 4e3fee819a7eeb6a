"""How much a long prompt slows down the chats that run beside it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pydantic import BaseModel

from engine.bench.bed import STEP_LIMIT_S, Bed, say
from engine.bench.measured import Crowded
from engine.bench.specs import Crowd
from engine.core.errors import ConfigError

_BEFORE_TOKENS = 40
MAX_CHAT_TOKENS = 2048
"""New tokens of a chat before it begins again."""


class Intervals(BaseModel):
    """Times between two tokens of one chat, in ms."""

    median: float
    p95: float
    max: float
    count: int


class Interference(BaseModel):
    """Chats before and while a long prompt is computed."""

    chats: int
    long_prompt_tokens: int
    before_ms: Intervals
    during_ms: Intervals
    ratio_median: float
    """During over before."""
    ratio_p95: float
    prefill_s: float
    """Until the long prompt's first token."""


async def measure_interference(bed: Bed) -> Interference:
    """Let chats run, then send a long prompt.

    Raises:
        BenchFailed: A program failed.
        ConfigError: The prompt was computed before any chat had a token.
    """
    await bed.swarm.start_client({})
    chats = bed.model.prompts[: bed.bench.chats]
    await bed.warm_up(chats)
    say(f"{len(chats)} chats, then a prompt of {len(bed.model.long_prompt)} tokens")
    order = Crowd(
        chats=chats,
        chat_tokens=chat_tokens(bed.model.files.spec.max_position_embeddings, len(chats[0])),
        long_prompt=bed.model.long_prompt,
        before_tokens=_BEFORE_TOKENS,
    )
    limit_s = STEP_LIMIT_S * (1 + _BEFORE_TOKENS + len(order.long_prompt) / 16)
    crowded = Crowded.model_validate(await bed.swarm.ask(order, limit_s))
    return interference(crowded, len(chats), len(order.long_prompt))


def chat_tokens(context_tokens: int, prompt_tokens: int) -> int:
    """New tokens of each chat."""
    return min(MAX_CHAT_TOKENS, context_tokens - prompt_tokens)


def interference(crowded: Crowded, chats: int, long_prompt_tokens: int) -> Interference:
    """From the times to what is reported.

    Raises:
        ConfigError: Some of them are missing.
    """
    if len(crowded.before_s) < 2 or len(crowded.during_s) < 2:
        raise ConfigError(
            "The prompt was computed before the chats had any tokens beside it; ask for a longer "
            "one."
        )
    before, during = _intervals(crowded.before_s), _intervals(crowded.during_s)
    return Interference(
        chats=chats,
        long_prompt_tokens=long_prompt_tokens,
        before_ms=before,
        during_ms=during,
        ratio_median=during.median / before.median,
        ratio_p95=during.p95 / before.p95,
        prefill_s=crowded.prefill_s,
    )


def _intervals(times_s: Sequence[float]) -> Intervals:
    times_ms = sorted(1e3 * time_s for time_s in times_s)
    return Intervals(
        median=statistics.median(times_ms),
        p95=statistics.quantiles(times_ms, n=20, method="inclusive")[-1],
        max=times_ms[-1],
        count=len(times_ms),
    )
