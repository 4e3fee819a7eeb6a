"""Payloads of the message frames: JSON, validated on arrival.

Small and rare beside row frames, so they are readable rather than dense. Unknown fields are
ignored, because other versions exist; sizes are bounded by `FrameLimits` and by the fields here.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import FrameCorrupt
from engine.core.generation import Lossy, PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Hop, Route, Span
from engine.core.protocol_window import UNSAID, ProtocolWindow
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Codec, Frame, Kind
from engine.protocol.prefixes import DIGEST_PATTERN, MAX_MARKS
from engine.protocol.rows import MAX_DRAFTED

MAX_MESSAGE_BYTES = 4 << 20

_U64 = Annotated[int, Field(ge=0, lt=1 << 64)]
_Position = Annotated[int, Field(ge=0, lt=1 << 31)]
_TokenId = Annotated[int, Field(ge=0, lt=1 << 31)]
_Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
_PeerText = Annotated[str, Field(min_length=1, max_length=128)]


class Message(BaseModel):
    """Base of all payloads."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Hello(Message):
    """First frame on a new stream; `WELCOME` answers with the same fields.

    `proof` shows membership of a private swarm: an HMAC over both peers' ids and the nonces
    (`engine.swarm.handshake`), without showing the key.
    """

    swarm_id: str = Field(max_length=64)
    nonce: str = Field(max_length=64)
    proof: str = Field(default="", max_length=128)
    unix_s: float
    version: str = Field(max_length=32)
    protocol: int = Field(default=UNSAID.newest, ge=1, le=255)
    """The newest version of the protocol that the sender speaks."""
    oldest_protocol: int = Field(default=UNSAID.oldest, ge=1, le=255)
    refused: str = Field(default="", max_length=256)
    """In WELCOME: why the link is not wanted; empty when it is."""

    @property
    def protocols(self) -> ProtocolWindow:
        """All that the sender speaks."""
        return ProtocolWindow(self.oldest_protocol, self.protocol)


class HopMessage(Message):
    """One stage of the route."""

    peer: _PeerText
    start: int = Field(ge=0, lt=4096)
    end: int = Field(gt=0, le=4096)


class SamplingMessage(Message):
    """`SamplingParams` on the wire, with the bounds that a stage accepts."""

    temperature: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0, lt=1 << 31)
    min_p: float = Field(default=0.0, ge=0, le=1)
    repetition_penalty: float = Field(default=1.0, gt=0, le=100)
    presence_penalty: float = Field(default=0.0, ge=-100, le=100)
    frequency_penalty: float = Field(default=0.0, ge=-100, le=100)
    logit_bias: tuple[tuple[_TokenId, float], ...] = Field(default=(), max_length=4096)
    seed: _U64 = 0
    choice: int = Field(default=0, ge=0, lt=1 << 31)
    logprobs: int | None = Field(default=None, ge=0, le=20)
    stop_token_ids: tuple[_TokenId, ...] = Field(default=(), max_length=64)
    max_new_tokens: int = Field(default=256, ge=1, lt=1 << 31)

    @classmethod
    def of(cls, params: SamplingParams) -> SamplingMessage:
        """From the engine's own value."""
        return cls(**{name: getattr(params, name) for name in cls.model_fields})

    def value(self) -> SamplingParams:
        """Back to the engine's own value."""
        return SamplingParams(**{name: getattr(self, name) for name in type(self).model_fields})


class SequenceMessage(Message):
    """One session to open."""

    session: _U64
    capacity_tokens: int = Field(ge=1, lt=1 << 31)
    """Room to reserve: prompt and answer."""
    draft_tokens: int = Field(default=0, ge=0, le=MAX_DRAFTED)
    """Besides, for the largest draft that will come."""
    draft_sha256: str = Field(default="", max_length=64)
    """In DISCO: of the weights of the draft that its chains are drawn from."""
    prune_threshold: float | None = Field(default=None, ge=0, le=1)
    """τ, what a drafted token's score must reach at the first stage to be sent on; 0: all are; None: as
    the stage finds worth it."""
    prompt_tokens: int = Field(ge=1, lt=1 << 31)
    sampling: SamplingMessage
    kv_offload: float = Field(default=0.0, ge=0, le=1)
    """Share of the room that lies in RAM."""
    prefix_digests: tuple[_Digest, ...] = Field(default=(), max_length=MAX_MARKS)
    """At the marks of its ids (`engine.protocol.prefixes`): what was computed before is reused."""
    fork_of: _U64 | None = None
    """Another session of the client that begins alike: take over what it has computed or will."""
    fork_tokens: int = Field(default=0, ge=0, lt=1 << 31)
    """How many tokens both begin with."""
    lossy: Lossy = ""
    """How its hidden states may be rounded on the wire; empty: not at all."""

    def lossy_codec(self) -> Codec:
        """The same; RAW for not at all."""
        return Codec[self.lossy.upper()] if self.lossy else Codec.RAW


class OpenRequest(Message):
    """OPEN, client → every stage: reserve room for these sequences along this route."""

    request: _U64
    """Echoed in the answer."""
    model_id: str = Field(max_length=256)
    hops: tuple[HopMessage, ...] = Field(min_length=1, max_length=256)
    attempt: int = Field(default=0, ge=0, lt=1 << 16)
    pass_rows: int = Field(default=4096, ge=1, le=4096)
    """Rows of a micro-batch: the most of these sequences that one forward pass shall decode."""
    sequences: tuple[SequenceMessage, ...] = Field(min_length=1, max_length=4096)
    prefixes: PrefixUse = PrefixUse.NONE
    """Of whom computed prefixes may be reused, and who may reuse ours."""

    def route(self) -> Route:
        """The route that the sequences will take."""
        return Route(tuple(Hop(PeerId(hop.peer), Span(hop.start, hop.end)) for hop in self.hops))


