"""Answering when other members measure their lines to us: bounded, since anybody may ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from engine.core.clock import Clock
from engine.core.errors import PeerError, PeerSilent
from engine.core.ids import PeerId, short
from engine.profiler import trains
from engine.profiler.budget import ProbeBudget
from engine.profiler.filler_in import FillerIn
from engine.profiler.trains import TRAIN_LIMIT_S, Train
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import message_frame, parse
from engine.protocol.probes import Probe, ProbeReply
from engine.swarm.links import Links

_logger = logging.getLogger(__name__)

BUSY: Final = "busy with another measurement"
_METERED: Final = "on a connection that costs by the byte"
_ENOUGH: Final = "not willing to measure more for now"
_BEGIN_LIMIT_S: Final = 2.0
"""Whoever may send and does not keeps others from it for so long."""
_MIN_COST_BYTES: Final = 1 << 20
"""What a probe counts at least: it takes its turn, however small it is."""
_MOST_QUEUED_BYTES: Final = 64 << 10
"""Whoever asks without reading our answers gets no more of them."""


class Turn:
    """At most one train to or from this node at a time: two would measure each other."""

    def __init__(self) -> None:
        self.is_taken = False

    def take(self) -> bool:
        """Whether it is ours now."""
        if self.is_taken:
            return False
        self.is_taken = True
        return True

    def give_back(self) -> None:
        """Let others."""
        self.is_taken = False


class ProbeAnswers:
    """Of one node, for as long as its links live."""

    def __init__(
        self,
        links: Links,
        clock: Clock,
        filler: FillerIn,
        turn: Turn,
        is_metered: Callable[[], Awaitable[bool | None]],
    ) -> None:
        """`is_metered` says whether the connection costs by the byte, None if nobody knows."""
        self._links = links
        self._clock = clock
        self._filler = filler
        self._turn = turn
        self._is_metered = is_metered
        self._budget = ProbeBudget()
        self._tasks: set[asyncio.Task[None]] = set()
        links.on([Kind.PROBE], self._on_probe)

    async def close(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_probe(self, peer: PeerId, frame: Frame) -> None:
        probe = parse(frame, Probe)
        if probe.want == "echo":
            self._reply(peer, ProbeReply(request=probe.request))
        elif self._filler.is_expected(peer) or not self._turn.take():
            self._reply(peer, ProbeReply(request=probe.request, refused=BUSY))
        else:
            task = asyncio.create_task(self._answer(peer, probe), name="probe")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, peer: PeerId, probe: Probe) -> None:
        cost_bytes = max(probe.num_bytes, _MIN_COST_BYTES)
        try:
            if await self._is_metered():
                self._reply(peer, ProbeReply(request=probe.request, refused=_METERED))
            elif not self._budget.take(peer, cost_bytes, self._clock.monotonic_s()):
                self._reply(peer, ProbeReply(request=probe.request, refused=_ENOUGH))
            elif probe.want == "send":
                await self._send(peer, probe)
            else:
                await self._receive(peer, probe)
        except (PeerError, TimeoutError) as error:
            _logger.info("a probe of …%s ended early: %s", short(peer), error)
        except Exception:
            _logger.exception("a probe could not be answered")
        finally:
            self._turn.give_back()

    async def _send(self, peer: PeerId, probe: Probe) -> None:
        self._reply(peer, ProbeReply(request=probe.request))
        train = Train(peer, probe.request, probe.num_bytes, probe.hold_s, probe.limit_s)
        await trains.send(self._links, self._clock, train)

    async def _receive(self, peer: PeerId, probe: Probe) -> None:
        with self._filler.expected(peer, probe.request, probe.num_bytes) as train:
            self._reply(peer, ProbeReply(request=probe.request))
            await asyncio.wait({train}, timeout=_BEGIN_LIMIT_S)
            if not self._filler.has_begun(peer):
                raise PeerSilent("Nothing came of what it wanted to send.")
            async with asyncio.timeout(TRAIN_LIMIT_S):
                arrivals = await train
        self._reply(
            peer,
            ProbeReply(
                request=probe.request,
                rates_bytes_per_s=arrivals.rates_bytes_per_s(),
                is_steady=arrivals.is_steady,
            ),
        )

    def _reply(self, peer: PeerId, reply: ProbeReply) -> None:
        if self._links.neighbours.queued_bytes(peer) < _MOST_QUEUED_BYTES:
            self._links.answer(peer, message_frame(Kind.PROBED, reply))
