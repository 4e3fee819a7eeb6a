"""What has been measured of one machine: the answer of `shoal measure --json`, and its use in plans.

Every measured value carries its unit and its spread. Names are those of `core.profiles.NodeProfile`
wherever it has one, so that a file of nodes (`shoal plan NODES.json`) may hold this verbatim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from engine.core.ids import PeerId
from engine.core.profiles import BlockTimes, LinearTime, ModelSize, NodeProfile
from engine.core.reach import LinkPath, Reach

USUAL_MEMORY_SHARE: Final = 0.6
"""Of the memory that was free: what weights and cache may take unless the volunteer says otherwise."""

_MOST: Final = 1e18
"""Of anything, in any unit: no file may make plans overflow."""
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Size = Annotated[int, Field(ge=1, lt=1 << 53)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Quantity(_Value):
    """One measured value."""

    value: _Number = Field(ge=0, le=_MOST)
    spread: _Number = Field(ge=0)
    """About one standard deviation: robust for repeated samples, the standard error for a fit."""
    unit: str = Field(max_length=32)


class FittedTime(_Value):
    """A `LinearTime` fitted to a table."""

    base_s: Quantity
    unit_s: Quantity
    residual: Quantity
    """How far the table lies from the line: root mean square of the relative errors."""

    def linear(
        self, *, base_scale: float = 1.0, fixed_s: float = 0.0, unit_scale: float = 1.0
    ) -> LinearTime:
        """The line, for other sizes.

        Args:
            base_scale: How much more of what `base_s` pays for, beyond `fixed_s`.
            fixed_s: The part of `base_s` that does not depend on sizes.
            unit_scale: How much more work a unit is.
        """
        fixed_s = min(fixed_s, self.base_s.value)
        return LinearTime(
            fixed_s + (self.base_s.value - fixed_s) * base_scale, self.unit_s.value * unit_scale
        )


class BlockMeasurement(_Value):
    """One block: `core.profiles.BlockTimes`, and what it takes to apply it to other models."""

    mlp: FittedTime
    """With `attention_row_s`: all that a row costs whatever it sees."""
    attention: FittedTime
    ram_attention: FittedTime | None = None
    """None: the blocks compute in RAM anyway."""
    attention_row_s: Quantity
    """The part of attention that does not depend on the cache, above all storing new keys."""
    prefill_row_s: Quantity
    fixed_s: Quantity
    """What a block costs however small it is: starting its operations."""


class TableRow(_Value):
    """One cell of the table that the lines are fitted to, per block."""

    where: Literal["device", "ram"]
    """Where the caches lie that are attended to."""
    batch: int
    context: int
    """Tokens in each row's cache."""
    mlp_s: Quantity
    attention_s: Quantity
    """With `attention_row_s`."""
    mlp_residual: _Number
    """Relative: how much longer it took than what is fitted says."""
    attention_residual: _Number


class MeasuredModel(_Value):
    """The sizes that block times were measured with."""

    name: str
    hidden_size: _Size
    element_bytes: int = Field(ge=1, le=8)
    block_parameters: _Size
    head_parameters: _Size
    kv_elements_per_token: _Size
    """Of keys and values, in one block."""


class GpuFacts(_Value):
    """One NVIDIA GPU, as its driver describes it."""

    name: str
    uuid: str
    driver: str
    memory_total_bytes: Quantity
    memory_free_bytes: Quantity
    power_limit_w: Quantity | None
    temperature_c: Quantity | None


class CpuFacts(_Value):
    """The processor."""

    name: str
    cores: int
    """Physical."""
    usable_threads: int
    """Logical ones that we may run on."""
    frequency_hz: Quantity | None


class DiskFacts(_Value):
    """Where models are kept."""

    free_bytes: Quantity
    read_bytes_per_s: Quantity | None
    """Past the page cache; None where there was no room to try."""


class PeerMeasurement(_Value):
    """The line to one other node, both ways."""

    peer: str
    path: LinkPath | None = None
    rtt_s: Quantity
    uplink_bytes_per_s: Quantity | None = None
    """From here to there; None: not tried, or refused."""
    downlink_bytes_per_s: Quantity | None = None
    note: str = ""
    """Why something is missing, as a sentence."""


class NetworkMeasurement(_Value):
    """What was measured with the swarm, and why not more."""

    reachability: Reach | None = None
    """None: in no swarm, or no engine runs."""
    metered: bool | None = None
    """Whether the connection costs by the byte; None: nobody knows."""
    uplink_bytes_per_s: Quantity | None = None
    """Of this machine's own line, as far as its peers show it; None: not measured."""
    downlink_bytes_per_s: Quantity | None = None
    peers: tuple[PeerMeasurement, ...] = ()
    note: str = ""
    """Why something is missing, as a sentence."""


