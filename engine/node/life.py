"""One membership after another: begun, kept through troubles, ended, exchanged for another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from engine.config import Config
from engine.core.clock import Clock
from engine.core.errors import EngineError, EnginePaused, PeerError, ResourceError
from engine.localapi.running import Home
from engine.localapi.schema import EngineState
from engine.node.caps import within_limits
from engine.node.compute import Compute
from engine.node.membership import Membership, Serving
from engine.node.resting import Resting
from engine.node.status import Trouble, state_of
from engine.swarm.invites import Invite
from engine.swarm.rate_caps import HouseholdLine

_logger = logging.getLogger(__name__)

_RETRY_S: Final = 10.0
_AWAITS_SETUP: Final = "Shoal waits until you have said how it shall begin."


class Life:
    """What the node belongs to now, and the task in which it does.

    Args:
        home: Keeps the identity.
        config: The settings.
        compute: Where the worker computes.
        invite: Of the first swarm; None: solo.
        clock: The time.
        line: What all links share.
        on_change: Called when what `shoal status` shows has changed.
        resting: Says why the stage shall not start, or that we shall be in no swarm at all.
        awaits_setup: Do nothing before a person has said how it shall begin.
    """

    def __init__(
        self,
        home: Home,
        config: Config,
        compute: Compute,
        invite: Invite | None,
        clock: Clock,
        line: HouseholdLine,
        on_change: Callable[[], None],
        resting: Resting,
        *,
        awaits_setup: bool,
    ) -> None:
        self._home = home
        self._clock = clock
        self._line = line
        self._on_change = on_change
        self._resting = resting
        self.config = config
        self.compute = compute
        self.awaits_setup = awaits_setup
        self.membership = self._new(invite)
        self.trouble: Trouble | None = None
        """Why there is no membership that works."""
        self._living: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    def begin(self) -> None:
        """Join, prepare and serve from now on; at the start only."""
        self._begin()

    async def close(self) -> None:
        """Belong to nothing any more."""
        await self._end()

    def adopt(self, config: Config, invite: Invite) -> None:
        """Take other settings and another swarm; before `begin` only."""
        self.config = config
        self.membership = self._new(invite)

    def follow(self, config: Config) -> None:
        """Take settings that need nothing to be begun again."""
        self.config = config
        self.membership.config = within_limits(config, on_gpu=self.compute.device != "cpu")
        if self.membership.serving is not None:
            self.membership.serving.client.follow(config.client)

    def serving(self) -> Serving:
        """What needs the model.

        Raises:
            ResourceError: It is not prepared yet; the text says what is going on.
        """
        serving = self.membership.serving
        if serving is None:
            state, reason = state_of(self.membership, self.trouble, self._resting.now())
            raise ResourceError(f"Shoal is not ready ({state.value}): {reason}")
        return serving

    async def leave(self) -> None:
        """Leave the swarm, to come back some day."""
        async with self._changing:
            await self._end()
            self._set_trouble(None)

    async def come_back(self) -> None:
        """Join the same swarm anew."""
        async with self._changing:
            await self._begin_anew()

    async def begin_again(self, config: Config, compute: Compute) -> None:
        """Go on with other settings, or as another peer."""
        async with self._changing:
            self.config, self.compute = config, compute
            await self._begin_anew()

    async def begin_alone(self) -> None:
        """Begin at last, if a person was waited for."""
        async with self._changing:
            if self.awaits_setup:
                self.awaits_setup = False
                await self._begin_anew()
        self._on_change()

    async def switch(self, invite: Invite | None, keep: Callable[[], None]) -> None:
        """Go to another swarm, or be alone; when that fails, the old one stays.

        Args:
            invite: Of the other swarm.
            keep: Makes it last, once it has been joined.

        Raises:
            EnginePaused: Everything is paused.
            EngineError: It cannot be joined, or not be kept.
        """
        async with self._changing:
            if self._resting.leaves:
                raise EnginePaused("Everything is paused; resume before you change swarms.")
            old, awaited_setup = self.membership.invite, self.awaits_setup
            self.awaits_setup = False
            await self._end()
            self.membership = self._new(invite)
            joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._live_in(self.membership, joined)  # who pauses now waits for this to end
            try:
                await joined
                keep()
            except BaseException:
                self.awaits_setup = awaited_setup
                await self._end()
                self.membership = self._new(old)
                self._begin()
                raise

    def _new(self, invite: Invite | None) -> Membership:
        return Membership(
            self._home,
            self.config,
            invite,
            self.compute,
            self._clock,
            self._on_change,
            self._line,
        )

    async def _begin_anew(self) -> None:
        await self._end()
        self.membership = self._new(self.membership.invite)
        self._begin()

    def _begin(self) -> None:
        if self.awaits_setup:
            self.membership.doing = _AWAITS_SETUP
        elif not self._resting.has_left:
            self._live_in(self.membership, None)

    def _live_in(self, membership: Membership, joined: asyncio.Future[None] | None) -> None:
        self._living = asyncio.create_task(self._live(membership, joined), name="membership")

    async def _end(self) -> None:
        if self._living is not None:
            self._living.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._living
            self._living = None

    async def _live(self, membership: Membership, joined: asyncio.Future[None] | None) -> None:
        """Belong to a swarm, joining again after troubles; `joined` learns of the first try."""
        while True:
            try:
                async with membership.join() as peer_and_links:
                    self._set_trouble(None)
                    if joined is not None and not joined.done():
                        joined.set_result(None)
                    await membership.run(
                        peer_and_links,
                        lambda: self._resting.reason,
                        lambda: self._resting.draft_reason,
                    )
            except PeerError as error:
                state, text = EngineState.OFFLINE, str(error)
                failure: EngineError = error
            except EngineError as error:
                state, text = EngineState.ERROR, str(error)
                failure = error
            except Exception as error:
                _logger.exception("the membership failed")
                text = f"Something unexpected went wrong ({type(error).__name__}); see the log."
                state, failure = EngineState.ERROR, EngineError(text)
            _logger.warning("%s", text)
            if joined is not None and not joined.done():
                joined.set_exception(failure)
                return
            self._set_trouble((state, text))
            await asyncio.sleep(_RETRY_S)

    def _set_trouble(self, trouble: Trouble | None) -> None:
        self.trouble = trouble
        self._on_change()
