"""What one machine, or one line, takes for its part of a step: the cost model, number by number.

[BB] eq. 1–3 with what the paper leaves out: the ends' weights and time, prefill, the cache that a
context needs, the codec, and lines that differ by direction. Attention on the CPU overlaps that on
the accelerator, as it does in `models.split_attention`. Functions of one α take an array of them just
as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.core.profiles import ModelSize, NodeProfile, Objective
from engine.planner.fleet import Fleet

PREFILL_CHUNK_TOKENS: Final = 512
"""A prompt goes through the stages in parts of at most this, as `StageConfig.max_batch_tokens`."""
FRAME_BYTES: Final = 36
ROW_BYTES: Final = 28
"""A row's header and one id, in a frame of hidden states or of ids."""
WORKSPACE_WIDTHS: Final = 16
"""A pass keeps about so many values of the hidden size per token: the MLP's inner ones count."""

Amount = TypeVar("Amount", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Work:
    """What a step asks of every stage."""

    batch_size: int
    """B rows."""
    num_microbatches: int
    """M."""
    cached_tokens: float
    """Per row, on average while the answer grows."""
    context_tokens: int
    """Room promised to each row."""
    owed_tokens: float
    """Prompt tokens that have to be computed per step, so that rows that end are replaced."""
    owed_share: float = 0.0
    """What these are of all prompts of the batch."""
    codec_ratio: float = 1.0
    tree_size: int = 0
    """N draft tokens per row."""
    surviving: float = 1.0
    """Amount of them that goes beyond the first stage."""
    draft_s: float = 0.0
    """c: drafting a micro-batch's trees."""
    committed_tokens: float = 1.0
    """a per row and step."""

    @classmethod
    def of(cls, objective: Objective, batch_size: int, num_microbatches: int) -> Work:
        """Plain decoding of what is asked for."""
        prompts = objective.counts_prompts * batch_size * objective.prompt_tokens
        share = (prompts > 0) / max(1, objective.new_tokens)
        return cls(
            batch_size,
            num_microbatches,
            objective.prompt_tokens + objective.new_tokens / 2,
            objective.context_tokens,
            prompts * share,
            share,
            objective.codec_ratio,
        )

    @property
    def prompt_tokens(self) -> float:
        """Of the whole batch, as far as they count."""
        return self.owed_tokens / self.owed_share if self.owed_share else 0.0

    @property
    def rows(self) -> int:
        """Of a micro-batch."""
        return -(-self.batch_size // self.num_microbatches)

    @property
    def capacity_tokens(self) -> int:
        """Room that each row takes in the cache."""
        return self.context_tokens + self.tree_size

    @property
    def first_tokens(self) -> int:
        """Tokens that the first stage computes per micro-batch."""
        return self.rows * (1 + self.tree_size)

    @property
    def later_tokens(self) -> int:
        """Tokens that go on from there."""
        return self.rows + math.ceil(self.rows * self.tree_size * self.surviving)


def block_s(
    profile: NodeProfile,
    tokens: Amount,
    cached_tokens: float,
    ram_share: Amount,
) -> Amount:
    """One block's pass: `t_mlp + max((1-α)·gpu, α·cpu)`, where [BB] eq. 2 adds both attentions up.

    Args:
        profile: The machine.
        tokens: New tokens in the pass.
        cached_tokens: Per row, attended to.
        ram_share: α: how much of them lies in RAM.
    """
    times = profile.block
    units = tokens * cached_tokens
    ram = times.ram_attention
    if ram is None:  # the blocks compute in RAM: there is no other place
        ram_share = ram_share * 0
    attention = times.attention.base_s + times.attention.unit_s * units * (1 - ram_share)
    if ram is not None:
        beside = (ram_share > 0) * ram.base_s + ram.unit_s * units * ram_share
        attention = np.maximum(attention, beside)
    return times.mlp.base_s + tokens * times.mlp.unit_s + attention


def pass_s(
    profile: NodeProfile,
    span_length: int,
    tokens: int,
    cached_tokens: float,
    ram_share: float,
    *,
    is_last: bool,
) -> float:
    """One pass through a stage: its blocks, on the last one norm, head and sampling, and the rest.

    Args:
        profile: The machine.
        span_length: L_i blocks.
        tokens: New tokens in the pass; in plain decoding, rows.
        cached_tokens: Per row.
        ram_share: α of these tokens, see `ram_share`.
        is_last: Whether this stage samples.
    """
    blocks = span_length * block_s(profile, float(tokens), cached_tokens, ram_share)
    return float(profile.pass_overhead_s + blocks + is_last * profile.head.of(tokens))


def frames_s(profile: NodeProfile, model: ModelSize, tokens: float, ends: Amount) -> Amount:
    """What a pass costs the agent and p2pd: a frame that comes in and one that goes out.

    Args:
        profile: The machine.
        model: The model.
        tokens: Whose hidden states travel together.
        ends: How many of the two frames, 0 to 2, are at an end of the pipeline: these carry ids,
            which weigh next to nothing.
    """
    hidden_bytes = tokens * model.hidden_size * model.element_bytes
    return (1 - ends / 2) * (hidden_bytes * profile.frame.unit_s) + profile.frame.base_s


def ends_bytes(model: ModelSize, *, is_first: bool, is_last: bool) -> int:
    """Weights beside the blocks: the embedding's, and those of norm and head."""
    if is_first and is_last and model.ties_ends:
        return max(model.embedding_bytes, model.head_bytes)
    return is_first * model.embedding_bytes + is_last * model.head_bytes


def workspace_bytes(model: ModelSize, tokens: int) -> int:
    """What a pass needs beside weights and cache, in bytes."""
    most = max(tokens, PREFILL_CHUNK_TOKENS)
    return most * model.hidden_size * model.element_bytes * WORKSPACE_WIDTHS


def ram_tokens(
    profile: NodeProfile,
    model: ModelSize,
    work: Work,
    span_lengths: NDArray[np.int64],
    fixed_bytes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Cached tokens of each row that have to lie in RAM.

    α follows from memory ([BB] §5.1): as little as possible, since RAM is the slower place.

    Args:
        profile: The machine.
        model: The model.
        work: B and the promised context.
        span_lengths: Blocks held, at least 1; any shape.
        fixed_bytes: What the stage holds beside blocks and cache; of a shape that goes with it.

    Returns:
        `inf` where the span does not fit.
    """
    room = float(profile.memory_bytes) - fixed_bytes - span_lengths * float(model.block_bytes)
    token_bytes = span_lengths * (float(model.kv_bytes_per_token) * work.batch_size)
    capacity = work.capacity_tokens
    moved = np.ceil(np.maximum(0.0, capacity * token_bytes - room) / np.maximum(token_bytes, 1.0))
    ram_bytes = profile.ram_bytes if profile.block.ram_attention is not None else 0
    fits = (room >= 0) & (moved <= capacity) & (moved * token_bytes <= ram_bytes)
    return np.where(fits, moved, np.inf)


def ram_share(tokens_in_ram: Amount, cached_tokens: float) -> Amount:
    """How much of what is attended to lies in RAM: the oldest positions do, so soon all of it."""
    if cached_tokens <= 0:
        return tokens_in_ram * 0.0
    share: Amount = np.minimum(1.0, tokens_in_ram / cached_tokens)
    return share


@dataclass(frozen=True, slots=True)
class LineTimes:
    """Hidden states on their way from one stage to the next, in seconds; [N, N], sender by row."""

    encode_s: NDArray[np.float64]
    line_s: NDArray[np.float64]
    decode_s: NDArray[np.float64]
    is_encoded: NDArray[np.bool_]

    @property
    def way_s(self) -> NDArray[np.float64]:
        """From one stage to the next, without the delay."""
        return self.encode_s + self.line_s + self.decode_s

    @property
    def busy_s(self) -> NDArray[np.float64]:
        """How long the busiest part is busy: encoding, sending and decoding overlap."""
        return np.maximum(np.maximum(self.encode_s, self.line_s), self.decode_s)


def line_times(fleet: Fleet, model: ModelSize, tokens: float, codec_ratio: float) -> LineTimes:
    """T_comm of [BB] §5.1 without λ; encoded where that is faster, as `codec.adaptive` decides.

    Args:
        fleet: The machines and their lines.
        model: The model.
        tokens: Whose hidden states travel together.
        codec_ratio: Encoded over raw.
    """
    raw_bytes = tokens * model.hidden_size * model.element_bytes
    header_bytes = tokens * ROW_BYTES + (tokens > 0) * FRAME_BYTES
    raw_s = (raw_bytes + header_bytes) / fleet.bytes_per_s
    encode_s = raw_bytes * fleet.encode_s_per_byte[:, None]
    decode_s = raw_bytes * fleet.decode_s_per_byte[None, :]
    line_s = (codec_ratio * raw_bytes + header_bytes) / fleet.bytes_per_s
    is_encoded = encode_s + line_s + decode_s < raw_s
    return LineTimes(
        np.where(is_encoded, encode_s, 0.0),
        np.where(is_encoded, line_s, raw_s),
        np.where(is_encoded, decode_s, 0.0),
        is_encoded,
    )


def ids_s(fleet: Fleet, rows: int) -> NDArray[np.float64]:
    """New ids on the line from the last stage to the first, [N, N], without the delay."""
    return (FRAME_BYTES + rows * ROW_BYTES) / fleet.bytes_per_s