class Load(_Value):
    """What else the machine was doing."""

    cpu_share: Quantity
    gpu_share: Quantity | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the volunteer gives; None and `inf`: what there is, within reason."""

    memory_bytes: int | None = None
    """For weights and cache where the blocks compute."""
    ram_bytes: int | None = None
    """For cache in RAM beside an accelerator."""
    uplink_bytes_per_s: float = math.inf
    downlink_bytes_per_s: float = math.inf
    euro_per_hour: float = 0.0


class MeasuredProfile(_Value):
    """One machine, measured."""

    kind: Literal["measured"] = "measured"
    """Tells it from a node that a person has described."""
    version: Literal[1] = 1
    measured_unix_s: _Number
    shoal: str
    quick: bool
    fingerprint: str
    """Of hardware, driver and software: values hold while it is the same."""
    device: str
    dtype: Literal["float32", "bfloat16", "float16"]
    threads: int
    model: MeasuredModel
    block: BlockMeasurement
    head: FittedTime
    pass_overhead_s: Quantity
    frame: FittedTime | None = None
    """What agent and p2pd take to take a frame in and send another, per byte of one; None: unknown,
    which plans take for nothing."""
    frame_shares_cores: bool = True
    """Whether the blocks wait meanwhile, because no core was free."""
    memory_bytes: Quantity
    """Free where the blocks compute."""
    ram_bytes: Quantity
    """Free beside an accelerator; 0 without one."""
    uplink_bytes_per_s: Quantity | None = None
    """None: not measured."""
    downlink_bytes_per_s: Quantity | None = None
    encode_bytes_per_s: Quantity
    decode_bytes_per_s: Quantity
    power_w: Quantity | None = None
    """Of the accelerator under load; None: unknown."""
    prefill_tokens_per_s: Quantity
    """Of one block."""
    to_device_bytes_per_s: Quantity | None = None
    """From RAM to the accelerator; None without one."""
    to_ram_bytes_per_s: Quantity | None = None
    table: tuple[TableRow, ...]
    cpu: CpuFacts
    ram_total_bytes: Quantity
    gpus: tuple[GpuFacts, ...] = ()
    disk: DiskFacts
    network: NetworkMeasurement = NetworkMeasurement()
    load: Load
    took_s: dict[str, float] = Field(default_factory=dict)
    """How long each part of measuring took."""

    def node_profile(
        self, peer: PeerId, model: ModelSize, limits: Limits | None = None
    ) -> NodeProfile:
        """What a plan for `model` needs of this machine.

        Block times follow from the sizes they were measured with: reading weights by their number,
        arithmetic by its operations, attention by the size of keys and values. What starting
        operations costs stays. Memory is counted in the model's elements: a machine that computes in
        wider ones holds fewer blocks.

        Args:
            peer: The machine's name in the plan.
            model: What shall run; its sizes in the elements that it travels in.
            limits: What the volunteer gives; None: `USUAL_MEMORY_SHARE` of what was free.
        """
        limits = limits or Limits()
        of = self.model
        block_scale = model.block_bytes / model.element_bytes / of.block_parameters
        head_scale = model.head_bytes / model.element_bytes / of.head_parameters
        kv_scale = model.kv_bytes_per_token / model.element_bytes / of.kv_elements_per_token
        block, fixed_s, ram = self.block, self.block.fixed_s.value, self.block.ram_attention
        element_scale = model.element_bytes / of.element_bytes
        return NodeProfile(
            peer=peer,
            block=BlockTimes(
                mlp=block.mlp.linear(
                    base_scale=block_scale, fixed_s=fixed_s, unit_scale=block_scale
                ),
                attention=block.attention.linear(unit_scale=kv_scale),
                ram_attention=None if ram is None else ram.linear(unit_scale=kv_scale),
                prefill_row_s=block.prefill_row_s.value * block_scale,
            ),
            head=self.head.linear(base_scale=head_scale, unit_scale=head_scale),
            pass_overhead_s=self.pass_overhead_s.value,
            memory_bytes=int(_given(limits.memory_bytes, self.memory_bytes) * element_scale),
            ram_bytes=int(_given(limits.ram_bytes, self.ram_bytes) * element_scale),
            uplink_bytes_per_s=_line(limits.uplink_bytes_per_s, self.uplink_bytes_per_s),
            downlink_bytes_per_s=_line(limits.downlink_bytes_per_s, self.downlink_bytes_per_s),
            encode_bytes_per_s=self.encode_bytes_per_s.value,
            decode_bytes_per_s=self.decode_bytes_per_s.value,
            power_w=0.0 if self.power_w is None else self.power_w.value,
            euro_per_hour=limits.euro_per_hour,
            frame=LinearTime(0.0, 0.0) if self.frame is None else self.frame.linear(),
            frame_shares_cores=self.frame_shares_cores,
        )


def _given(limit_bytes: int | None, free: Quantity) -> float:
    return USUAL_MEMORY_SHARE * free.value if limit_bytes is None else limit_bytes


def _line(limit_bytes_per_s: float, measured: Quantity | None) -> float:
    return limit_bytes_per_s if measured is None else min(limit_bytes_per_s, measured.value)
