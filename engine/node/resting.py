"""Why the node rests: because the person says so, else because the machine's user comes first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from engine.core.clock import Clock
from engine.core.errors import ConfigError
from engine.localapi.running import Home
from engine.localapi.schema import EngineState, PauseRequest, PauseScope
from engine.node import pauses
from engine.node.pauses import Pause
from engine.node.stage_runner import Phase, StageRunner
from engine.policy.causes import Kind
from engine.policy.yielding import Decision

_logger = logging.getLogger(__name__)

_DRAINED_CHECK_S = 0.2
_KEEP_AGAIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Rest:
    """What the person sees of it."""

    state: EngineState
    reason: str
    until_unix_s: float | None
    paused: PauseScope | None = None
    yielding_to: Kind | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What rests, in the hands of the node."""

    stage: Callable[[], StageRunner | None]
    """Our stage; None while the model is being prepared, or when we hold no blocks."""
    rest: Callable[[], Awaitable[None]]
    """Measure and announce nothing, if we were about to, and hold no draft if none may be held."""
    leave: Callable[[], Awaitable[None]]
    """Leave the swarm."""
    come_back: Callable[[], Awaitable[None]]
    """Join it again."""


class Resting:
    """The person's pause and the policy's yield, one at a time carried out.

    Args:
        home: Keeps the pause.
        clock: The time.
        parts: What rests.
        on_change: Called when what `shoal status` shows has changed.
    """

    def __init__(
        self, home: Home, clock: Clock, parts: Parts, on_change: Callable[[], None]
    ) -> None:
        self._home = home
        self._clock = clock
        self._parts = parts
        self._on_change = on_change
        self._pause: Pause | None = pauses.load(home.pause_file, clock.unix_s())
        self._decision = Decision(runs=True)
        self._changing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._resuming: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        """Tries again to keep what the disk had no room for."""
        self.notices: tuple[str, ...] = ()
        """What the person should know of the pause."""
        self._leaving: asyncio.Task[None] | None = None
        """Leaves the swarm once the stage has drained."""
        self._ends = False
        """The engine is about to, so nothing begins any more."""
        self.has_left = self.leaves
        """We are in no swarm, because everything is paused."""

    def start(self) -> None:
        """Let a pause that an earlier engine has left end when it shall."""
        self._set_timer()

    def close(self) -> None:
        """Let nothing end any more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._leaving, self._keeping):
            if task is not None:
                task.cancel()

    def now(self) -> Rest | None:
        """Why the stage rests, or shall; None: it does not."""
        pause, decision = self._pause, self._decision
        if pause is not None:
            return Rest(EngineState.PAUSED, pause.reason, pause.until_unix_s, paused=pause.scope)
        if not decision.runs:
            return Rest(
                EngineState.YIELDING,
                decision.reason,
                decision.until_unix_s,
                yielding_to=decision.kind,
            )
        return None

    @property
    def reason(self) -> str:
        """The same as a sentence; empty when it does not rest."""
        rest = self.now()
        return "" if rest is None else rest.reason

    @property
    def draft_reason(self) -> str:
        """Why no draft model may be held in memory; one may while the person has paused the stage alone."""
        alone = self._pause is not None and self._pause.scope == "stage"
        return "" if alone and self._decision.runs else self.reason

    @property
    def leaves(self) -> bool:
        """Everything is paused, so that we shall be in no swarm."""
        return self._pause is not None and self._pause.scope == "everything"

    async def pause(self, request: PauseRequest) -> None:
        """Rest because the person says so; returns when the worker is gone, or drains."""
        async with self._changing:  # what was asked last shall hold
            self._pause = Pause.asked(request, self._clock.unix_s())
            await self._keep_pause()
            self._set_timer()
            if self.has_left and not self.leaves:
                await self._come_back()  # the stage begins as paused
            elif not self.has_left:
                await self._rest_stage(finish_first=request.finish_first)
                if self.leaves:
                    await self._leave()
        self._on_change()

    async def resume(self) -> None:
        """End the person's pause; the stage runs again unless it yields."""
        async with self._changing:
            await self._end_pause()
        self._on_change()

    async def _end_pause(self) -> None:
        self._pause = None
        await self._keep_pause()
        self._set_timer()
        if self.has_left:
            await self._come_back()
        elif self._decision.runs:
            await self._run_stage()
        else:
            await self._rest_stage(finish_first=False)

    async def obey(self, decision: Decision) -> None:
        """Yield, or run again, as the policy says; the person's pause stays what it is."""
        async with self._changing:
            before, self._decision = self._decision, decision
            if decision.runs is not before.runs:
                _logger.info("%s", decision.reason or "The stage runs again.")
                if not decision.runs:
                    await self._rest_stage(finish_first=False)
                elif self._pause is None:
                    await self._run_stage()
        if decision != before:
            self._on_change()

    async def drain(self, reason: str, answers: Callable[[], bool], limit_s: float) -> None:
        """Let running requests end or go elsewhere; the engine ends after it.

        Args:
            reason: What those hear who still ask our stage.
            answers: Whether requests of our own still run, perhaps over other people's stages.
            limit_s: How long those may take; the stage has the same limit by itself.
        """
        ends_s = self._clock.monotonic_s() + limit_s
        try:
            async with self._changing:
                self._ends = True
                await self._parts.rest()
                stage = self._parts.stage()
                if stage is not None and stage.phase is Phase.ONLINE:
                    await stage.pause(reason, finish_first=True)
            while True:
                waits = answers() and self._clock.monotonic_s() < ends_s
                if not waits and not self._drains():
                    return
                await asyncio.sleep(_DRAINED_CHECK_S)
        except Exception:  # then the engine does not end, and serves on
            self._ends = False
            async with self._changing:
                if self.now() is None:
                    await self._run_stage()
            raise

    async def begin_again(self) -> None:
        """End the worker and start another one, if one runs now."""
        async with self._changing:
            stage = self._parts.stage()
            if stage is not None and self.now() is None:
                await stage.pause("The stage is starting again.", finish_first=False)
                await stage.resume()
        self._on_change()

    async def _rest_stage(self, *, finish_first: bool) -> None:
        await self._parts.rest()
        stage = self._parts.stage()
        if stage is not None and stage.phase is not Phase.PAUSED:
            await stage.pause(self.reason, finish_first=finish_first)

    async def _leave(self) -> None:
        """Leave the swarm, at once or when the stage has drained."""
        if not self._drains():
            self.has_left = True
            await self._parts.leave()
        elif self._leaving is None or self._leaving.done():
            self._leaving = asyncio.create_task(self._leave_drained(), name="leave")

    async def _leave_drained(self) -> None:
        """Leave when the stage has drained, or is gone, as after other settings or a failure."""
        while self.leaves and not self.has_left:
            await asyncio.sleep(_DRAINED_CHECK_S)
            async with self._changing:
                if self.leaves and not self.has_left and not self._drains():
                    await self._leave()
        self._on_change()

    def _drains(self) -> bool:
        stage = self._parts.stage()
        return stage is not None and stage.phase is Phase.DRAINING

    async def _come_back(self) -> None:
        self.has_left = False
        await self._parts.come_back()

    async def _run_stage(self) -> None:
        stage = self._parts.stage()
        if stage is not None and not self._ends:
            await stage.resume()

    async def _keep_pause(self) -> None:
        """Let the pause, or that there is none, outlast the engine; it holds without that too."""
        if self._keeping is not None:
            self._keeping.cancel()
        try:
            await asyncio.to_thread(pauses.save, self._home.pause_file, self._pause)
            self.notices = ()
        except ConfigError as error:
            _logger.warning("%s", error)
            self.notices = (str(error),)
            self._keeping = asyncio.create_task(self._keep_later(), name="keep-pause")

    async def _keep_later(self) -> None:
        await asyncio.sleep(_KEEP_AGAIN_S)
        self._keeping = None
        async with self._changing:
            await self._keep_pause()
        self._on_change()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pause is not None and self._pause.until_unix_s is not None:
            left_s = max(0.0, self._pause.until_unix_s - self._clock.unix_s())
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left_s, self._resume_by_itself, self._pause)

    def _resume_by_itself(self, ended: Pause) -> None:
        self._resuming = asyncio.create_task(self._resume_after(ended), name="resume")

    async def _resume_after(self, ended: Pause) -> None:
        async with self._changing:
            if self._pause is not ended:
                return  # another pause was asked for at the last moment, and holds
            await self._end_pause()
        self._on_change()
