"""What the planner knows of machines, the network, a model and a wish: plain numbers, frozen.

`engine.profiler` measures them, the announcements carry a summary, and a file may give them
(`shoal plan`). Every node that holds equal values computes the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.core.ids import PeerId
from engine.core.model_spec import ModelSpec


@dataclass(frozen=True, slots=True)
class LinearTime:
    """A time that grows with the work: fitted to measurements."""

    base_s: float
    """What a pass costs however small it is: reading the weights, starting kernels."""
    unit_s: float
    """What each further unit adds."""

    def of(self, units: float) -> float:
        """Seconds for so many units."""
        return self.base_s + units * self.unit_s


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """One block of the model on one machine ([BB] §5.1)."""

    mlp: LinearTime
    """t_mlp, per row: all of the block but attention over the cache."""
    attention: LinearTime
    """t_attn_gpu, per row and cached token, where the blocks compute."""
    ram_attention: LinearTime | None
    """t_attn_cpu: the same over the share of the cache that lies in RAM; None: not possible."""
    prefill_row_s: float
    """Per token of a long prompt."""


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """One machine, as far as a plan depends on it."""

    peer: PeerId
    block: BlockTimes
    head: LinearTime
    """Norm, LM head and sampling, per row; on the last stage alone."""
    pass_overhead_s: float
    """What a stage's pass costs beside its blocks: queue, hand-over, framing."""
    memory_bytes: int
    """For weights and cache where the blocks compute, as the volunteer allows."""
    ram_bytes: int
    """For the share of the cache that lies in RAM; 0: none."""
    uplink_bytes_per_s: float
    """`inf`: unlimited."""
    downlink_bytes_per_s: float
    encode_bytes_per_s: float
    """Of the codec, raw bytes per second; 0: cannot."""
    decode_bytes_per_s: float
    power_w: float = 0.0
    """Under load; 0: unknown."""
    euro_per_hour: float = 0.0
    """0: unknown."""
    frame: LinearTime = LinearTime(0.0, 0.0)
    """What taking in a frame and sending another costs agent and p2pd, per byte of one; 0: unknown."""
    frame_shares_cores: bool = True
    """Whether the blocks wait meanwhile, because no core is free for it."""


@dataclass(frozen=True, slots=True)
class NetworkMatrix:
    """Lines between machines, per direction, beside the machines' own up- and downlinks."""

    peers: tuple[PeerId, ...]
    delay_s: tuple[tuple[float, ...], ...]
    """λ, one way, from row to column; `inf`: these two cannot reach each other."""
    bytes_per_s: tuple[tuple[float, ...], ...]
    """`inf`: limited by the machines' own lines alone."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """A model's weights and cache."""

    num_blocks: int
    hidden_size: int
    element_bytes: int
    """Of hidden states on the wire."""
    block_bytes: int
    """Weights of one block."""
    embedding_bytes: int
    """On the first stage."""
    head_bytes: int
    """Norm and LM head, on the last stage."""
    kv_bytes_per_token: int
    """One token's keys and values in one block."""
    ties_ends: bool = False
    """Embedding and head are one table, which a stage that is first and last holds once."""

    @classmethod
    def of(cls, spec: ModelSpec, element_bytes: int) -> ModelSize:
        """Of a model that computes in elements of so many bytes."""
        table_bytes = spec.vocab_size * spec.hidden_size * element_bytes
        return cls(
            spec.num_hidden_layers,
            spec.hidden_size,
            element_bytes,
            spec.block_parameters * element_bytes,
            table_bytes,
            table_bytes,
            spec.kv_bytes_per_token(1, element_bytes),
            spec.tie_word_embeddings,
        )


class Goal(StrEnum):
    """What a plan shall be best at."""

    THROUGHPUT = "throughput"
    """Tokens per second of a batch."""
    LATENCY = "latency"
    """Seconds per token of a chat."""
    ENERGY = "energy"
    """Tokens per joule, where every node says its power."""
    COST = "cost"
    """Tokens per euro, where every node says its price."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """What a draft model offers ([BB] §7)."""

    draft_s: float
    """c: time to draft one tree."""
    committed_tokens: tuple[tuple[int, float], ...]
    """(N draft tokens per row, a tokens committed per pass), ascending."""
    pruned: tuple[tuple[float, float, float], ...] = ()
    """(τ, share of the tree that survives the first stage, share of a that remains)."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What is asked of the swarm."""

    goal: Goal = Goal.THROUGHPUT
    batch_size: int = 0
    """B rows; 0: free to choose, up to `max_batch_size`."""
    max_batch_size: int = 512
    num_microbatches: int = 0
    """M; 0: free to choose."""
    prompt_tokens: int = 128
    new_tokens: int = 128
    context_tokens: int = 2048
    """KV room promised to each row; at least prompt and new tokens."""
    codec_ratio: float = 1.0
    """Encoded over raw bytes, measured; 1: nothing to gain."""
    counts_prompts: bool = True
    """Whether computing prompts counts, a part of it in each step where rows that end are replaced,
    or before an answer alone; False: plans are weighed by decoding alone."""
    drafting: Drafting | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a fit to measurements adds to the costs that the profiles explain."""

    step_overhead_s: float = 0.0
    """C: per step of the whole batch, at the client or in the software; below 0 where the costs
    count something twice."""
    micro_batch_overhead_s: float = 0.0
    """o: per micro-batch beyond the first; never below 0."""
