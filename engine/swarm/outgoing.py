"""The stream that we opened to a peer: all our frames to it leave here."""

from __future__ import annotations

import asyncio
import statistics
from collections import deque

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import (
    PeerError,
    PeerSilent,
    PeerUnreachable,
    RemoteProtocolError,
    StageRefused,
)
from engine.core.ids import PeerId, short
from engine.protocol.frames import Frame, FrameLimits, Kind
from engine.protocol.messages import Hello, Ping, message_frame, parse
from engine.swarm.channel import (
    HELLO_LIMITS,
    MAX_QUEUED_BYTES,
    Channel,
    run_until_first_ends,
)
from engine.swarm.handshake import Membership, Role, new_nonce
from engine.swarm.link_codec import OutgoingCodec
from engine.swarm.shaper import Shaper
from engine.swarm.transport import ByteStream, Transport

_ANSWER_LIMITS = FrameLimits(max_rows=0, max_tokens=0, max_payload_bytes=4096)
_RTT_SAMPLES = 5


class OutgoingLink:
    """One attempt at a link; when `run` has ended, make another."""

    def __init__(
        self,
        peer: PeerId,
        addresses: tuple[str, ...],
        transport: Transport,
        membership: Membership,
        config: SwarmConfig,
        shaper: Shaper,
        codec: OutgoingCodec,
        clock: Clock,
    ) -> None:
        self._peer = peer
        self._addresses = addresses
        self._transport = transport
        self._membership = membership
        self._config = config
        self._shaper = shaper
        self._codec = codec
        self._clock = clock
        self._channel: Channel | None = None
        self._early: list[Frame] = []
        self._early_bytes = 0
        self._rtts_s: deque[float] = deque(maxlen=_RTT_SAMPLES)
        self._pings: dict[int, float] = {}
        self.was_up = False
        """Whether frames have flowed."""
        self.error: PeerError | None = None
        """Why the link is over; None while it is not."""
        self.clock_offset_s: float | None = None
        """Our clock minus the peer's."""
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the link is up, or over (then see `error`)."""

    @property
    def is_up(self) -> bool:
        """Whether frames can flow."""
        return self._channel is not None

    @property
    def protocol(self) -> int:
        """The version that is spoken; 0 while frames cannot flow."""
        return 0 if self._channel is None else self._channel.protocol

    @property
    def held_frames(self) -> bool:
        """Whether frames may be lost with the link."""
        return self.was_up or bool(self._early)

    @property
    def queued_bytes(self) -> int:
        """What waits to be written."""
        return self._early_bytes if self._channel is None else self._channel.queued_bytes

    @property
    def in_flight_bytes(self) -> int:
        """What waits, or has left and has not been reported to have arrived."""
        return self._early_bytes if self._channel is None else self._channel.in_flight_bytes

    @property
    def rtt_s(self) -> float | None:
        """Median of the last round trips."""
        return statistics.median(self._rtts_s) if self._rtts_s else None

    def put(self, frame: Frame) -> None:
        """Queue a frame, to leave as soon as the link is up.

        Raises:
            LocalProtocolError: The frame does not hold together.
            PeerUnreachable: Too much is waiting.
        """
        if self._channel is not None:
            self._channel.put(frame)
            return
        if self._early_bytes + frame.num_bytes > MAX_QUEUED_BYTES:
            raise PeerUnreachable("Too much is waiting for a peer that has not answered yet.")
        self._early.append(frame)
        self._early_bytes += frame.num_bytes

    async def run(self) -> None:
        """Open the link and keep it, until it breaks.

        Raises:
            PeerUnreachable: It could not be opened, or broke.
            StageRefused: One side is not welcome.
            RemoteProtocolError: The peer broke the rules.
        """
        stream = await self._open()
        wire = self._codec.for_stream()
        channel = Channel(self._shaper.wrap(stream), self._config.dead_after_s, wire)
        try:
            try:
                async with asyncio.timeout(self._config.open_timeout_s):
                    await self._shake_hands(channel)
            except TimeoutError as error:
                raise PeerSilent(
                    f"The peer …{short(self._peer)} took the connection but does not answer."
                ) from error
            for frame in self._early:
                channel.put(frame)
            self._early.clear()
            self._channel, self.was_up = channel, True
            self.settled.set_result(None)
            await run_until_first_ends(
                channel.write_queued(),
                self._read_answers(channel),
                self._ping(channel),
                self._codec.learn(),
                channel.watch(),
            )
        finally:
            self._channel = None
            channel.close()

    def fail(self, error: PeerError) -> None:
        """Note why the link is over; the first reason stays."""
        self.error = self.error or error
        if not self.settled.done():
            self.settled.set_result(None)

    def close(self) -> None:
        """Drop the stream at once; `run` then ends."""
        if self._channel is not None:
            self._channel.close()

    async def _open(self) -> ByteStream:
        # Twice the limit: the transport has one for connecting and one for the stream.
        try:
            async with asyncio.timeout(2 * self._config.open_timeout_s):
                return await self._transport.open(self._peer, self._addresses)
        except TimeoutError as error:
            raise PeerUnreachable(
                f"The peer …{short(self._peer)} cannot be reached: it does not answer."
            ) from error

    async def _shake_hands(self, channel: Channel) -> None:
        ours, local = new_nonce(), self._transport.local_peer
        membership, sent_s = self._membership, self._clock.monotonic_s()
        sent_unix_s = self._clock.unix_s()
        await channel.write(message_frame(Kind.HELLO, membership.hello(self._clock, ours)))
        welcome = await self._welcome(channel)
        rtt_s = self._clock.monotonic_s() - sent_s
        self._rtts_s.append(rtt_s)
        self.clock_offset_s = sent_unix_s + rtt_s / 2 - welcome.unix_s
        nonces = (ours, welcome.nonce)
        objection = membership.objection(welcome, Role.ACCEPTOR, local, self._peer, nonces)
        if objection:
            raise StageRefused(f"The peer …{short(self._peer)} is {objection}.")
        proof = membership.proof(Role.OPENER, local, self._peer, nonces)
        await channel.write(
            message_frame(Kind.HELLO, membership.hello(self._clock, ours, proof=proof))
        )
        await self._welcome(channel)
        agreed = membership.protocols.shared(welcome.protocols)
        assert agreed is not None, "there was no objection"
        channel.protocol = agreed

    async def _welcome(self, channel: Channel) -> Hello:
        frame = await channel.read(HELLO_LIMITS)
        if frame.kind is not Kind.WELCOME:
            raise RemoteProtocolError("The peer answered a greeting with something else.")
        welcome = parse(frame, Hello)
        if welcome.refused:
            raise StageRefused(
                f"The peer …{short(self._peer)} refused the link: this node is {welcome.refused}."
            )
        return welcome

    async def _read_answers(self, channel: Channel) -> None:
        while True:
            frame = await channel.read(_ANSWER_LIMITS)
            if frame.kind is not Kind.PONG:
                raise RemoteProtocolError("The peer sent frames on a stream that carries ours.")
            pong = parse(frame, Ping)
            self._codec.heard(pong)
            sent_s = self._pings.pop(pong.sequence, None)
            if sent_s is not None:
                rtt_s = self._clock.monotonic_s() - sent_s
                self._rtts_s.append(rtt_s)
                if pong.unix_s:
                    self.clock_offset_s = self._clock.unix_s() - rtt_s / 2 - pong.unix_s
            now_s = self._clock.monotonic_s()
            channel.reported(pong.received_bytes, min(self._rtts_s), now_s)

    async def _ping(self, channel: Channel) -> None:
        sequence = 0
        while True:
            await asyncio.sleep(self._config.heartbeat_s)
            sequence += 1
            self._pings = {sequence: self._clock.monotonic_s()}
            channel.put(message_frame(Kind.PING, Ping(sequence=sequence)), urgent=True)
