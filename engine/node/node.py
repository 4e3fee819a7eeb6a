"""The agent as one object: what the local API talks to, and the loop that keeps it alive."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

from engine.config import Config
from engine.core.clock import Clock
from engine.core.errors import ConfigError, EngineError, EnginePaused, PeerError, ResourceError
from engine.core.generation import Lossy, PrefixUse, Speculation, TokenEvent
from engine.core.ids import PeerId
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.core.snapshot import SwarmSnapshot
from engine.http.catalogue_routes import Rooms
from engine.localapi.measurements import NetworkMeasurement
from engine.localapi.running import Home
from engine.localapi.schema import (
    EngineState,
    EngineStatus,
    Measurements,
    MeasureRequest,
    PauseRequest,
    Progress,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.models.tokenizer import ChatTokenizer
from engine.node import founding
from engine.node.caps import within_limits
from engine.node.compute import Compute
from engine.node.guest import Facts, Guest
from engine.node.measuring import measure_network
from engine.node.membership import Membership, Serving
from engine.node.resting import Parts, Resting
from engine.node.rooms import rooms
from engine.node.stage_runner import StageRunner
from engine.node.status import Trouble, describe, state_of
from engine.probes.gpu import GpuProbe
from engine.probes.reader import Reader
from engine.probes.senses import senses
from engine.profiler.cache import cached
from engine.swarm import invites
from engine.swarm.invites import Invite
from engine.swarm.rate_caps import HouseholdLine

logger = logging.getLogger(__name__)

RETRY_S = 10.0
WATCH_S = 1.0
"""Counters in the status are at most this old for those who watch."""
FIRST_LEASE_S = 60.0
"""A leased engine whose owner never comes, because it was killed meanwhile, ends after this."""
AWAITS_SETUP = "Shoal waits until you have said how it shall begin."
LEASE_GRACE_S = 1.0
"""A leased engine outlives its last lease by this: a reload of the window is no reason to end."""


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
        self._leased = leased
        self._awaits_setup = awaits_setup
        self._home = home
        self._config = config
        self._compute = compute
        self._clock = clock
        self.line = HouseholdLine(clock)
        """What all links share; counts what goes by."""
        self._follow_limits()
        self._membership = self._new_membership(invite)
        self._life: asyncio.Task[None] | None = None
        self._switching = asyncio.Lock()
        self._trouble: Trouble | None = None
        parts = Parts(self._stage, self._look_no_more, self._leave, self._come_back)
        self._resting = Resting(home, clock, parts, self._notify)
        self._guest: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Event] = set()
        self._is_spread = False
        """Started with `--stages`: the other engines here count on our blocks and our swarm."""
        self._leases = 0
        self._lease_timer: asyncio.TimerHandle | None = None
        self._tokens_used = 0
        self.ended = asyncio.Event()
        """Set when somebody has asked the engine to end."""
        self.api_url = ""
        self.notices: tuple[str, ...] = ()
        """What the person should know of this start."""

    # Life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to join, prepare and serve; `status` tells how it goes."""
        self._resting.start()
        if not self._resting.leaves:
            self._begin_life(None)
        self._begin_guest()
        # The API answers before this, so the owner may have come, or gone, already.
        if self._leased and self._leases == 0 and self._lease_timer is None:
            loop = asyncio.get_running_loop()
            self._lease_timer = loop.call_later(FIRST_LEASE_S, self.quit)

    def adopt(self, config: Config, invite: Invite) -> None:
        """Take other settings and another swarm; before `start` only."""
        self._config = config
        self._is_spread = True
        self._membership = self._new_membership(invite)

    def show_progress(self, progress: Progress) -> None:
        """Show that the model is being prepared; before `start` only."""
        self._membership.show(progress)

    def _begin_life(self, joined: asyncio.Future[None] | None) -> None:
        if self._awaits_setup:
            self._membership.doing = AWAITS_SETUP
            return
        self._life = asyncio.create_task(self._live(self._membership, joined), name="membership")

    async def stop(self) -> None:
        """Leave the swarm and end the worker."""
        self.ended.set()
        self._notify()
        self._resting.close()
        if self._lease_timer is not None:
            self._lease_timer.cancel()
        await self._end_guest()
        await self._end_life()

    async def _live(self, membership: Membership, joined: asyncio.Future[None] | None) -> None:
        """Belong to a swarm, joining again after troubles; `joined` learns of the first try."""
        while True:
            try:
                async with membership.join() as peer_and_links:
                    self._set_trouble(None)
                    if joined is not None and not joined.done():
                        joined.set_result(None)
                    await membership.run(peer_and_links, lambda: self._resting.reason)
            except PeerError as error:
                state, text = EngineState.OFFLINE, str(error)
                failure: EngineError = error
            except EngineError as error:
                state, text = EngineState.ERROR, str(error)
                failure = error
            except Exception as error:
                logger.exception("the membership failed")
                text = f"Something unexpected went wrong ({type(error).__name__}); see the log."
                state, failure = EngineState.ERROR, EngineError(text)
            logger.warning("%s", text)
            if joined is not None and not joined.done():
                joined.set_exception(failure)
                return
            self._set_trouble((state, text))
            await asyncio.sleep(RETRY_S)

    async def _end_life(self) -> None:
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
            self._life = None

    def _new_membership(self, invite: Invite | None) -> Membership:
        return Membership(
            self._home,
            self._config,
            invite,
            self._compute,
            self._clock,
            self._notify,
            self.line,
        )

    # Status ---------------------------------------------------------------------------------

    def status(self) -> EngineStatus:
        """See `Backend`."""
        return describe(
            self._membership,
            self._trouble,
            self._resting.now(),
            api_url=self.api_url,
            leased=self._leased,
            tokens_used=self._tokens_used,
        ).model_copy(update={"notices": self.notices, "awaits_setup": self._awaits_setup})

    async def watch(self) -> AsyncIterator[EngineStatus]:
        """See `Backend`."""
        changed = asyncio.Event()
        self._watchers.add(changed)
        shown: EngineStatus | None = None
        try:
            while not self.ended.is_set():
                status = self.status()
                if status != shown:
                    shown = status
                    yield status
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(WATCH_S):
                        await changed.wait()
                changed.clear()
        finally:
            self._watchers.discard(changed)

    def _notify(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    def _set_trouble(self, trouble: Trouble | None) -> None:
        self._trouble = trouble
        self._notify()

    # Lifetime of a leased engine ------------------------------------------------------------

    def lease_opened(self) -> None:
        """See `Backend`."""
        self._leases += 1
        if self._lease_timer is not None:
            self._lease_timer.cancel()
            self._lease_timer = None

    def lease_closed(self) -> None:
        """See `Backend`."""
        self._leases -= 1
        if self._leased and self._leases == 0:
            loop = asyncio.get_running_loop()
            self._lease_timer = loop.call_later(LEASE_GRACE_S, self.quit)

    def quit(self) -> None:
        """See `Backend`."""
        self.ended.set()
        self._notify()

    # Rest -----------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> None:
        """See `Backend`."""
        if not self._config.stage.enabled and request.scope == "stage":
            raise ConfigError("This engine holds no blocks, so there is nothing to pause.")
        await self._resting.pause(request)

    async def resume(self) -> None:
        """See `Backend`."""
        await self._resting.resume()

    def _stage(self) -> StageRunner | None:
        serving = self._membership.serving
        return None if serving is None else serving.stage

    async def _look_no_more(self) -> None:
        await self._membership.look_no_more()

    async def _leave(self) -> None:
        async with self._switching:
            await self._end_life()
            self._set_trouble(None)

    async def _come_back(self) -> None:
        async with self._switching:
            self._membership = self._new_membership(self._membership.invite)
            self._begin_life(None)

    async def _wake(self) -> None:
        if self._compute.device != "cpu":
            await self._resting.begin_again()

    def _pace(self, work_share: float) -> None:
        if self._membership.serving is not None:
            self._membership.serving.handler.pace.work_share = work_share

    def _begin_guest(self) -> None:
        if self._config.stage.enabled:
            gpu = None if self._compute.gpu_uuid is None else GpuProbe(self._compute.gpu_uuid)
            reader = Reader(senses(), gpu, self._clock)
            guest = Guest(reader, self._facts, self._resting.obey, self._wake, self._pace)
            self._guest = asyncio.create_task(guest.run(), name="guest")

    async def _end_guest(self) -> None:
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.cancel()
            await asyncio.wait({guest})

    def _facts(self) -> Facts:
        stage, config = self._stage(), self._config
        return Facts(
            config.guest,
            config.swarm.metered,
            worker_pid=None if stage is None else stage.worker_pid,
            in_swarm=self._membership.invite is not None,
        )

    # Settings -------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """The settings now."""
        return self._config

    @property
    def model_folder(self) -> Path | None:
        """Where the model that runs now lies; None while there is none."""
        serving = self._membership.serving
        return None if serving is None else serving.files.directory

    @property
    def gpu_uuid(self) -> str | None:
        """The GPU that the stage computes on; None: a CPU, or a part of a GPU."""
        return self._compute.gpu_uuid

    def follow(self, config: Config) -> None:
        """Take settings that need nothing to be begun again: rates, rules, room on the disk."""
        self._config = config
        self._follow_limits()
        self._membership.config = within_limits(config, on_gpu=self._compute.device != "cpu")

    async def begin_again(self, config: Config, machine: Compute) -> None:
        """Leave the swarm and join it again with other settings, or as another peer."""
        await self._end_guest()
        async with self._switching:
            await self._end_life()
            self._config, self._compute = config, machine
            self._follow_limits()
            self._membership = self._new_membership(self._membership.invite)
            if not self._resting.leaves:
                self._begin_life(None)
        self._begin_guest()
        self._notify()

    @property
    def is_spread(self) -> bool:
        """Started with `--stages`: its settings hold for other engines too, until all end."""
        return self._is_spread

    def _follow_limits(self) -> None:
        self.line.up.bytes_per_s = self._config.limits.uplink_bytes_per_s
        self.line.down.bytes_per_s = self._config.limits.downlink_bytes_per_s

    # Swarms ---------------------------------------------------------------------------------

    def swarm_info(self) -> SwarmInfo:
        """See `Backend`."""
        invite = self._membership.invite
        if invite is None:
            return SwarmInfo(name=None, model=self._membership.source)
        return SwarmInfo(
            name=invite.name,
            private=invite.key is not None,
            model=invite.model_id,
            invite=invite.text(),
            bootstrap=invite.bootstrap,
        )

    async def swarm_create(self, request: SwarmCreateRequest) -> SwarmInfo:
        """See `Backend`."""
        if self._awaits_setup:
            spec = (await self._membership.find_model()).spec
        else:
            spec = self._serving().files.spec
        invite = founding.found(
            self._home,
            request.name,
            listen=self._config.swarm.listen,
            source=self._membership.source,
            model_id=spec.model_id,
            private=request.private,
        )
        return await self._switch(invite)

    async def swarm_join(self, request: SwarmJoinRequest) -> SwarmInfo:
        """See `Backend`."""
        return await self._switch(invites.parse(request.invite))

    async def swarm_leave(self) -> SwarmInfo:
        """See `Backend`."""
        return await self._switch(None)

    async def _switch(self, invite: Invite | None) -> SwarmInfo:
        """Change swarms; when the new one cannot be joined, the old one stays."""
        if self._is_spread:
            raise ConfigError(
                "This engine was started with --stages, which is a swarm of its own; start it "
                "without to found, join or leave another."
            )
        if self._resting.leaves:
            raise EnginePaused("Everything is paused; resume before you change swarms.")
        async with self._switching:
            old, awaited_setup = self._membership.invite, self._awaits_setup
            self._awaits_setup = False
            await self._end_life()
            self._membership = self._new_membership(invite)
            joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._begin_life(joined)
            try:
                await joined
                if invite is None:
                    self._home.swarm_file.unlink(missing_ok=True)
                else:
                    invites.save(self._home.swarm_file, invite)
            except BaseException:
                await self._end_life()
                self._awaits_setup = awaited_setup
                self._membership = self._new_membership(old)
                self._begin_life(None)
                raise
            return self.swarm_info()

    def rooms(self) -> Rooms:
        """See `engine.http.catalogue_routes.CatalogueBackend`."""
        return rooms(self._membership, self._compute, self._config.stage)

    # Measuring ------------------------------------------------------------------------------

    async def measurements(self) -> Measurements:
        """See `Backend`."""
        return Measurements(profile=await asyncio.to_thread(cached, self._home))

    async def measure_network(self, request: MeasureRequest) -> NetworkMeasurement:
        """See `Backend`."""
        return await measure_network(self._membership, request)

    # Setting up -----------------------------------------------------------------------------

    @property
    def invite(self) -> Invite | None:
        """Of the swarm we are in or go to; None when solo."""
        return self._membership.invite

    async def begin(self) -> None:
        """Begin alone, if nothing has begun yet."""
        async with self._switching:
            if self._awaits_setup:
                self._awaits_setup = False
                self._membership = self._new_membership(self._membership.invite)
                if not self._resting.leaves:
                    self._begin_life(None)
        self._notify()

    def show(self, progress: Progress | None) -> None:
        """Show how far something is that has nothing to do with the stage."""
        self._membership.progress = progress
        self._notify()

    def swarm_now(self) -> tuple[PeerId | None, SwarmSnapshot | None]:
        """(Our id, the swarm as we see it); None before we have joined."""
        joined, serving = self._membership.joined, self._membership.serving
        return (
            None if joined is None else joined.peer.peer_id,
            None if serving is None else serving.directory.snapshot(),
        )

    # Generating -----------------------------------------------------------------------------

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        """See `Backend`."""
        serving = self._serving()
        return serving.files.spec, serving.tokenizer

    def free_kv_tokens(self) -> int | None:
        """See `Backend`."""
        serving = self._membership.serving
        route = None if serving is None else serving.client.route()
        if serving is None or route is None:
            return None
        snapshot = serving.directory.snapshot()
        stages = [stage for hop in route.hops if (stage := snapshot.stage(hop.peer)) is not None]
        free, _ = serving.handler.kv_tokens
        # Our own announcement may be seconds old.
        return min(
            (
                free.device if stage.peer == serving.client.local_peer else stage.kv_free_tokens
                for stage in stages
            ),
            default=None,
        )

    async def generate(
        self,
        prompts: Sequence[Sequence[int]],
        params: Sequence[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: Speculation | None = None,
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """See `Backend`."""
        serving = self._serving()
        if serving.client.route() is None and (reason := self._resting.reason):
            raise EnginePaused(f"{reason} No other node serves the whole model.")
        generation = serving.client.generate(prompts, params, prefixes, lossy, speculation)
        async with contextlib.aclosing(generation) as events:
            async for event in events:
                self._tokens_used += 1
                yield event

    def _serving(self) -> Serving:
        serving = self._membership.serving
        if serving is None:
            state, reason = state_of(self._membership, self._trouble, self._resting.now())
            raise ResourceError(f"Shoal is not ready ({state.value}): {reason}")
        return serving
