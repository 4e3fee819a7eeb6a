"""Hidden states over real links, encoded on the way."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import numpy as np
import pytest

from engine.codec import payload
from engine.codec.lanes import ElementType
from engine.codec.reference import MAX_KNOWN_REFERENCES, learn_reference
from engine.config import LinkShape
from engine.core.clock import SystemClock
from engine.core.errors import FrameCorrupt
from engine.core.ids import SessionId
from engine.protocol.frames import (
    HEADER_BYTES,
    Codec,
    Dtype,
    Frame,
    FrameLimits,
    Kind,
    decode,
    encode,
    read_header,
)
from engine.protocol.rows import Row
from engine.swarm.link_codec import CodecWork, IncomingCodec, OutgoingCodec
from tests.support.swarm import ALICE, BOB, CAROL, eventually, memory_swarm

WIDTH = 256
LARGE_ROWS = 300
"""Rows of float32 that are encoded beside the event loop."""


def hidden(
    seed: int = 0, num_rows: int = 32, *, boundary: int = 0, dtype: Dtype = Dtype.FLOAT32
) -> np.ndarray:
    """Rows as a residual stream's, [N, WIDTH]; each boundary has its own sizes of channels."""
    sizes = np.random.default_rng(boundary).lognormal(0, 2, WIDTH)
    rows = np.random.default_rng(seed).normal(0, sizes, (num_rows, WIDTH)).astype(np.float32)
    if dtype is Dtype.BFLOAT16:
        return (rows.view(np.uint32) >> 16).astype(np.uint16)
    return rows.astype(np.float16) if dtype is Dtype.FLOAT16 else rows


def step(rows: np.ndarray, *, codec: Codec = Codec.RAW, session: int = 7) -> Frame:
    dtype = {4: Dtype.FLOAT32, 2: Dtype.FLOAT16}[rows.itemsize]
    dtype = Dtype.BFLOAT16 if rows.dtype == np.uint16 else dtype
    row = Row(SessionId(session), 0, len(rows))
    ids = np.arange(len(rows), dtype=np.int32)
    return Frame(Kind.STEP, rows.tobytes(), (row,), ids, dtype, rows.shape[1], codec)


def outgoing() -> OutgoingCodec:
    return OutgoingCodec("lossless", 0.0, SystemClock(), CodecWork())


def incoming() -> IncomingCodec:
    return IncomingCodec(SystemClock(), CodecWork())


@pytest.mark.parametrize("dtype", [dtype for dtype in Dtype if dtype])
async def test_rows_arrive_bit_for_bit_in_fewer_bytes_and_in_order(dtype):
    sizes = [1, 32, LARGE_ROWS, 8, LARGE_ROWS, 200]
    sent = [hidden(seed, size, dtype=dtype) for seed, size in enumerate(sizes)]
    async with memory_swarm(ALICE, BOB, codec="lossless") as swarm:
        for number, rows in enumerate(sent):
            swarm[ALICE].links.send(BOB, step(rows, session=number % 2))
            await asyncio.sleep(0.01)
        await eventually(lambda: len(swarm[BOB].got) == len(sent))
        frames = {bytes(frame.payload): frame for _, frame in swarm[BOB].got}
        assert frames.keys() == {rows.tobytes() for rows in sent}
        assert frames[sent[2].tobytes()].codec is Codec.LOSSLESS
        raw_bytes = sum(rows.nbytes for rows in sent)
        assert swarm[ALICE].links.neighbours.sent_bytes()[BOB] < 0.95 * raw_bytes
        facts = swarm[ALICE].links.neighbours.link_facts()[BOB]
        assert facts.codec == "lossless"
        assert facts.ratio < 0.95


