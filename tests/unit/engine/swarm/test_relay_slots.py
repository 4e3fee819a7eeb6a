"""Slots at relays that come and go while they are asked."""

from __future__ import annotations

import asyncio

import pytest

from engine.core.clock import SystemClock
from engine.swarm import relay_slots
from engine.swarm.circuits import Reservation
from engine.swarm.relay_slots import RelaySlots

RELAY = "Qm" + "1" * 44


class Daemon:
    """Connects to anybody."""

    async def connect(self, peer, addresses):
        await asyncio.sleep(0)


async def test_relay_that_is_announced_no_more_while_it_gives_a_slot_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = RelaySlots(SystemClock())
    slots.offer({RELAY: ["/ip4/1.2.3.4/tcp/1"]})

    async def reserve(*_):
        slots.offer({})
        return Reservation(0, 0)

    monkeypatch.setattr(relay_slots, "reserve", reserve)
    monkeypatch.setattr(relay_slots.PeerID, "from_base58", lambda peer: peer)
    await slots.tick(Daemon(), {})
    assert slots.relays == (RELAY,)
    slots.offer({})
    assert slots.relays == (RELAY,)
