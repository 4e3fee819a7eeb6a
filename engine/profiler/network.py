"""Measuring lines to other members.

A probe is short, capped in bytes and time, and leaves when nothing else waits for the line; half of
the time the line rests. Peers are strangers: what they may ask of this node is bounded
(`profiler.probe_answers`), what they send that nobody granted costs them the link
(`profiler.filler_in`), and what they claim to have received is held against what can have arrived.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from engine.core.clock import Clock
from engine.core.errors import PeerError, PeerUnreachable, StageRefused
from engine.core.ids import PeerId, short
from engine.localapi.measurements import PeerMeasurement, Quantity
from engine.profiler import trains
from engine.profiler.arrivals import mean_rate
from engine.profiler.budget import TimeBudget
from engine.profiler.filler_in import FillerIn
from engine.profiler.fit import exactly, quantity
from engine.profiler.probe_answers import BUSY, ProbeAnswers, Turn
from engine.profiler.trains import TRAIN_LIMIT_S, Train
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import message_frame, parse
from engine.protocol.probes import MAX_TRAIN_BYTES, Probe, ProbeReply
from engine.swarm.links import Links

_logger = logging.getLogger(__name__)

_ECHOES: Final = 5
_ECHO_SHARE: Final = 0.1
"""Of the time, beyond which no further echo is asked for."""
_ANSWER_LIMIT_S: Final = 5.0
_TRIES: Final = 4
_RETRY_S: Final = (0.3, 1.5)
_TAIL_S: Final = 0.3
"""Until the last of a train has arrived, beside the round trips of asking and answering."""
_REST_SHARE: Final = 0.5
"""Of the time, the line is left alone."""
_PLAUSIBLE: Final = 4.0
"""Times the average over the whole train: no steady part is faster than that."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How thoroughly to measure one line, per direction."""

    num_bytes: int
    """At most."""
    hold_s: float
    """How long to go on at full rate."""
    limit_s: float
    """How long to send at most."""
    budget_s: float
    """Of all lines together, whatever the peers do."""
    peers: int
    """To measure with."""


