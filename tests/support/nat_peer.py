"""A peer in a process of its own that finds out how it is reached, and may call another.

Prints its state as a JSON line whenever that changes. With `--call` it reads the other's state as
one line from standard input, then sends it numbered frames without a pause; each is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

import numpy as np

from engine.config import SwarmConfig
from engine.core.clock import SystemClock
from engine.core.ids import PeerId, SessionId
from engine.protocol.frames import Frame, Kind
from engine.protocol.rows import Row, RowFlags
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.links import Links
from engine.swarm.peer import EVERY_INTERFACE, SwarmPeer
from tests.support.swarm import PUBLIC


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--identity", type=Path, required=True)
    parser.add_argument("--bootstrap", action="append", default=[])
    parser.add_argument("--call", action="store_true")
    arguments = parser.parse_args()
    config = SwarmConfig()
    peer = await SwarmPeer.start(
        arguments.identity, tuple(arguments.bootstrap), config, listen=EVERY_INTERFACE
    )
    links = Links(HivemindTransport(peer, config), config, SystemClock(), PUBLIC)
    numbers: list[int] = []
    lost: list[str] = []

    def answer(source: PeerId, frame: Frame) -> None:
        links.send(source, Frame(Kind.TOKENS, rows=frame.rows, ids=frame.ids))

    links.on([Kind.STEP], answer)
    links.on([Kind.TOKENS], lambda _, frame: numbers.append(frame.rows[0].position))
    links.on_lost(lambda _, error: lost.append(str(error)))
    await links.start()

    async def show() -> None:
        shown = ""
        while True:
            state = {
                "peer": peer.peer_id,
                "addresses": peer.addresses(),
                "reach": peer.reach,
                "paths": {link.peer: link.path for link in links.neighbours.open_links()},
                "has_answers": bool(numbers),
                "in_order": numbers == list(range(len(numbers))),
                "lost": lost,
            }
            if (line := json.dumps(state)) != shown:
                shown = line
                print(line, flush=True)
            await asyncio.sleep(0.1)

    showing = asyncio.create_task(show())
    if arguments.call:
        other = json.loads(await asyncio.to_thread(sys.stdin.readline))
        target = PeerId(other["peer"])
        addresses = [address.rpartition("/p2p/")[0] for address in other["addresses"]]
        await links.connect(target, addresses)
        for number in range(1 << 31):
            row = Row(SessionId(1), number, 1, flags=RowFlags.SAMPLE)
            links.send(target, Frame(Kind.STEP, b"", (row,), np.zeros(1, np.int32)))
            await asyncio.sleep(0.005)
    await showing


if __name__ == "__main__":
    asyncio.run(main())
