"""A peer in a process of its own: joins a swarm, answers every STEP with TOKENS.

Prints one JSON line when ready: its peer id, addresses, and p2pd's pid.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.protocol.frames import Frame, Kind
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import LOOPBACK, SwarmPeer
from tests.support.swarm import PUBLIC


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--identity", type=Path, required=True)
    parser.add_argument("--bootstrap", action="append", default=[])
    arguments = parser.parse_args()
    config = SwarmConfig(heartbeat_s=0.3, dead_after_s=5.0)
    peer = await SwarmPeer.start(
        arguments.identity, tuple(arguments.bootstrap), config, listen=LOOPBACK
    )
    links = Links(HivemindTransport(peer, config), config, SystemClock(), PUBLIC)

    def answer(source, frame):
        links.send(source, Frame(Kind.TOKENS, rows=frame.rows, ids=frame.ids))

    links.on([Kind.STEP], answer)
    await links.start()
    ready = {"peer": peer.peer_id, "addresses": peer.addresses(), "p2pd": peer.daemon.child.pid}
    print(json.dumps(ready), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
