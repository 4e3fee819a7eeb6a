"""This node's life in one swarm: from joining to leaving, with one model.

Follow it in `Membership.run`: join the swarm, prepare the model, build the stage's and the
client's parts on the links, then serve until the membership ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any

from engine.client.client import Client
from engine.client.drafter import Drafter
from engine.config import Config
from engine.core.clock import Clock
from engine.core.errors import EngineError, ModelCorrupt, PeerUnreachable
from engine.core.plans import Span
from engine.core.sentences import Sentence
from engine.core.snapshot import SwarmSnapshot
from engine.localapi.running import Home
from engine.localapi.schema import Progress
from engine.models.layout import ModelFiles
from engine.models.prepare import prepare
from engine.models.tokenizer import ChatTokenizer
from engine.node.absences import Absences
from engine.node.balancer import Balancer
from engine.node.caps import within_limits
from engine.node.compute import Compute
from engine.node.drafts import assumed_speed, find_order
from engine.node.fetching import fetch_limits
from engine.node.fitting import Fitting
from engine.node.founding import fixed_places
from engine.node.herald import Herald
from engine.node.own_speed import block_times
from engine.node.stage_runner import StageRunner
from engine.node.view import View
from engine.probes.metered import Metered
from engine.profiler.network import Prober
from engine.server.handler import StageHandler
from engine.server.worker_process import LoadOrder
from engine.swarm.announcer import Announcer
from engine.swarm.directory import Directory
from engine.swarm.handshake import Membership as LinkMembership
from engine.swarm.hivemind_transport import HivemindTransport
from engine.swarm.identity import load_or_create
from engine.swarm.invites import Invite
from engine.swarm.links import Links
from engine.swarm.peer import SwarmPeer
from engine.swarm.rate_caps import CappedTransport, HouseholdLine

logger = logging.getLogger(__name__)

SOLO_SWARM_ID = "solo"


@dataclass(frozen=True, slots=True)
class Joined:
    """The peer and its links: there from the moment the swarm is joined."""

    peer: SwarmPeer
    links: Links
    prober: Prober


@dataclass(frozen=True, slots=True)
class Serving:
    """What needs the model: there once it is prepared."""

    files: ModelFiles
    tokenizer: ChatTokenizer
    directory: Directory
    client: Client
    stage: StageRunner | None
    balancer: Balancer | None
    """Has chosen our blocks; None where the settings fix them, or there are none."""
    handler: StageHandler

    def free_kv_tokens(self) -> int | None:
        """KV room that is free along the way a request would take now; None: there is no way."""
        route = self.client.route()
        if route is None:
            return None
        snapshot = self.directory.snapshot()
        stages = [stage for hop in route.hops if (stage := snapshot.stage(hop.peer)) is not None]
        free, _ = self.handler.kv_tokens
        # Our own announcement may be seconds old.
        return min(
            (
                free.device if stage.peer == self.client.local_peer else stage.kv_free_tokens
                for stage in stages
            ),
            default=None,
        )


class Membership:
    """One swarm (or solo, without an invite) and one model."""

    def __init__(
        self,
        home: Home,
        config: Config,
        invite: Invite | None,
        compute: Compute,
        clock: Clock,
        on_change: Callable[[], None],
        line: HouseholdLine | None = None,
    ) -> None:
        """`on_change` is called whenever what `shoal status` shows may have changed."""
        self._home = home
        self.config = within_limits(config, on_gpu=compute.device != "cpu")
        self._line = line or HouseholdLine(clock)
        self.invite = invite
        self._compute = compute
        self._clock = clock
        self._on_change = on_change
        self.joined: Joined | None = None
        self.serving: Serving | None = None
        self._looking: asyncio.Task[None] | None = None
        self._drafter: Drafter | None = None
        self.draft_trouble = ""
        """Why the model that the settings name cannot draft."""
        self._draft_rests: Callable[[], str] = str
        self.doing: str = Sentence("Starting.")
        self.progress: Progress | None = None

    @property
    def source(self) -> str:
        """The model's name: the swarm's, or the one in the settings."""
        return self.invite.source if self.invite is not None else self.config.model.source

    @contextlib.asynccontextmanager
    async def join(self) -> AsyncIterator[Joined]:
        """Start the peer and its links; they end with the context.

        Raises:
            PeerUnreachable: No bootstrap address answered.
            ConfigError: A damaged key file, or an address that cannot be listened on.
        """
        self._say(
            Sentence("Joining the swarm {name}.", name=self.invite.name)
            if self.invite
            else Sentence("Starting.")
        )
        bootstrap, listen = self._addresses()
        peer = await SwarmPeer.start(
            self._home.identity_file,
            bootstrap,
            self.config.swarm,
            listen=listen,
            client_mode=not self.config.stage.enabled,
            clock=self._clock,
        )
        try:
            links = Links(
                CappedTransport(HivemindTransport(peer, self.config.swarm), self._line),
                self.config.swarm,
                self._clock,
                self._link_membership,
            )
            prober = Prober(links, self._clock, Metered(self.config.swarm.metered, self._clock).ask)
            await links.start()
            self.joined = Joined(peer, links, prober)
            try:
                yield self.joined
            finally:
                self.joined = None
                await prober.close()
                await links.stop()
        finally:
            await peer.stop()

    async def run(
        self,
        joined: Joined,
        pause_reason: Callable[[], str] = str,
        draft_rests: Callable[[], str] = str,
    ) -> None:
        """Prepare the model and serve until cancelled.

        Args:
            joined: From `join`.
            pause_reason: Why the stage shall not start yet; empty when it shall. Asked once the
                model is ready, which may be long after the person has paused.
            draft_rests: Why no draft may be held in memory; empty when one may.

        Raises:
            EngineError: The model cannot be prepared, or is not the swarm's.
        """
        files = await self._prepare(None)
        tokenizer = await asyncio.to_thread(ChatTokenizer.load, files.directory)
        config, clock, spec = self.config, self._clock, files.spec
        directory = Directory(
            joined.peer,
            config.swarm,
            clock,
            self._link_membership,
            spec.model_id,
            spec.num_hidden_layers,
        )
        announcer = Announcer(
            joined.peer,
            config.swarm,
            clock,
            self._link_membership,
            spec.model_id,
            joined.links.neighbours.one_way_s,
        )
        handler = StageHandler(joined.links, clock, config.stage, self._on_change)
        view = View(directory, joined.links)
        self._draft_rests = draft_rests
        self._drafter = await self._find_draft(files)
        client = Client(joined.links, view, spec, config.client, clock, self._drafter)
        directory.watch(lambda snapshot: self._follow(joined, snapshot))
        stage: StageRunner | None = None
        balancer: Balancer | None = None
        balancing: asyncio.Task[None] | None = None
        absences = asyncio.create_task(Absences(joined.links, directory).watch(), name="absences")
        try:
            with contextlib.suppress(PeerUnreachable):  # an empty view is a view; it is refreshed
                await directory.refresh()
            directory.start()
            if config.stage.enabled:
                fitting = Fitting(files, config.stage, self._compute)
                herald = Herald(handler, announcer, joined.peer, fitting.max_blocks, fitting.size)
                span = fitting.fixed_span
                if span is None:
                    balancer = self._balancer(joined, fitting, directory)
                    span = await balancer.choose()
                stage = StageRunner(handler, herald, fitting.order(span), clock, self._on_change)
                if not pause_reason():
                    await self._as_looking(self._look(fitting, stage, balancer))
                await self._prepare(stage.order.span)
                view.stage = stage
            self.progress = None
            self.serving = Serving(files, tokenizer, directory, client, stage, balancer, handler)
            self._on_change()
            if stage is not None:
                if reason := pause_reason():
                    await stage.pause(reason, finish_first=False)
                else:
                    stage.start()
                if balancer is not None and self.invite is not None and config.stage.rebalance:
                    balancing = asyncio.create_task(balancer.run(stage), name="balancer")
            await self._keep_daemon(joined.peer, announcer)
        finally:
            self.serving = None
            for task in (absences, balancing):
                if task is not None:
                    task.cancel()
                    await asyncio.wait({task})
            if stage is not None:
                await stage.close()
            if self._drafter is not None:
                await self._drafter.stop()
            await directory.stop()

    async def _look(self, fitting: Fitting, stage: StageRunner, balancer: Balancer | None) -> None:
        """Find out how fast we are, and a place that nobody else is about to take."""
        stage.herald.block_times = await block_times(
            self._home,
            fitting,
            may_measure=balancer is not None and self.invite is not None,
            show=self.show,
        )
        if balancer is not None and self.invite is not None:
            self._say(Sentence("Looking for a place in the swarm."))
            try:
                await balancer.join(stage)
            except asyncio.CancelledError:
                await stage.herald.withdraw()
                raise

    async def _as_looking(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what is left as it is when the person pauses."""
        self._looking = asyncio.create_task(work, name="looking")
        try:
            await asyncio.wait({self._looking})
            if not self._looking.cancelled():
                self._looking.result()
        finally:
            await self._look_no_more()

    async def rest(self) -> None:
        """Measure and announce nothing, and hold no draft, unless the stage alone is paused."""
        await self._look_no_more()
        if self._drafter is not None and self._draft_rests():
            await self._drafter.stop()

    async def _look_no_more(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait({looking})

    async def _find_draft(self, files: ModelFiles) -> Drafter | None:
        """What can draft for the model here; requests start it when it promises to pay."""
        models_dir = self._home.models_dir_in(self.config.model.folder)
        try:
            order = await asyncio.to_thread(
                find_order, files, self.config, self._compute, models_dir
            )
        except EngineError as error:  # the answers are the same without
            logger.warning("nothing is drafted by a model: %s", error)
            self.draft_trouble = str(error)
            return None
        if order is None:
            return None
        return Drafter(order, self._clock, self._draft_rests, speed=assumed_speed(order))

    def _follow(self, joined: Joined, snapshot: SwarmSnapshot) -> None:
        """Learn from the announcements how the others are reached, and who can relay for us."""
        for stage in snapshot.stages:
            joined.links.learn_addresses(stage.peer, stage.addresses)
        joined.peer.offer_relays({s.peer: s.addresses for s in snapshot.stages if s.relay})
        self._on_change()

    @property
    def _link_membership(self) -> LinkMembership:
        return LinkMembership(SOLO_SWARM_ID) if self.invite is None else self.invite.membership

    def _addresses(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(bootstrap addresses of others, where to listen; empty: the default).

        Where the invite names ourselves, others count on finding us just there.
        """
        if self.invite is None:
            return (), ()
        us = f"/p2p/{load_or_create(self._home.identity_file).peer_id}"
        own = [a for a in self.invite.bootstrap if a.endswith(us)]
        others = tuple(a for a in self.invite.bootstrap if not a.endswith(us))
        if not own or fixed_places(self.config.swarm.listen):
            return others, ()
        host = "127.0.0.1" if all(a.startswith("/ip4/127.") for a in own) else "0.0.0.0"  # noqa: S104
        return others, tuple({f"/ip4/{host}/tcp/{a.split('/')[4]}": None for a in own})

    async def find_model(self) -> ModelFiles:
        """Have everything of the model on disk but its weights.

        Raises:
            EngineError: There is none, or it cannot be fetched.
        """
        before = self.doing
        try:
            return await self._prepare(None)
        finally:
            self._say(before)

    async def _prepare(self, span: Span | None) -> ModelFiles:
        """Find the model; with a span, have its weights on disk too."""
        self._say(Sentence("Preparing {model}.", model=self.source))
        models_dir = self._home.models_dir_in(self.config.model.folder)
        files = await prepare(
            self.source,
            models_dir,
            self._compute.dtype_name,
            span,
            self.show,
            limits=await asyncio.to_thread(fetch_limits, self.config),
            take=self._line.download,
        )
        if self.invite is not None and files.spec.model_id != self.invite.model_id:
            raise ModelCorrupt(
                f"The model here is {files.spec.model_id}, but the swarm {self.invite.name} runs "
                f"{self.invite.model_id}; get the same files, or ask for a newer invite."
            )
        return files

    def _balancer(self, joined: Joined, fitting: Fitting, directory: Directory) -> Balancer:
        async def prepare_order(span: Span) -> LoadOrder:
            await self._prepare(span)
            return fitting.order(span)

        return Balancer(
            joined.peer.peer_id,
            fitting.max_blocks,
            fitting.size,
            directory,
            prepare_order,
            fitting.has_room,
            Random(joined.peer.peer_id),  # noqa: S311 - spreads the nodes' checks
        )

    async def _keep_daemon(self, peer: SwarmPeer, announcer: Announcer) -> None:
        """Start the libp2p daemon again whenever it dies; running requests find another route."""
        while True:
            await peer.wait_dead()
            logger.warning("the libp2p daemon ended; starting it again")
            await peer.restart()
            announcer.renew()

    def _say(self, doing: str) -> None:
        self.doing, self.progress = doing, None
        self._on_change()

    def show(self, progress: Progress) -> None:
        """Show how far the preparation is."""
        self.progress = progress
        self._on_change()
