"""Asking a peer to relay for us: libp2p's circuit v2 reservation, on a stream of our own.

p2pd's AutoRelay would do the same, but takes its relays at its start alone and waits an hour before
it asks a lost one again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hivemind.p2p import PeerID

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.daemon import Daemon

_PROTOCOL = "/libp2p/circuit/relay/0.2.0/hop"
_RESERVE = b"\x02\x08\x00"  # length 2; field 1 (type): 0, RESERVE
_MAX_ANSWER_BYTES = 8192
_STATUS, _LIMIT, _LIMIT_S, _LIMIT_BYTES = 5, 4, 1, 2
_OK = 100


@dataclass(frozen=True, slots=True)
class Reservation:
    """A slot at a relay, and what it lets through one circuit; 0 means unlimited."""

    limit_s: int
    limit_bytes: int

    def holds(self, seconds: float, num_bytes: float) -> bool:
        """Whether a circuit lives at least so long and carries so much."""
        return not (0 < self.limit_s < seconds or 0 < self.limit_bytes < num_bytes)


async def reserve(daemon: Daemon, relay: PeerId, timeout_s: float) -> Reservation:
    """Take or renew a slot at a relay that we are connected to; it lasts as the connection does.

    Raises:
        PeerUnreachable: It is gone, is no relay, or has no room.
    """
    try:
        async with asyncio.timeout(timeout_s):
            _, reader, writer = await daemon.open_stream(PeerID.from_base58(relay), _PROTOCOL)
            try:
                writer.write(_RESERVE)
                size = await _read_varint(reader)
                if size > _MAX_ANSWER_BYTES:
                    raise ValueError("too long")
                answer = _fields(await reader.readexactly(size))
            finally:
                writer.close()
        if answer.get(_STATUS) != _OK:
            raise PeerUnreachable(f"The peer …{short(relay)} has no room to relay for us.")
        limit = answer.get(_LIMIT, b"")
        limits = _fields(limit) if isinstance(limit, bytes) else {}
        limit_s, limit_bytes = limits.get(_LIMIT_S, 0), limits.get(_LIMIT_BYTES, 0)
        if not isinstance(limit_s, int) or not isinstance(limit_bytes, int):
            raise ValueError("limits that are no numbers")
    except (OSError, EOFError, TimeoutError, ValueError) as error:
        raise PeerUnreachable(f"The peer …{short(relay)} does not relay for us.") from error
    return Reservation(limit_s, limit_bytes)


async def _read_varint(reader: asyncio.StreamReader) -> int:
    value = 0
    for shift in range(0, 63, 7):
        byte = (await reader.readexactly(1))[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise ValueError("a number that does not end")


def _fields(data: bytes) -> dict[int, int | bytes]:
    """The fields of a protobuf message, as far as the circuit protocol uses its encoding.

    Raises:
        ValueError: It is cut short, or none.
    """
    fields: dict[int, int | bytes] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while at < len(data) and shift < 63:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a number that does not end")

    while at < len(data):
        tag = varint()
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            fields[number] = varint()
        elif kind == 2:
            size = varint()
            if at + size > len(data):
                raise ValueError("a field that is cut short")
            fields[number] = data[at : at + size]
            at += size
        else:
            raise ValueError("a field of another kind")
    return fields