async def test_reference_is_learned_from_the_traffic_shipped_twice_and_makes_it_smaller():
    sender = outgoing()
    wire, learning = sender.for_stream(), asyncio.create_task(sender.learn())
    sizes: list[int] = []
    shipped_at: list[int] = []
    while len(shipped_at) < 2:
        assert len(sizes) < 10_000, "no reference was learned"
        *reference, rows = await wire(step(hidden(len(sizes), dtype=Dtype.BFLOAT16)))
        shipped_at += [len(sizes)] * len(reference)
        sizes.append(len(rows.payload))
        await asyncio.sleep(0.001)
    for seed in range(50):
        (rows,) = await wire(step(hidden(-1 - seed & 0xFFFF, dtype=Dtype.BFLOAT16)))
        sizes.append(len(rows.payload))
    learning.cancel()
    assert max(sizes[shipped_at[0] :]) < 0.98 * min(sizes[: shipped_at[0]])


async def test_each_stream_gets_the_references_that_it_needs():
    sender = outgoing()
    first, learning = sender.for_stream(), asyncio.create_task(sender.learn())
    seed = 0
    while len(await first(step(hidden(seed)))) < 2:
        await asyncio.sleep(0.001)
        seed += 1
    learning.cancel()
    second = sender.for_stream()
    kinds = [frame.kind for frame in await second(step(hidden(seed)))]
    assert kinds == [Kind.REFERENCE, Kind.STEP]
    for wire in (first, second):
        assert [frame.kind for frame in await wire(step(hidden(seed)))] == [Kind.STEP]


async def test_broken_link_goes_on_encoded_when_it_is_back():
    async with memory_swarm(ALICE, BOB, codec="lossless") as swarm:
        for seed in range(30):
            swarm[ALICE].links.send(BOB, step(hidden(seed)))
            await asyncio.sleep(0.01)
        await eventually(lambda: len(swarm[BOB].got) == 30)
        swarm.network.cut(ALICE, BOB)
        await eventually(lambda: swarm[ALICE].lost and swarm[BOB].lost)
        swarm.network.heal(ALICE, BOB)
        await swarm[ALICE].links.connect(BOB)
        rows = hidden(99)
        swarm[ALICE].links.send(BOB, step(rows))
        await eventually(lambda: bytes(swarm[BOB].got[-1][1].payload) == rows.tobytes())
        assert swarm[BOB].got[-1][1].codec is Codec.LOSSLESS
        assert swarm[BOB].links.gate.violations == 0


