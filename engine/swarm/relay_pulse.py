"""Noticing within seconds that a relay has gone dark.

A circuit through a relay that answers no more hangs, and while libp2p dials a peer through one such
relay it tries no other. libp2p itself notices after 40 s; hanging up frees the way to the others.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Mapping

from hivemind.p2p import PeerID

from engine.core.errors import PeerUnreachable
from engine.core.ids import PeerId, short
from engine.swarm.addresses import relay_of
from engine.swarm.daemon import Daemon

_logger = logging.getLogger(__name__)

_PING = "/ipfs/ping/1.0.0"
_PING_BYTES = 32
_SILENCE_LIMIT_S = 2.5


async def hang_up_on_silent(
    daemon: Daemon, connections: Mapping[PeerId, tuple[str, ...]], own: Iterable[PeerId]
) -> None:
    """Ping the relays in use, and close the connections to those that do not answer.

    Args:
        daemon: Running.
        connections: The far ends' addresses of all open connections.
        own: Relays that hold a slot for us.

    Raises:
        PeerUnreachable: p2pd is gone.
    """
    circuits = (relay_of(a) for addresses in connections.values() for a in addresses)
    relays = sorted({*own, *(relay for relay in circuits if relay is not None)} & {*connections})
    alive = await asyncio.gather(*(_answers(daemon, relay) for relay in relays))
    for relay, is_alive in zip(relays, alive, strict=True):
        if not is_alive:
            _logger.info("the relay …%s answers no more: hanging up", short(relay))
            await daemon.disconnect(PeerID.from_base58(relay))


async def _answers(daemon: Daemon, relay: PeerId) -> bool:
    try:
        async with asyncio.timeout(_SILENCE_LIMIT_S):
            _, reader, writer = await daemon.open_stream(PeerID.from_base58(relay), _PING)
            try:
                sent = secrets.token_bytes(_PING_BYTES)
                writer.write(sent)
                return await reader.readexactly(_PING_BYTES) == sent
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError, PeerUnreachable):
        return False
