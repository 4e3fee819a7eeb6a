"""The agent as one object: what the local API talks to, made of the parts that do the work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

from engine.config import Config
from engine.core.clock import Clock
from engine.core.errors import ConfigError, EnginePaused
from engine.core.generation import Lossy, PrefixUse, SpeculationWish, TokenEvent
from engine.core.ids import PeerId
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import SwarmSnapshot
from engine.http.catalogue_routes import Rooms
from engine.localapi.measurements import NetworkMeasurement
from engine.localapi.running import Home
from engine.localapi.schema import (
    EngineStatus,
    Measurements,
    MeasureRequest,
    PauseRequest,
    Progress,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.localapi.updates import UpdateInfo
from engine.models.tokenizer import ChatTokenizer
from engine.node.compute import Compute
from engine.node.guest import Facts, Guest
from engine.node.leases import Leases
from engine.node.life import Life
from engine.node.measuring import measure_network
from engine.node.resting import Parts, Resting
from engine.node.rooms import rooms
from engine.node.stage_runner import StageRunner
from engine.node.status import describe
from engine.node.swarms import Swarms
from engine.node.watchers import Watchers
from engine.probes.gpu import GpuProbe
from engine.probes.reader import Reader
from engine.probes.senses import senses
from engine.profiler.cache import cached
from engine.swarm.invites import Invite
from engine.swarm.rate_caps import HouseholdLine

_logger = logging.getLogger(__name__)


class Node:
    """One engine. `start` and `stop` bound its life; the rest is `engine.http.backend.Backend`."""

    def __init__(
        self,
        home: Home,
        config: Config,
        compute: Compute,
        invite: Invite | None,
        clock: Clock,
        *,
        leased: bool,
        awaits_setup: bool = False,
    ) -> None:
        """A `leased` engine ends with its last lease.

        One that `awaits_setup` does nothing before a person has said how it shall begin.
        """
        self._home = home
        self._clock = clock
        self.line = HouseholdLine(clock)
        """What all links share; counts what goes by."""
        self.ended = asyncio.Event()
        """Set when somebody has asked the engine to end."""
        self._watchers = Watchers(self.status, self.ended)
        parts = Parts(
            self._stage,
            lambda: self._life.membership.rest(),
            lambda: self._life.leave(),
            lambda: self._life.come_back(),
        )
        self._resting = Resting(home, clock, parts, self._watchers.tell)
        self._life = Life(
            home,
            config,
            compute,
            invite,
            clock,
            self.line,
            self._watchers.tell,
            self._resting,
            awaits_setup=awaits_setup,
        )
        self._follow_rates()
        self._swarms = Swarms(home, self._life)
        self._leases = Leases(self.quit, is_leased=leased)
        self._guest: asyncio.Task[None] | None = None
        self._tokens_used = 0
        self._generations: set[object] = set()
        """One for each request of our own that runs."""
        self.api_url = ""
        self.notices: Callable[[], tuple[str, ...]] = tuple
        """What the person should know besides."""
        self.update: Callable[[], UpdateInfo | None] = lambda: None
        """What is known of new versions of Shoal."""
        self.restarts = False
        """Whether the engine wants to be started anew when it has ended."""
        self._is_finishing = False

    # Life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to join, prepare and serve; `status` tells how it goes."""
        self._resting.start()
        self._life.begin()
        self._begin_guest()
        self._leases.start()

    def adopt(self, config: Config, invite: Invite) -> None:
        """Take other settings and the swarm of `--stages`; before `start` only."""
        self._swarms.is_spread = True
        self._life.adopt(config, invite)

    def show_progress(self, progress: Progress) -> None:
        """Show that the model is being prepared; before `start` only."""
        self._life.membership.show(progress)

    async def stop(self) -> None:
        """Leave the swarm and end the worker."""
        self.quit()
        self._resting.close()
        self._leases.close()
        await self._end_guest()
        await self._life.close()

    def quit(self) -> None:
        """See `Backend`."""
        self.ended.set()
        self._watchers.tell()

    async def restart(self) -> None:
        """End to be started anew, after running requests have ended or gone elsewhere."""
        await self._drain("Shoal is starting again.", self.config.stage.drain_limit_s)
        self.restarts = not self._is_finishing
        self.quit()

    async def finish(self, limit_s: float) -> None:
        """End after running requests have ended or gone elsewhere, or after the limit."""
        self._is_finishing = True  # also where a restart has begun before
        serving = self._life.membership.serving
        try:
            if self._generations or (serving is not None and serving.handler.num_sessions):
                async with asyncio.timeout(limit_s):
                    await self._drain("Shoal is ending.", limit_s)
        except TimeoutError:
            _logger.warning("Requests still ran %.0f s after the engine was asked to end.", limit_s)
        finally:
            self.quit()

    async def _drain(self, reason: str, limit_s: float) -> None:
        # Not those that begin from now on, else a batch would never let us end.
        begun = set(self._generations)
        await self._resting.drain(reason, lambda: not begun.isdisjoint(self._generations), limit_s)

    def tell(self) -> None:
        """Say that what the status shows has changed."""
        self._watchers.tell()

    @property
    def is_silent(self) -> bool:
        """Whether nothing at all may go over the network unasked."""
        return self._life.awaits_setup or self._resting.leaves

    def lease_opened(self) -> None:
        """See `Backend`."""
        self._leases.opened()

    def lease_closed(self) -> None:
        """See `Backend`."""
        self._leases.closed()

    # Status ---------------------------------------------------------------------------------

    def status(self) -> EngineStatus:
        """See `Backend`."""
        status = describe(
            self._life.membership,
            self._life.trouble,
            self._resting.now(),
            api_url=self.api_url,
            leased=self._leases.is_leased,
            tokens_used=self._tokens_used,
        )
        return status.model_copy(
            update={
                "notices": (*self.notices(), *self._resting.notices, *status.notices),
                "awaits_setup": self._life.awaits_setup,
                "update": self.update(),
            }
        )

    def watch(self) -> AsyncIterator[EngineStatus]:
        """See `Backend`."""
        return self._watchers.watch()

    # Rest -----------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> None:
        """See `Backend`."""
        if not self.config.stage.enabled and request.scope == "stage":
            raise ConfigError("This engine holds no blocks, so there is nothing to pause.")
        await self._resting.pause(request)

    async def resume(self) -> None:
        """See `Backend`."""
        await self._resting.resume()

    def _stage(self) -> StageRunner | None:
        serving = self._life.membership.serving
        return None if serving is None else serving.stage

    async def _wake(self) -> None:
        if self._life.compute.device != "cpu":
            await self._resting.begin_again()

    def _pace(self, work_share: float) -> None:
        serving = self._life.membership.serving
        if serving is not None:
            serving.handler.pace.work_share = work_share

    def _begin_guest(self) -> None:
        if self.config.stage.enabled:
            gpu = None if self.gpu_uuid is None else GpuProbe(self.gpu_uuid)
            reader = Reader(senses(), gpu, self._clock)
            guest = Guest(reader, self._facts, self._resting.obey, self._wake, self._pace)
            self._guest = asyncio.create_task(guest.run(), name="guest")

    async def _end_guest(self) -> None:
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.cancel()
            await asyncio.wait({guest})

    def _facts(self) -> Facts:
        stage = self._stage()
        return Facts(
            self.config.guest,
            self.config.swarm.metered,
            worker_pid=None if stage is None else stage.worker_pid,
            in_swarm=self.invite is not None,
        )

    # Settings -------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The settings now."""
        return self._life.config

    @property
    def model_folder(self) -> Path | None:
        """Where the model that runs now lies; None while there is none."""
        serving = self._life.membership.serving
        return None if serving is None else serving.files.directory

    @property
    def gpu_uuid(self) -> str | None:
        """The GPU that the stage computes on; None: a CPU, or a part of a GPU."""
        return self._life.compute.gpu_uuid

    def follow(self, config: Config) -> None:
        """Take settings that need nothing to be begun again: rates, rules, room on the disk."""
        self._life.follow(config)
        self._follow_rates()

    async def begin_again(self, config: Config, machine: Compute) -> None:
        """Leave the swarm and join it again with other settings, or as another peer."""
        await self._end_guest()
        await self._life.begin_again(config, machine)
        self._follow_rates()
        self._begin_guest()
        self._watchers.tell()

    @property
    def is_spread(self) -> bool:
        """Started with `--stages`: its settings hold for other engines too, until all end."""
        return self._swarms.is_spread

    def _follow_rates(self) -> None:
        self.line.up.bytes_per_s = self.config.limits.uplink_bytes_per_s
        self.line.down.bytes_per_s = self.config.limits.downlink_bytes_per_s

    # Swarms ---------------------------------------------------------------------------------

    def swarm_info(self) -> SwarmInfo:
        """See `Backend`."""
        return self._swarms.info()

    async def swarm_create(self, request: SwarmCreateRequest) -> SwarmInfo:
        """See `Backend`."""
        return await self._swarms.create(request)

    async def swarm_join(self, request: SwarmJoinRequest) -> SwarmInfo:
        """See `Backend`."""
        return await self._swarms.join(request)

    async def swarm_leave(self) -> SwarmInfo:
        """See `Backend`."""
        return await self._swarms.leave()

    @property
    def invite(self) -> Invite | None:
        """Of the swarm we are in or go to; None when solo."""
        return self._life.membership.invite

    def rooms(self) -> Rooms:
        """See `engine.http.catalogue_routes.CatalogueBackend`."""
        return rooms(self._life.membership, self._life.compute, self.config.stage)

    # Setting up and measuring ----------------------------------------------------------------

    async def begin(self) -> None:
        """Begin alone, if nothing has begun yet."""
        await self._life.begin_alone()

    def show(self, progress: Progress | None) -> None:
        """Show how far something is that has nothing to do with the stage."""
        self._life.membership.progress = progress
        self._watchers.tell()

    def swarm_now(self) -> tuple[PeerId | None, SwarmSnapshot | None]:
        """(Our id, the swarm as we see it); None before we have joined."""
        joined, serving = self._life.membership.joined, self._life.membership.serving
        return (
            None if joined is None else joined.peer.peer_id,
            None if serving is None else serving.directory.snapshot(),
        )

    async def measurements(self) -> Measurements:
        """See `Backend`."""
        return Measurements(profile=await asyncio.to_thread(cached, self._home))

    async def measure_network(self, request: MeasureRequest) -> NetworkMeasurement:
        """See `Backend`."""
        return await measure_network(self._life.membership, request)

    # Generating -----------------------------------------------------------------------------

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        """See `Backend`."""
        serving = self._life.serving()
        return serving.files.spec, serving.tokenizer

    def free_kv_tokens(self) -> int | None:
        """See `Backend`."""
        serving = self._life.membership.serving
        return None if serving is None else serving.free_kv_tokens()

    async def generate(
        self,
        prompts: Sequence[Sequence[int]],
        params: Sequence[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: SpeculationWish | None = None,
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """See `Backend`."""
        serving = self._life.serving()
        if serving.client.route() is None and (reason := self._resting.reason):
            raise EnginePaused(f"{reason} No other node serves the whole model.")
        generation = serving.client.generate(prompts, params, prefixes, lossy, speculation)
        running = object()
        self._generations.add(running)
        try:
            async with contextlib.aclosing(generation) as events:
                async for event in events:
                    self._tokens_used += 1
                    yield event
        finally:
            self._generations.discard(running)