async def test_rows_of_another_boundary_and_width_still_arrive():
    async with memory_swarm(ALICE, BOB, codec="lossless") as swarm:
        sent = [hidden(seed, 100, boundary=seed // 8) for seed in range(24)]
        sent += [hidden(3, 100).reshape(200, WIDTH // 2)] * 2
        for rows in sent:
            swarm[ALICE].links.send(BOB, step(rows))
            await asyncio.sleep(0.005)
        await eventually(lambda: len(swarm[BOB].got) == len(sent))
        assert [bytes(frame.payload) for _, frame in swarm[BOB].got] == [r.tobytes() for r in sent]


# Rounding


@pytest.mark.parametrize("codec", [Codec.ROWS8, Codec.BLOCKS8])
async def test_rows_that_may_be_rounded_take_a_fraction_and_say_so(codec):
    rows = hidden(1)
    async with memory_swarm(ALICE, BOB, codec="lossless") as swarm:
        swarm[ALICE].links.send(BOB, step(rows, codec=codec))
        swarm[ALICE].links.send(BOB, step(rows))
        await eventually(lambda: len(swarm[BOB].got) == 2)
        (_, rounded), (_, exact) = swarm[BOB].got
        assert (rounded.codec, exact.codec) == (codec, Codec.LOSSLESS)
        assert bytes(exact.payload) == rows.tobytes()
        got = np.frombuffer(rounded.payload, np.float32).reshape(rows.shape)
        assert 0 < np.linalg.norm(got - rows) < 0.03 * np.linalg.norm(rows)
        assert swarm[ALICE].links.neighbours.sent_bytes()[BOB] < 1.3 * rows.nbytes


async def test_rows_with_infinities_are_sent_exactly_though_they_may_be_rounded():
    rows = hidden(1)
    rows[3, 5] = np.inf
    async with memory_swarm(ALICE, BOB, codec="lossless") as swarm:
        swarm[ALICE].links.send(BOB, step(rows, codec=Codec.ROWS8))
        await eventually(lambda: swarm[BOB].got)
        assert bytes(swarm[BOB].got[0][1].payload) == rows.tobytes()
        assert swarm[BOB].got[0][1].codec is Codec.RAW


# Damage and hostility


async def encoded_frames(codec: Codec = Codec.RAW) -> list[Frame]:
    """What travels for one frame once there is a reference: the reference, then the rows."""
    sender = outgoing()
    wire, learning = sender.for_stream(), asyncio.create_task(sender.learn())
    wired: list[Frame] = []
    seed = 0
    while len(wired) < 2:
        wired = await wire(step(hidden(seed), codec=codec))
        await asyncio.sleep(0.005)
        seed += 1
    learning.cancel()
    return wired


@pytest.mark.parametrize("codec", [Codec.LOSSLESS, Codec.ROWS8, Codec.BLOCKS8])
async def test_flipped_bit_anywhere_in_an_encoded_payload_is_found_even_past_the_frames_checksum(
    codec,
):
    if codec is Codec.BLOCKS8:
        wired = [
            *await encoded_frames(),
            *await outgoing().for_stream()(step(hidden(), codec=codec)),
        ]
    else:
        wired = await encoded_frames(codec)
    receiver = incoming()
    receiver.learn(wired[0])
    whole = wired[-1]
    assert whole.codec is codec
    await receiver.decode(whole)
    places = np.random.default_rng(0).integers(0, len(whole.payload), 200).tolist()
    for at in [0, 1, 2, 10, *places]:
        spoiled = bytearray(whole.payload)
        spoiled[at] ^= 1 << at % 8
        with pytest.raises(FrameCorrupt):
            await receiver.decode(replace(whole, payload=bytes(spoiled)))
        data = bytearray(b"".join(encode(whole)))
        data[HEADER_BYTES + at] ^= 1 << at % 8
        with pytest.raises(FrameCorrupt):
            decode(
                read_header(bytes(data[:HEADER_BYTES]), FrameLimits()), bytes(data[HEADER_BYTES:])
            )


@pytest.mark.parametrize("codec", [Codec.LOSSLESS, Codec.ROWS8])
async def test_payload_with_a_reference_that_was_never_sent_is_a_clear_violation(codec):
    _, rows = await encoded_frames(codec)
    async with memory_swarm(ALICE, BOB, codec="raw") as swarm:
        await swarm[ALICE].links.connect(BOB)
        channel = swarm[ALICE].links.neighbours.of(BOB).outgoing._channel
        await channel._stream.write(*encode(rows, protocol=channel.protocol))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        assert "has not sent" in swarm[BOB].links.gate.ban_reason(ALICE)
        assert not swarm[BOB].got


async def test_receiver_forgets_the_oldest_of_too_many_references():
    receiver, kind = incoming(), (ElementType.FLOAT32, WIDTH)
    references = [
        learn_reference(hidden(0, 64, boundary=number).tobytes(), *kind)
        for number in range(MAX_KNOWN_REFERENCES + 1)
    ]
    for reference in references:
        receiver.learn(Frame(Kind.REFERENCE, reference.shipped()))
    rows = hidden(1)
    for reference in references:
        encoded = payload.encode(rows.tobytes(), *kind, reference)
        frame = replace(step(rows), payload=encoded, codec=Codec.LOSSLESS)
        if reference is references[0]:
            with pytest.raises(FrameCorrupt, match="has not sent"):
                await receiver.decode(frame)
        else:
            assert bytes((await receiver.decode(frame)).payload) == rows.tobytes()


@pytest.mark.parametrize("bad", [b"", b"\1", b"\0abc", b"\4abc", b"\1" + bytes(1 << 17)])
async def test_nonsense_for_a_reference_drops_the_peer(bad):
    async with memory_swarm(ALICE, BOB) as swarm:
        swarm[ALICE].links.send(BOB, Frame(Kind.REFERENCE, bad))
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)


@pytest.mark.parametrize("num_rows", [1 << 19, 1 << 10], ids=["beyond-the-limit", "too-dense"])
async def test_few_bytes_that_claim_to_be_many_are_refused_before_anything_is_allocated(num_rows):
    ids, rows = np.zeros(num_rows, np.int32), (Row(SessionId(1), 0, num_rows),)
    bomb = Frame(Kind.STEP, b"x" * 64, rows, ids, Dtype.FLOAT32, 1 << 12, Codec.LOSSLESS)
    async with memory_swarm(ALICE, BOB) as swarm:
        await swarm[ALICE].links.connect(BOB)
        channel = swarm[ALICE].links.neighbours.of(BOB).outgoing._channel
        await channel._stream.write(encode(bomb, protocol=channel.protocol)[0][:HEADER_BYTES])
        await eventually(lambda: swarm[BOB].links.gate.violations == 1)
        assert "unpacks" in swarm[BOB].links.gate.ban_reason(ALICE)


async def test_equal_rows_without_end_are_sent_raw_rather_than_refused():
    rows = np.ones((8000, WIDTH), np.float32)
    (frame,) = await outgoing().for_stream()(step(rows))
    assert frame.codec is Codec.RAW
    (frame,) = await outgoing().for_stream()(step(rows[:4000]))
    assert frame.codec is Codec.LOSSLESS
    assert len(frame.payload) < 10_000


# Choosing


async def test_fast_line_carries_rows_raw():
    async with memory_swarm(ALICE, BOB) as swarm:
        for seed in range(20):
            swarm[ALICE].links.send(BOB, step(hidden(seed, 200)))
            await asyncio.sleep(0.01)
        await eventually(lambda: len(swarm[BOB].got) == 20)
        facts = swarm[ALICE].links.neighbours.link_facts()[BOB]
        assert (facts.codec, facts.ratio) == ("raw", 1.0)
        assert {frame.codec for _, frame in swarm[BOB].got} == {Codec.RAW}


async def test_slow_line_is_measured_by_its_receiver_and_gets_encoded_rows():
    rate_bytes_per_s = 4e6
    async with memory_swarm(BOB, dead_after_s=3.0) as swarm:
        alice = await swarm.add(ALICE, shape=LinkShape(rate_bytes_per_s=rate_bytes_per_s))
        # The sender must not know: only what the receiver reports counts here.
        alice.links.neighbours.of(BOB).codec._line_bytes_per_s = 0.0
        for seed in range(8):
            alice.links.send(BOB, step(hidden(seed, 100)))
            await asyncio.sleep(0.03)
        await eventually(lambda: len(swarm[BOB].got) == 8)
        await eventually(lambda: alice.links.neighbours.link_facts()[BOB].bandwidth_bytes_per_s)
        alice.links.send(BOB, step(hidden(9, 100)))
        await eventually(lambda: swarm[BOB].got[-1][1].codec is Codec.LOSSLESS)
        measured = alice.links.neighbours.link_facts()[BOB].bandwidth_bytes_per_s
        assert 0.3 * rate_bytes_per_s < measured < 3 * rate_bytes_per_s
        # What one line has shown is taken for others of the same computer, in its own direction.
        up, down = (swarm[peer].links.neighbours for peer in (ALICE, BOB))
        assert up.uplink_bytes_per_s(BOB) == up.uplink_bytes_per_s(CAROL) == measured
        assert 0.3 * rate_bytes_per_s < down.downlink_bytes_per_s(ALICE) < 3 * rate_bytes_per_s
        assert up.downlink_bytes_per_s(BOB) == down.uplink_bytes_per_s(ALICE) == 0
        assert up.uplink_bytes_per_s(ALICE) == math.inf  # to oneself there is no line


async def test_raw_means_raw_whatever_the_line():
    shape = LinkShape(rate_bytes_per_s=2e6)
    async with memory_swarm(ALICE, BOB, codec="raw", shape=shape, dead_after_s=3.0) as swarm:
        for seed in range(5):
            swarm[ALICE].links.send(BOB, step(hidden(seed, 50), codec=Codec.ROWS8))
        await eventually(lambda: len(swarm[BOB].got) == 5)
        assert {frame.codec for _, frame in swarm[BOB].got} == {Codec.RAW}
