"""Announcements: what a stage says of itself in the DHT, and under which keys.

A record is JSON, under 1 KB, and ignores fields that it does not know, because other versions
exist. Keys are sharded by model and by bucket of blocks, so that none grows with the swarm. In a
private swarm keys and records depend on the swarm's key: a stranger who is let into the DHT can
neither guess where the records are nor write one that members believe.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.protocol_window import UNSAID, ProtocolWindow
from engine.core.snapshot import StageInfo, StageState

MAX_RECORD_BYTES = 1024
MAX_LIFETIME_S = 600.0
"""The longest that a record may claim to hold."""
BUCKET_BLOCKS = 16
_TAG_BYTES = 16
_MAX_ADDRESSES = 16
_MAX_NEIGHBOURS = 12

_Address = Annotated[str, Field(pattern=r"^/[!-~]{1,127}$")]
_PeerText = Annotated[str, Field(min_length=1, max_length=128)]


@dataclass(frozen=True, slots=True)
class Announcement:
    """A stage, and when it said so."""

    stage: StageInfo
    model_id: str
    unix_s: float
    expires_unix_s: float


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """How far a peer is from its neighbours, and when it said so."""

    peer: PeerId
    one_way_s: Mapping[PeerId, float]
    unix_s: float
    expires_unix_s: float


class _Signed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    peer: str = Field(min_length=1, max_length=128)
    unix_s: float = Field(gt=0, lt=1e12)
    expires_unix_s: float = Field(gt=0, lt=1e12)


class _LinkRecord(_Signed):
    one_way_ms: dict[_PeerText, Annotated[float, Field(ge=0, lt=1e6)]] = Field(
        max_length=_MAX_NEIGHBOURS
    )


class _Record(_Signed):
    model_id: str = Field(min_length=1, max_length=256)
    start: int = Field(ge=0, lt=4096)
    end: int = Field(gt=0, le=4096)
    state: StageState
    kv_free_tokens: int = Field(ge=0, lt=1 << 40)
    kv_ram_free_tokens: int = Field(default=0, ge=0, lt=1 << 40)
    decode_tokens_per_s: float = Field(ge=0, lt=1e9)
    decode_row_s: float = Field(default=0.0, ge=0, lt=1e6)
    uplink_bytes_per_s: float = Field(default=0.0, ge=0, lt=1e15)
    relay: bool = False
    max_blocks: int = Field(default=0, ge=0, le=4096)
    block_s: float = Field(default=0.0, ge=0, lt=1e6)
    block_row_s: float = Field(default=0.0, ge=0, lt=1e6)
    sessions: int = Field(default=0, ge=0, lt=1 << 40)
    next_start: int = Field(default=0, ge=0, lt=4096)
    next_end: int = Field(default=0, ge=0, le=4096)
    """Not above `next_start`: it stays where it is."""
    addresses: tuple[_Address, ...] = Field(default=(), max_length=_MAX_ADDRESSES)
    version: str = Field(max_length=32)
    protocol: int = Field(default=UNSAID.newest, ge=1, le=255)
    oldest_protocol: int = Field(default=UNSAID.oldest, ge=1, le=255)


def encode(announcement: Announcement, key: bytes | None) -> bytes:
    """Write a record; addresses that do not fit are left out, last first.

    Args:
        announcement: What to say.
        key: The swarm's key; None in a public one.

    Raises:
        LocalProtocolError: It does not fit even so, or breaks the rules that `decode` checks.
    """
    stage = announcement.stage
    try:
        record = _Record(
            peer=stage.peer,
            model_id=announcement.model_id,
            start=stage.span.start,
            end=stage.span.end,
            state=stage.state,
            kv_free_tokens=stage.kv_free_tokens,
            kv_ram_free_tokens=stage.kv_ram_free_tokens,
            decode_tokens_per_s=round(stage.decode_tokens_per_s, 3),
            decode_row_s=round(stage.decode_row_s, 6),
            uplink_bytes_per_s=round(stage.uplink_bytes_per_s),
            relay=stage.relay,
            max_blocks=stage.max_blocks,
            block_s=round(stage.block_s, 7),
            block_row_s=round(stage.block_row_s, 9),
            sessions=stage.sessions,
            next_start=0 if stage.next_span is None else stage.next_span.start,
            next_end=0 if stage.next_span is None else stage.next_span.end,
            addresses=stage.addresses[:_MAX_ADDRESSES],
            version=stage.version,
            protocol=stage.protocols.newest,
            oldest_protocol=stage.protocols.oldest,
            unix_s=announcement.unix_s,
            expires_unix_s=announcement.expires_unix_s,
        )
    except ValidationError as error:
        raise LocalProtocolError(
            f"Our announcement has {error.error_count()} wrong fields; this is a bug, report it."
        ) from error
    data = _sealed(record, key)
    if len(data) <= MAX_RECORD_BYTES:
        return data
    if not stage.addresses:
        raise LocalProtocolError("Our announcement is too large; this is a bug, report it.")
    fewer = replace(stage, addresses=stage.addresses[:-1])
    return encode(replace(announcement, stage=fewer), key)


def decode(data: bytes, key: bytes | None) -> Announcement:
    """Read a record; whether it belongs to its signer and is still valid is the caller's to check.

    Raises:
        RemoteProtocolError: Too large, not a record, wrong fields, or not by a member.
    """
    record = _opened(data, key, _Record)
    if record.start >= record.end:
        raise RemoteProtocolError("An announcement names no blocks.")
    stage = StageInfo(
        peer=PeerId(record.peer),
        span=Span(record.start, record.end),
        state=record.state,
        kv_free_tokens=record.kv_free_tokens,
        kv_ram_free_tokens=record.kv_ram_free_tokens,
        decode_tokens_per_s=record.decode_tokens_per_s,
        relay=record.relay,
        addresses=record.addresses,
        version=record.version,
        protocols=ProtocolWindow(record.oldest_protocol, record.protocol),
        decode_row_s=record.decode_row_s,
        uplink_bytes_per_s=record.uplink_bytes_per_s,
        max_blocks=record.max_blocks,
        block_s=record.block_s,
        block_row_s=record.block_row_s,
        sessions=record.sessions,
        next_span=(
            Span(record.next_start, record.next_end)
            if record.next_start < record.next_end
            else None
        ),
    )
    return Announcement(stage, record.model_id, record.unix_s, record.expires_unix_s)


def encode_links(times: LinkTimes, key: bytes | None) -> bytes:
    """Write how far our neighbours are; of many, the nearest.

    Args:
        times: What to say.
        key: The swarm's key; None in a public one.

    Raises:
        LocalProtocolError: It breaks the rules that `decode_links` checks.
    """
    nearest = sorted(times.one_way_s.items(), key=lambda item: (item[1], item[0]))
    try:
        record = _LinkRecord(
            peer=times.peer,
            unix_s=times.unix_s,
            expires_unix_s=times.expires_unix_s,
            one_way_ms={peer: round(s * 1000, 1) for peer, s in nearest[:_MAX_NEIGHBOURS]},
        )
    except ValidationError as error:
        raise LocalProtocolError(
            f"Our link times have {error.error_count()} wrong fields; this is a bug, report it."
        ) from error
    return _sealed(record, key)


def decode_links(data: bytes, key: bytes | None) -> LinkTimes:
    """Read link times; whether they belong to their signer is the caller's to check.

    Raises:
        RemoteProtocolError: Too large, not a record, wrong fields, or not by a member.
    """
    record = _opened(data, key, _LinkRecord)
    one_way_s = {PeerId(peer): ms / 1000 for peer, ms in record.one_way_ms.items()}
    return LinkTimes(PeerId(record.peer), one_way_s, record.unix_s, record.expires_unix_s)


def record_keys(swarm_id: str, model_id: str, span: Span, key: bytes | None) -> tuple[str, ...]:
    """The DHT keys under which stages that hold blocks of `span` announce themselves."""
    return tuple(_key("records 1", swarm_id, model_id, bucket, key) for bucket in _buckets(span))


def link_keys(swarm_id: str, model_id: str, span: Span, key: bytes | None) -> tuple[str, ...]:
    """The DHT keys under which stages that begin with a block of `span` tell their link times."""
    return tuple(_key("links 1", swarm_id, model_id, bucket, key) for bucket in _buckets(span))


def _buckets(span: Span) -> range:
    if not len(span):
        return range(0)
    return range(span.start // BUCKET_BLOCKS, (span.end - 1) // BUCKET_BLOCKS + 1)


def _key(what: str, swarm_id: str, model_id: str, bucket: int, key: bytes | None) -> str:
    # Lengths go in, so that no two names make the same text.
    name = f"shoal {what} {len(swarm_id)}:{swarm_id} {len(model_id)}:{model_id} {bucket}"
    if key is None:
        return hashlib.sha256(name.encode()).hexdigest()
    return hmac.digest(key, name.encode(), "sha256").hex()


def _sealed(record: _Signed, key: bytes | None) -> bytes:
    body = record.model_dump_json().encode()
    return _tag(body, key) + body


_R = TypeVar("_R", bound=_Signed)


def _opened(data: bytes, key: bytes | None, kind: type[_R]) -> _R:
    if len(data) > MAX_RECORD_BYTES:
        raise RemoteProtocolError(f"An announcement of {len(data)} bytes is too large.")
    tag_bytes = _TAG_BYTES if key is not None else 0
    tag, body = data[:tag_bytes], data[tag_bytes:]
    if not hmac.compare_digest(tag, _tag(body, key)):
        raise RemoteProtocolError("An announcement is not by a member of this private swarm.")
    try:
        record = kind.model_validate_json(body)
    except ValidationError as error:
        raise RemoteProtocolError(
            f"An announcement has {error.error_count()} wrong fields."
        ) from error
    if not record.unix_s < record.expires_unix_s <= record.unix_s + MAX_LIFETIME_S:
        raise RemoteProtocolError("An announcement holds for too long or not at all.")
    return record


def _tag(body: bytes, key: bytes | None) -> bytes:
    return b"" if key is None else hmac.digest(key, body, "sha256")[:_TAG_BYTES]
