"""Streams that other peers opened to us: their frames arrive here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from engine.config import SwarmConfig
from engine.core.clock import Clock
from engine.core.errors import PeerUnreachable, RemoteProtocolError
from engine.core.ids import PeerId, short
from engine.protocol.frames import Frame, FrameLimits, Kind
from engine.protocol.messages import Hello, Ping, message_frame, parse
from engine.swarm.channel import HELLO_LIMITS, Channel, run_until_first_ends
from engine.swarm.handshake import Membership, Role, new_nonce
from engine.swarm.link_codec import IncomingCodec
from engine.swarm.window import REPORT_REST_AFTER_S, REPORT_REST_BYTES, report_bytes

_LINGER_S = 1.0
"""How long a refusal may take to reach the refused before we hang up."""
_MAX_PONG_BYTES = 16 << 10
_NOT_FRAMES_FOR_US = frozenset({Kind.HELLO, Kind.WELCOME, Kind.PONG})


class Refused(PeerUnreachable):
    """We did not let the peer in."""


class IncomingLink:
    """One stream from one peer."""

    def __init__(
        self,
        peer: PeerId,
        local: PeerId,
        channel: Channel,
        membership: Membership,
        config: SwarmConfig,
        codec: IncomingCodec,
        clock: Clock,
    ) -> None:
        self.peer = peer
        self._local = local
        self._channel = channel
        self._membership = membership
        self._config = config
        self._clock = clock
        self._codec = codec
        self._reported_bytes = 0
        self._rest: asyncio.TimerHandle | None = None
        channel.on_new_rate = lambda: self._pong(0)

    async def welcome(self) -> None:
        """Greet the peer.

        Raises:
            Refused: It is not a member; it has been told.
            PeerUnreachable: It did not complete the greeting in time.
            RemoteProtocolError: It broke the rules.
        """
        try:
            async with asyncio.timeout(self._config.open_timeout_s):
                await self._greet()
        except TimeoutError as error:
            raise PeerUnreachable(
                f"The peer …{short(self.peer)} opened a stream but did not greet."
            ) from error

    async def run(self, deliver: Callable[[PeerId, Frame], None]) -> None:
        """Hand every frame to `deliver`, until the link breaks.

        Raises:
            PeerUnreachable: The link broke.
            RemoteProtocolError: The peer broke the rules.
        """
        self._channel.on_read = self._report
        await run_until_first_ends(
            self._channel.write_queued(),
            self._read(deliver),
            self._show_life(),
            self._channel.watch(),
        )

    @property
    def bytes_per_s(self) -> float:
        """What its line carries, as far as frames have shown; 0 while unknown."""
        return self._channel.arrival_rate.bytes_per_s

    def close(self) -> None:
        """Drop the stream at once."""
        if self._rest is not None:
            self._rest.cancel()
        self._channel.close()

    async def _greet(self) -> None:
        first = await self._hello()
        nonces = (first.nonce, new_nonce())
        if first.swarm_id != self._membership.swarm_id or self._agreed(first) is None:
            await self._refuse(nonces, first)
        proof = self._membership.proof(Role.ACCEPTOR, self.peer, self._local, nonces)
        answer = self._membership.hello(self._clock, nonces[1], proof=proof)
        await self._channel.write(message_frame(Kind.WELCOME, answer))
        second = await self._hello()
        if self._objection(nonces, second):
            await self._refuse(nonces, second)
        await self._channel.write(message_frame(Kind.WELCOME, answer))
        agreed = self._agreed(second)
        assert agreed is not None, "there was no objection"
        self._channel.protocol = agreed

    def _agreed(self, hello: Hello) -> int | None:
        return self._membership.protocols.shared(hello.protocols)

    def _objection(self, nonces: tuple[str, str], hello: Hello) -> str:
        return self._membership.objection(hello, Role.OPENER, self.peer, self._local, nonces)

    async def _refuse(self, nonces: tuple[str, str], hello: Hello) -> None:
        reason = self._objection(nonces, hello)
        answer = self._membership.hello(self._clock, nonces[1], refused=reason)
        await self._channel.write(message_frame(Kind.WELCOME, answer))
        with suppress(PeerUnreachable, RemoteProtocolError, TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await self._channel.read(HELLO_LIMITS)
        raise Refused(f"The peer …{short(self.peer)} was refused: it is {reason}.")

    async def _hello(self) -> Hello:
        frame = await self._channel.read(HELLO_LIMITS)
        if frame.kind is not Kind.HELLO:
            raise RemoteProtocolError("The peer sent frames before greeting.")
        return parse(frame, Hello)

    async def _read(self, deliver: Callable[[PeerId, Frame], None]) -> None:
        limits = FrameLimits()
        while True:
            frame = await self._channel.read(limits)
            if frame.kind is Kind.PING:
                self._pong(parse(frame, Ping).sequence)
            elif frame.kind is Kind.REFERENCE:
                self._codec.learn(frame)
            elif frame.kind in _NOT_FRAMES_FOR_US:
                raise RemoteProtocolError(f"The peer sent an unexpected {frame.kind.name} frame.")
            else:
                deliver(self.peer, await self._codec.decode(frame))

    def _report(self) -> None:
        """Tell the sender what has come, so that it sends on."""
        unreported = self._channel.read_bytes - self._reported_bytes
        if unreported >= report_bytes(self._channel.arrival_rate.bytes_per_s):
            self._pong(0)
        elif unreported >= REPORT_REST_BYTES and self._rest is None:
            loop = asyncio.get_running_loop()
            self._rest = loop.call_later(REPORT_REST_AFTER_S, self._report_rest)

    def _report_rest(self) -> None:
        self._rest = None
        if self._channel.read_bytes - self._reported_bytes >= REPORT_REST_BYTES:
            self._pong(0)

    async def _show_life(self) -> None:
        # Not only in answer to pings: those wait behind large frames on a slow line.
        while True:
            await asyncio.sleep(self._config.heartbeat_s)
            self._pong(0)

    def _pong(self, sequence: int) -> None:
        if self._channel.queued_bytes > _MAX_PONG_BYTES:
            return  # it asks without reading our answers
        self._reported_bytes = self._channel.read_bytes
        pong = Ping(
            sequence=sequence,
            unix_s=self._clock.unix_s(),
            received_bytes=self._reported_bytes,
            received_bytes_per_s=self._channel.arrival_rate.bytes_per_s,
            decoded_bytes_per_s=self._codec.decoded_bytes_per_s,
        )
        self._channel.put(message_frame(Kind.PONG, pong), urgent=True)