class OpenReply(Message):
    """OPENED, stage → client: room is reserved, or `refused` says why not (then nothing is)."""

    request: _U64
    refused: str = Field(default="", max_length=512)
    code: str = Field(default="", max_length=64)
    lease_s: float = Field(default=0.0, ge=0)
    """Sessions vanish when no KEEP arrives for this long."""
    reused_tokens: tuple[_Position, ...] = Field(default=(), max_length=4096)
    """Per sequence, how many of its first tokens need not be sent."""
    no_replica: str = Field(default="", max_length=512)
    """From the last stage, in DISCO: why it cannot hold the draft, so that what it refuses is answered
    as in DSSD."""
    replica_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Else what it has needed for each refused token so far; 0: none came yet."""


class Sessions(Message):
    """KEEP, CLOSE and LEAD, client → stage: renew the lease of, drop, or lead these sessions.

    LEAD opens the ring at the last stage: what comes next waits for a row of the client's.
    """

    sessions: tuple[_U64, ...] = Field(max_length=4096)

    def ids(self) -> tuple[SessionId, ...]:
        """Typed."""
        return tuple(SessionId(session) for session in self.sessions)


class Failed(Message):
    """FAILED, stage → client: these sessions are over at this stage."""

    sessions: tuple[_U64, ...] = Field(max_length=4096)
    code: str = Field(max_length=64)
    reason: str = Field(max_length=512)


class StatsRequest(Message):
    """STATS: ask a stage for its counters (bench and status)."""

    request: _U64


class LinkFacts(Message):
    """How hidden states travel to one peer."""

    codec: str = Field(max_length=16)
    """What the last ones travelled by; a name of `Codec`, in small letters."""
    ratio: float = Field(ge=0, allow_inf_nan=False)
    """Bytes on the wire over raw ones, lately."""
    bandwidth_bytes_per_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """As the receiver measured it; None while unknown."""


MAX_STATS_LINKS = 4096


class StatsReply(Message):
    """STATS_REPLY: cumulative counters of one stage since its start; seconds and bytes."""

    request: _U64
    forwards: int
    """Forward passes run."""
    tokens: int
    """Tokens computed."""
    reused_tokens: int = 0
    """Tokens that were not, because a sequence that began alike had been computed before."""
    compute_s: float
    """In the worker, forward and sampling."""
    cpu_s: float
    """Of all its threads meanwhile."""
    encode_s: float
    """Packing and unpacking frames, and encoding and decoding the hidden states in them."""
    wait_s: float
    """Work waiting for the worker, summed over forward passes."""
    local_s: float
    """From a frame's arrival to its answer handed to the link, summed over forward passes."""
    sent_bytes: dict[_PeerText, int]
    """Row-frame bytes sent, per receiving peer."""
    kept_bytes: int = 0
    """Memory that outputs take which are kept for a replay."""
    replayed_tokens: int = 0
    """Tokens whose outputs were sent again, because a later stage was lost."""
    replica_rounds: int = 0
    """Refused tokens, in DISCO, for which the replica of the draft was asked."""
    replica_disagreements: int = 0
    """Of them those that the client had drawn from something else."""
    replica_max_difference: float = 0.0
    """Between the probabilities that a client and the replica gave a refused token."""
    replica_s: float = 0.0
    compactions_before: int = 0
    """Trees of which the kept tokens had to be brought together for the pass behind them …"""
    compaction_before_s: float = 0.0
    compactions_after: int = 0
    """… and of which they were when that had been answered."""
    compaction_after_s: float = 0.0
    links: dict[_PeerText, LinkFacts] = Field(default_factory=dict, max_length=MAX_STATS_LINKS)
    """How hidden states travel, per receiving peer."""


class Ping(Message):
    """PING and PONG: alive, how far away, and what time it is there."""

    sequence: int = Field(ge=0)
    """A PONG repeats the PING's; 0 in one that answers none and only shows life."""
    unix_s: float = 0.0
    """In PONG: the sender's clock."""
    received_bytes: int = Field(default=0, ge=0, lt=1 << 62)
    """In PONG: all that has come by this stream."""
    received_bytes_per_s: float = Field(default=0.0, ge=0, lt=1e15)
    """In PONG: how fast the other's large frames arrive; 0 while unknown."""
    decoded_bytes_per_s: float = Field(default=0.0, ge=0, lt=1e15)
    """In PONG: raw bytes of hidden states decoded by the second; 0 while unknown."""


M = TypeVar("M", bound=Message)


def message_frame(kind: Kind, message: Message) -> Frame:
    """Wrap a message."""
    return Frame(kind, message.model_dump_json().encode())


def parse(frame: Frame, model: type[M]) -> M:
    """Read the message in a frame.

    Raises:
        FrameCorrupt: It is too large, not JSON, or breaks the field limits.
    """
    if len(frame.payload) > MAX_MESSAGE_BYTES:
        raise FrameCorrupt(f"The peer sent a message of {len(frame.payload)} bytes: too large.")
    try:
        return model.model_validate_json(bytes(frame.payload))
    except ValidationError as error:
        raise FrameCorrupt(
            f"The peer sent a {frame.kind.name} message with {error.error_count()} wrong fields."
        ) from error
