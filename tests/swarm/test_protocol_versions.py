"""Releases that follow one another serve together; what is further apart says which must be updated."""

from __future__ import annotations

import pytest

from engine.core.errors import StageRefused
from engine.core.protocol_window import OURS, ProtocolWindow
from engine.protocol.frames import Kind
from engine.protocol.messages import Hello, Sessions, message_frame
from engine.swarm.handshake import Membership
from tests.support.swarm import ALICE, BOB, eventually, memory_swarm

BEFORE, NOW = ProtocolWindow(4, 5), ProtocolWindow(5, 6)
NEXT, AFTER_NEXT = ProtocolWindow(6, 7), ProtocolWindow(7, 8)


def keep():
    return message_frame(Kind.KEEP, Sessions(sessions=(1, 2)))


@pytest.mark.parametrize("other", [BEFORE, NEXT])
async def test_frames_go_both_ways_between_a_release_and_the_one_before(other):
    async with memory_swarm(ALICE, membership=Membership("s", protocols=NOW)) as swarm:
        await swarm.add(BOB, Membership("s", protocols=other))
        for here, there in ((ALICE, BOB), (BOB, ALICE)):
            swarm[here].links.send(there, keep())
            await eventually(lambda there=there: swarm[there].got)
        assert not swarm[ALICE].lost
        assert not swarm[BOB].lost


@pytest.mark.parametrize("private", [None, b"k" * 32])
async def test_releases_too_far_apart_refuse_and_say_which_is_to_be_updated(private):
    old = "too old: .* 5–6 .* 7–8, so update it"
    new = "too new: .* 7–8 .* 5–6, so update the other"
    async with memory_swarm(ALICE, membership=Membership("s", private, NOW)) as swarm:
        await swarm.add(BOB, Membership("s", private, AFTER_NEXT))
        with pytest.raises(StageRefused, match=f"this node is {old}"):
            await swarm[ALICE].links.connect(BOB)
        with pytest.raises(StageRefused, match=f"this node is {new}"):
            await swarm[BOB].links.connect(ALICE)
        assert not swarm[ALICE].links.gate.ban_reason(BOB)  # it may come back updated
        assert not swarm[BOB].links.gate.ban_reason(ALICE)


def test_node_that_names_no_protocol_speaks_the_first():
    hello = Hello.model_validate({"swarm_id": "s", "nonce": "n", "unix_s": 1.0, "version": "0.1"})
    assert hello.protocols == ProtocolWindow(1, 1)


def test_a_release_keeps_the_newest_protocol_of_the_one_before():
    assert OURS.newest - OURS.oldest <= 1
    assert OURS.shared(ProtocolWindow(OURS.oldest, OURS.oldest)) == OURS.oldest
