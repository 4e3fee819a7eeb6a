"""The swarm as one frozen value, replaced whole by `swarm.directory`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.protocol_window import UNSAID, ProtocolWindow


class StageState(StrEnum):
    """What a stage says of itself."""

    JOINING = "joining"
    ONLINE = "online"
    DRAINING = "draining"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class StageInfo:
    """One peer's announcement, checked and stripped of everything we do not need."""

    peer: PeerId
    span: Span
    state: StageState
    kv_free_tokens: int
    decode_tokens_per_s: float
    """Measured decode rate through the whole span at batch 1; 0 when not measured yet."""
    addresses: tuple[str, ...]
    """Plain and circuit multiaddrs at which it can be reached."""
    version: str
    kv_ram_free_tokens: int = 0
    """Room for the shares of KV caches that lie in RAM."""
    decode_row_s: float = 0.0
    """What each further row adds to a decode pass, in seconds; 0 when not measured yet."""
    uplink_bytes_per_s: float = 0.0
    """Measured rate of its line to other peers; 0 when not known."""
    relay: bool = False
    """Whether it accepts connections, and relays for those who do not."""
    max_blocks: int = 0
    """Blocks that fit there, with the KV room that the swarm promises; 0 when not known."""
    block_s: float = 0.0
    """What one block costs in a decode pass however few rows it has, in seconds."""
    block_row_s: float = 0.0
    """What each row adds to that; both are 0 when not measured yet."""
    sessions: int = 0
    """Sequences that pass through it now."""
    protocols: ProtocolWindow = UNSAID
    """What it speaks."""
    next_span: Span | None = None
    """Blocks that it is about to hold instead of `span`, which it serves until then."""

    @property
    def is_behind_relays(self) -> bool:
        """Whether it is reached from outside through relays."""
        return any(address.endswith("/p2p-circuit") for address in self.addresses)


@dataclass(frozen=True, slots=True)
class SwarmSnapshot:
    """Everything known of the stages that serve one model, at one moment."""

    model_id: str
    num_blocks: int
    stages: tuple[StageInfo, ...] = ()
    dropped_records: int = 0
    """Records refused so far: oversized, unsigned, expired, inconsistent."""
    stages_ahead: int = 0
    """Left out, because this version is too old to understand them."""
    stages_behind: int = 0
    """Left out, because they are too old to be understood."""
    peers_online: int = 0
    link_s: Mapping[PeerId, Mapping[PeerId, float]] = field(default_factory=dict)
    """One-way times to neighbours, in seconds, as each peer has measured them."""

    def stage(self, peer: PeerId) -> StageInfo | None:
        """The announcement of `peer`, if it has one."""
        return next((stage for stage in self.stages if stage.peer == peer), None)
