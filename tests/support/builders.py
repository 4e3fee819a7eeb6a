"""Values for tests, with defaults so that a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.protocol.frames import Dtype, Row, RowFlags
from engine.server.scheduler import Work


def stage_info(
    peer: str,
    start: int,
    end: int,
    *,
    state: StageState = StageState.ONLINE,
    kv_free_tokens: int = 10_000,
    kv_ram_free_tokens: int = 10_000,
    decode_tokens_per_s: float = 0.0,
    **fields: Any,
) -> StageInfo:
    """A stage's announcement."""
    return StageInfo(
        peer=PeerId(peer),
        span=Span(start, end),
        state=state,
        kv_free_tokens=kv_free_tokens,
        kv_ram_free_tokens=kv_ram_free_tokens,
        decode_tokens_per_s=decode_tokens_per_s,
        addresses=(),
        version="test",
        **fields,
    )


def snapshot(num_blocks: int, *stages: StageInfo) -> SwarmSnapshot:
    """A swarm."""
    return SwarmSnapshot(model_id="tiny@0", num_blocks=num_blocks, stages=stages)


def work(
    session: int,
    count: int = 1,
    *,
    owner: str = "client",
    position: int = 0,
    span: Span = Span(0, 4),  # noqa: B008 - frozen
    arrived_s: float = 0.0,
    flags: RowFlags = RowFlags.SAMPLE,
    width: int = 0,
    request: int = 0,
    pass_rows: int = 4096,
) -> Work:
    """A waiting row; with `width`, float32 hidden states that count up."""
    hidden = np.arange(count * width, dtype=np.float32).tobytes() if width else None
    return Work(
        batch=(PeerId(owner), request),
        span=span,
        row=Row(SessionId(session), position, count, 0, flags),
        ids=np.arange(position, position + count, dtype=np.int32),
        hidden=() if hidden is None else (hidden,),
        dtype=Dtype.FLOAT32 if width else Dtype.NONE,
        width=width,
        arrived_s=arrived_s,
        pass_rows=pass_rows,
    )
