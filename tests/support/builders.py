"""Values for tests, with defaults so that a test shows only what matters to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.core.ids import PeerId, SessionId
from engine.core.plans import Span
from engine.core.profiles import BlockTimes, LinearTime, ModelSize, NetworkMatrix, NodeProfile
from engine.core.snapshot import StageInfo, StageState, SwarmSnapshot
from engine.protocol.frames import Dtype
from engine.protocol.rows import Row, RowFlags
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


def node_profile(
    peer: str = "a",
    *,
    mlp: tuple[float, float] = (0.002, 0.0002),
    attention: tuple[float, float] = (0.0, 1e-8),
    ram_attention: tuple[float, float] | None = None,
    prefill_row_s: float = 0.0001,
    head: tuple[float, float] = (0.001, 0.0001),
    pass_overhead_s: float = 0.001,
    memory_bytes: int = 10**9,
    ram_bytes: int = 0,
    uplink_bytes_per_s: float = math.inf,
    downlink_bytes_per_s: float = math.inf,
    encode_bytes_per_s: float = 0.0,
    decode_bytes_per_s: float = 0.0,
    power_w: float = 0.0,
    euro_per_hour: float = 0.0,
) -> NodeProfile:
    """A machine as a plan sees it."""
    return NodeProfile(
        PeerId(peer),
        BlockTimes(
            LinearTime(*mlp),
            LinearTime(*attention),
            None if ram_attention is None else LinearTime(*ram_attention),
            prefill_row_s,
        ),
        LinearTime(*head),
        pass_overhead_s,
        memory_bytes,
        ram_bytes,
        uplink_bytes_per_s,
        downlink_bytes_per_s,
        encode_bytes_per_s,
        decode_bytes_per_s,
        power_w,
        euro_per_hour,
    )


def model_size(num_blocks: int = 8, *, hidden_size: int = 1024) -> ModelSize:
    """A model whose blocks take 10 MB, and its embedding and head 5 MB each."""
    return ModelSize(num_blocks, hidden_size, 2, 10**7, 5 * 10**6, 5 * 10**6, 1024)


def network_matrix(
    peers: Sequence[str], *, delay_s: float = 0.02, bytes_per_s: float = math.inf
) -> NetworkMatrix:
    """Equal lines between all."""
    num = len(peers)
    return NetworkMatrix(
        tuple(PeerId(peer) for peer in peers),
        tuple(tuple(delay_s * (row != column) for column in range(num)) for row in range(num)),
        ((bytes_per_s,) * num,) * num,
    )