FULL: Final = Effort(MAX_TRAIN_BYTES, 0.5, 1.8, budget_s=20.0, peers=3)
"""With what computing takes to measure, under a minute."""
QUICK: Final = Effort(MAX_TRAIN_BYTES // 4, 0.2, 0.7, budget_s=3.0, peers=1)
"""With it, under ten seconds."""


class _Rate(NamedTuple):
    """One direction."""

    bytes_per_s: Quantity | None
    note: str


class Prober:
    """Measures lines of one node, and lets others measure theirs, for as long as its links live."""

    def __init__(
        self, links: Links, clock: Clock, is_metered: Callable[[], Awaitable[bool | None]]
    ) -> None:
        """`is_metered` says whether the connection costs by the byte, None if nobody knows."""
        self._links = links
        self._clock = clock
        self.is_metered = is_metered
        self._turn = Turn()
        self._filler = FillerIn(links, clock)
        self._answers = ProbeAnswers(links, clock, self._filler, self._turn, is_metered)
        self._measuring = asyncio.Lock()
        self._rests_until_s = 0.0
        self._asked: dict[tuple[PeerId, int], asyncio.Future[ProbeReply]] = {}
        links.on([Kind.PROBED], self._on_reply)
        links.on_lost(self._on_lost)

    async def close(self) -> None:
        """End what is under way."""
        await self._answers.close()

    async def measure(
        self, peers: Sequence[PeerId], effort: Effort = FULL
    ) -> tuple[PeerMeasurement, ...]:
        """Measure the lines to some peers, one after another, in the time that the effort allows.

        Who cannot be reached is left out, and a direction for which there is no time is not known.
        Whether that is welcome on a metered connection is the caller's to know.
        """
        budget = TimeBudget(self._clock.monotonic_s(), effort.budget_s)
        found: list[PeerMeasurement] = []
        try:
            async with asyncio.timeout(effort.budget_s):
                await self._measuring.acquire()
        except TimeoutError:
            _logger.info("no line was measured: another measurement took all the time")
            return ()
        try:
            for index, peer in enumerate(peers):
                until_s = budget.until_s(self._clock.monotonic_s(), len(peers) - index)
                try:
                    found.append(await self._line(peer, effort, until_s))
                except (PeerError, TimeoutError) as error:
                    why = str(error) or "it took too long"
                    _logger.info("the line to …%s was not measured: %s", short(peer), why)
        finally:
            self._measuring.release()
        return tuple(found)

    async def _line(self, peer: PeerId, effort: Effort, until_s: float) -> PeerMeasurement:
        async with self._until(until_s):
            await self._links.connect(peer)
            echoes_until_s = self._clock.monotonic_s() + _ECHO_SHARE * effort.budget_s
            echoes_s = [await self._echo_s(peer)]
            while len(echoes_s) < _ECHOES and self._clock.monotonic_s() < echoes_until_s:
                echoes_s.append(await self._echo_s(peer))
            rtt_s = quantity(echoes_s, "s")
        # Both directions, with a rest as long as the first between them, in the time that is left.
        left_s = until_s - self._clock.monotonic_s()
        send_s = max(0.0, (left_s - 2 * (2 * rtt_s.value + _TAIL_S)) / 3)
        effort = replace(effort, limit_s=min(effort.limit_s, send_s))
        up = await self._rested(self._up, peer, effort, until_s)
        down = await self._rested(self._down, peer, effort, until_s)
        notes = dict.fromkeys(note for note in (up.note, down.note) if note)
        return PeerMeasurement(
            peer=peer,
            rtt_s=rtt_s,
            uplink_bytes_per_s=up.bytes_per_s,
            downlink_bytes_per_s=down.bytes_per_s,
            note=" ".join(notes),
        )

    def _until(self, until_s: float) -> asyncio.Timeout:
        return asyncio.timeout(max(0.0, until_s - self._clock.monotonic_s()))

    async def _rested(
        self,
        direction: Callable[[PeerId, Effort], Awaitable[_Rate]],
        peer: PeerId,
        effort: Effort,
        until_s: float,
    ) -> _Rate:
        """Measure a direction when the line has had its rest; a refusal becomes a note."""
        began_s = self._clock.monotonic_s()
        try:
            async with self._until(until_s):
                await asyncio.sleep(self._rests_until_s - began_s)
                began_s = self._clock.monotonic_s()
                return await self._in_turn(direction, peer, effort)
        except StageRefused as refusal:
            return _Rate(None, str(refusal))
        except TimeoutError:
            return _Rate(None, "There was no time to measure all of it.")
        finally:
            ended_s = self._clock.monotonic_s()
            busy_s = min(ended_s - began_s, effort.limit_s)  # the rest of it nothing is sent
            self._rests_until_s = ended_s + busy_s * _REST_SHARE / (1 - _REST_SHARE)

    async def _in_turn(
        self, direction: Callable[[PeerId, Effort], Awaitable[_Rate]], peer: PeerId, effort: Effort
    ) -> _Rate:
        """Try a few times while this node or the peer has another train under way."""
        for _ in range(_TRIES):
            if self._turn.take():
                try:
                    return await direction(peer, effort)
                except _Busy:
                    pass
                finally:
                    self._turn.give_back()
            await asyncio.sleep(random.uniform(*_RETRY_S))  # noqa: S311 - no secret
        raise _Busy(f"The peer …{short(peer)} or this node is {BUSY}.")

    async def _echo_s(self, peer: PeerId) -> float:
        began_s = self._clock.monotonic_s()
        await self._ask(peer, Probe(request=secrets.randbits(64), want="echo"))
        return self._clock.monotonic_s() - began_s

    async def _up(self, peer: PeerId, effort: Effort) -> _Rate:
        request = secrets.randbits(64)
        await self._ask(peer, Probe(request=request, want="receive", num_bytes=effort.num_bytes))
        result = self._expect(peer, request)
        train = Train(peer, request, effort.num_bytes, effort.hold_s, effort.limit_s)
        began_s = self._clock.monotonic_s()
        try:
            async with asyncio.timeout(TRAIN_LIMIT_S):
                sent_bytes = await trains.send(self._links, self._clock, train)
                reply = await result
        except TimeoutError as error:
            raise _silent(peer) from error
        finally:
            del self._asked[peer, request]
        travelled_s = (
            self._clock.monotonic_s() - began_s - (self._links.neighbours.rtt_s(peer) or 0.0)
        )
        most = _PLAUSIBLE * sent_bytes / max(1e-3, travelled_s)
        return _rate(
            [min(rate, most) for rate in reply.rates_bytes_per_s], is_steady=reply.is_steady
        )

    async def _down(self, peer: PeerId, effort: Effort) -> _Rate:
        request = secrets.randbits(64)
        probe = Probe(
            request=request,
            want="send",
            num_bytes=effort.num_bytes,
            hold_s=effort.hold_s,
            limit_s=effort.limit_s,
        )
        with self._filler.expected(peer, request, effort.num_bytes) as train:
            await self._ask(peer, probe)
            try:
                async with asyncio.timeout(TRAIN_LIMIT_S):
                    arrivals = await train
            except TimeoutError as error:
                raise _silent(peer) from error
        return _rate(arrivals.rates_bytes_per_s(), is_steady=arrivals.is_steady)

    async def _ask(self, peer: PeerId, probe: Probe) -> None:
        """Ask, and wait for the peer's consent.

        Raises:
            StageRefused: It does not consent.
            PeerUnreachable: The link broke, or it says nothing.
        """
        answer = self._expect(peer, probe.request)
        try:
            self._links.send(peer, message_frame(Kind.PROBE, probe))
            async with asyncio.timeout(_ANSWER_LIMIT_S):
                reply = await answer
        except TimeoutError as error:
            raise _silent(peer) from error
        finally:
            del self._asked[peer, probe.request]
        if reply.refused == BUSY:
            raise _Busy(BUSY)
        if reply.refused:
            raise StageRefused(f"The peer …{short(peer)} is {reply.refused}.")

    def _expect(self, peer: PeerId, request: int) -> asyncio.Future[ProbeReply]:
        future: asyncio.Future[ProbeReply] = asyncio.get_running_loop().create_future()
        self._asked[peer, request] = future
        return future

    def _on_reply(self, peer: PeerId, frame: Frame) -> None:
        reply = parse(frame, ProbeReply)
        future = self._asked.get((peer, reply.request))
        if future is not None and not future.done():
            future.set_result(reply)

    def _on_lost(self, peer: PeerId, error: PeerError) -> None:
        for (other, _), future in self._asked.items():
            if other == peer and not future.done():
                future.set_exception(PeerUnreachable(str(error)))
                future.exception()  # nobody may be waiting yet; that is fine


class _Busy(StageRefused):
    """One of both has another train under way."""


def _rate(rates: Sequence[float], *, is_steady: bool) -> _Rate:
    if not rates:
        return _Rate(None, "Too little came to say how fast.")
    mean = exactly(mean_rate(rates), "B/s", spread=quantity(rates, "B/s").spread)
    return _Rate(mean, "" if is_steady else "The line may carry more than could be tried.")


def _silent(peer: PeerId) -> PeerUnreachable:
    return PeerUnreachable(f"The peer …{short(peer)} does not answer probes.")
