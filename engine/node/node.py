"""The agent as one object: what the local API talks to, and the loop that keeps it alive."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

import psutil

from engine import __version__
from engine.config import Config
from engine.core.clock import Clock
from engine.core.errors import ConfigError, EngineError, EnginePaused, PeerError, ResourceError
from engine.core.generation import TokenEvent
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.localapi.running import Home
from engine.localapi.schema import (
    EngineState,
    EngineStatus,
    PauseRequest,
    PipelineStage,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.models.tokenizer import ChatTokenizer
from engine.node import founding
from engine.node.compute import Compute
from engine.node.membership import Membership, Serving
from engine.node.stage_runner import Phase
from engine.swarm import invites
from engine.swarm.invites import Invite

logger = logging.getLogger(__name__)

RETRY_S = 10.0
WATCH_S = 1.0
"""Counters in the status are at most this old for those who watch."""
FIRST_LEASE_S = 60.0
"""A leased engine whose owner never comes, because it was killed meanwhile, ends after this."""
LEASE_GRACE_S = 1.0
"""A leased engine outlives its last lease by this: a reload of the window is no reason to end."""
PAUSE_TEXT = "Paused until you resume."


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
    ) -> None:
        """A `leased` engine ends with its last lease."""
        self._leased = leased
        self._home = home
        self._config = config
        self._compute = compute
        self._clock = clock
        self._membership = self._new_membership(invite)
        self._life: asyncio.Task[None] | None = None
        self._switching = asyncio.Lock()
        self._trouble: tuple[EngineState, str] | None = None
        self._paused = False
        self._resume_timer: asyncio.TimerHandle | None = None
        self._resume_unix_s: float | None = None
        self._resuming: asyncio.Task[None] | None = None
        self._watchers: set[asyncio.Event] = set()
        self._leases = 0
        self._lease_timer: asyncio.TimerHandle | None = None
        self._tokens_used = 0
        self.ended = asyncio.Event()
        """Set when somebody has asked the engine to end."""
        self.api_url = ""

    # Life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to join, prepare and serve; `status` tells how it goes."""
        self._begin_life(None)
        if self._leased:
            loop = asyncio.get_running_loop()
            self._lease_timer = loop.call_later(FIRST_LEASE_S, self.quit)

    def _begin_life(self, joined: asyncio.Future[None] | None) -> None:
        self._life = asyncio.create_task(self._live(self._membership, joined), name="membership")

    async def stop(self) -> None:
        """Leave the swarm and end the worker."""
        self.ended.set()
        self._notify()
        for timer in (self._resume_timer, self._lease_timer):
            if timer is not None:
                timer.cancel()
        await self._end_life()

    async def _live(self, membership: Membership, joined: asyncio.Future[None] | None) -> None:
        """Belong to a swarm, joining again after troubles; `joined` learns of the first try."""
        while True:
            try:
                async with membership.join() as peer_and_links:
                    self._set_trouble(None)
                    if joined is not None and not joined.done():
                        joined.set_result(None)
                    await membership.run(peer_and_links, paused=self._paused)
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
            self._home, self._config, invite, self._compute, self._clock, self._notify
        )

    # Status ---------------------------------------------------------------------------------

    def status(self) -> EngineStatus:
        """See `Backend`."""
        membership, serving = self._membership, self._membership.serving
        joined = membership.joined
        state, reason = self._state(serving)
        stage = None if serving is None else serving.stage
        free_tokens, total_tokens = (0, 0) if serving is None else serving.handler.kv_tokens
        plan = self._plan(serving)
        snapshot = None if serving is None else serving.directory.snapshot()
        worker_pid = None if stage is None else stage.worker_pid
        return EngineStatus(
            state=state,
            reason=reason,
            until=self._resume_unix_s if self._paused else None,
            span=None if stage is None else (stage.order.span.start, stage.order.span.end),
            model=None if serving is None else serving.files.spec.name,
            num_blocks=None if serving is None else serving.files.spec.num_hidden_layers,
            peers=0 if snapshot is None else snapshot.peers_online,
            sessions=0 if serving is None else serving.handler.num_sessions,
            tokens_served=0 if serving is None else serving.handler.pace.tokens,
            tokens_used=self._tokens_used,
            plan=plan,
            swarm=None if membership.invite is None else membership.invite.name,
            private=membership.invite is not None and membership.invite.key is not None,
            peer_id=None if joined is None else joined.peer.peer_id,
            progress=membership.progress or (None if stage is None else stage.progress),
            version=__version__,
            api_url=self.api_url,
            worker_pid=worker_pid,
            worker_rss_bytes=_rss_bytes(worker_pid),
            kv_total_tokens=total_tokens,
            kv_free_tokens=free_tokens,
            dropped_records=0 if snapshot is None else snapshot.dropped_records,
            clock_offset_s=None if joined is None else _rounded(joined.links.clock_offset_s()),
            can_chat=bool(plan),
            leased=self._leased,
        )

    def _state(self, serving: Serving | None) -> tuple[EngineState, str]:
        if self._trouble is not None:
            return self._trouble
        if serving is None:
            return EngineState.STARTING, self._membership.doing
        offset_s = None
        if self._membership.joined is not None:
            offset_s = self._membership.joined.links.clock_offset_s()
        if offset_s is not None and abs(offset_s) > self._config.swarm.max_clock_offset_s:
            return EngineState.OFFLINE, (
                f"This computer's clock is {abs(offset_s):.0f} s "
                f"{'ahead of' if offset_s > 0 else 'behind'} the swarm's, so others ignore it; "
                "switch on automatic time in the system settings."
            )
        stage = serving.stage
        if stage is None:
            return EngineState.IDLE, "This engine holds no blocks; it only uses the swarm."
        match stage.phase:
            case Phase.LOADING:
                return EngineState.STARTING, stage.reason
            case Phase.DRAINING:
                return EngineState.DRAINING, stage.reason
            case Phase.PAUSED:
                return EngineState.PAUSED, stage.reason
            case Phase.FAILED:
                return EngineState.ERROR, stage.reason
            case Phase.ONLINE:
                busy = serving.handler.num_sessions > 0
                return (EngineState.SERVING if busy else EngineState.IDLE), ""

    def _plan(self, serving: Serving | None) -> tuple[PipelineStage, ...]:
        """The route that a request would take now."""
        if serving is None:
            return ()
        route = serving.client.route()
        return (
            ()
            if route is None
            else tuple(
                PipelineStage(
                    peer=hop.peer,
                    start=hop.span.start,
                    end=hop.span.end,
                    is_self=hop.peer == serving.client.local_peer,
                )
                for hop in route.hops
            )
        )

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

    def _set_trouble(self, trouble: tuple[EngineState, str] | None) -> None:
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

    # Pause ----------------------------------------------------------------------------------

    async def pause(self, request: PauseRequest) -> None:
        """See `Backend`."""
        if not self._config.stage.enabled:
            raise ConfigError("This engine holds no blocks, so there is nothing to pause.")
        self._set_resume_timer(request.seconds)
        self._paused = True
        stage = None if self._membership.serving is None else self._membership.serving.stage
        if stage is not None:
            reason = PAUSE_TEXT if request.seconds is None else "Paused for a while."
            await stage.pause(reason, finish_first=request.finish_first)
        self._notify()

    async def resume(self) -> None:
        """See `Backend`."""
        self._set_resume_timer(None)
        self._paused = False
        stage = None if self._membership.serving is None else self._membership.serving.stage
        if stage is not None:
            await stage.resume()
        self._notify()

    def _set_resume_timer(self, seconds: float | None) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._resume_timer, self._resume_unix_s = None, None
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._resume_timer = loop.call_later(seconds, self._resume_by_itself)
            self._resume_unix_s = self._clock.unix_s() + seconds

    def _resume_by_itself(self) -> None:
        self._resuming = asyncio.create_task(self.resume(), name="resume")

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
        serving = self._serving()
        invite = founding.found(
            self._home,
            request.name,
            source=self._membership.source,
            model_id=serving.files.spec.model_id,
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
        async with self._switching:
            old = self._membership.invite
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
                self._membership = self._new_membership(old)
                self._begin_life(None)
                raise
            return self.swarm_info()

    # Generating -----------------------------------------------------------------------------

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        """See `Backend`."""
        serving = self._serving()
        return serving.files.spec, serving.tokenizer

    async def generate(
        self, prompts: Sequence[Sequence[int]], params: Sequence[SamplingParams]
    ) -> AsyncGenerator[tuple[int, TokenEvent], None]:
        """See `Backend`."""
        serving = self._serving()
        if serving.client.route() is None and self._paused:
            raise EnginePaused(
                "Shoal is paused and no other node serves the whole model; resume to go on."
            )
        async with contextlib.aclosing(serving.client.generate(prompts, params)) as events:
            async for event in events:
                self._tokens_used += 1
                yield event

    def _serving(self) -> Serving:
        serving = self._membership.serving
        if serving is None:
            state, reason = self._state(None)
            raise ResourceError(f"Shoal is not ready ({state.value}): {reason}")
        return serving


def _rss_bytes(pid: int | None) -> int:
    """Resident memory of a process, to the megabyte; 0 when there is none."""
    if pid is None:
        return 0
    try:
        return int(psutil.Process(pid).memory_info().rss) >> 20 << 20
    except psutil.Error:
        return 0


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
