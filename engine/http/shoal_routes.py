"""`/shoal/v1`: the engine's state and what a person can tell it to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from aiohttp import web

from engine.core.errors import RequestError
from engine.http.backend import Backend
from engine.http.bodies import json_response, read_body
from engine.http.changes import Changes
from engine.http.sse import EventStream
from engine.localapi.schema import (
    EngineEvent,
    EngineStatus,
    MeasureRequest,
    PauseRequest,
    SwarmCreateRequest,
    SwarmJoinRequest,
)


class ShoalRoutes:
    """Handlers of `/shoal/v1`."""

    def __init__(self, backend: Backend, *, ping_every_s: float) -> None:
        self._backend = backend
        self._ping_every_s = ping_every_s
        self._streams: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._changes = Changes()

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/shoal/v1/status", self.status),
            web.get("/shoal/v1/events", self.events),
            web.post("/shoal/v1/pause", self.pause),
            web.post("/shoal/v1/resume", self.resume),
            web.post("/shoal/v1/quit", self.quit),
            web.get("/shoal/v1/swarm", self.swarm),
            web.post("/shoal/v1/swarm/create", self.swarm_create),
            web.post("/shoal/v1/swarm/join", self.swarm_join),
            web.post("/shoal/v1/swarm/leave", self.swarm_leave),
            web.get("/shoal/v1/measurements", self.measurements),
            web.post("/shoal/v1/measurements", self.measure_network),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """End the event streams, which would otherwise outlast the server's patience."""
        for task in list(self._streams):
            task.cancel()

    async def status(self, request: web.Request) -> web.Response:
        """The present state."""
        return json_response(self._backend.status())

    async def events(self, request: web.Request) -> web.StreamResponse:
        """States as they change; with `lease=1` the stream holds a leased engine alive."""
        lease = request.query.get("lease", "0")
        if lease not in ("0", "1"):
            raise RequestError("lease must be 0 or 1.", param="lease")
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        events = await EventStream.open(request)
        if lease == "1":
            self._backend.lease_opened()
        try:
            await self._send_states(events)
        except ConnectionResetError:
            return events.response
        finally:
            if lease == "1":
                self._backend.lease_closed()
        return await events.end()

    async def _send_states(self, events: EventStream) -> None:
        states = self._backend.watch()
        coming: asyncio.Task[EngineStatus | None] | None = None
        try:
            while True:
                coming = coming or asyncio.create_task(_next(states))
                done, _ = await asyncio.wait({coming}, timeout=self._ping_every_s)
                if not done:
                    await events.send(_event(EngineEvent(kind="ping")))
                    continue
                status, coming = coming.result(), None
                if status is None:
                    return
                await events.send(_event(EngineEvent(kind="status", status=status)))
        finally:
            if coming is not None:
                coming.cancel()
                with suppress(asyncio.CancelledError):
                    await coming
            await _close(states)

    async def pause(self, request: web.Request) -> web.Response:
        """Pause the stage."""
        wanted = await read_body(request, PauseRequest)
        await self._changes.finish(self._backend.pause(wanted))
        return json_response(self._backend.status())

    async def resume(self, request: web.Request) -> web.Response:
        """Serve again."""
        await self._changes.finish(self._backend.resume())
        return json_response(self._backend.status())

    async def quit(self, request: web.Request) -> web.Response:
        """End the engine."""
        self._backend.quit()
        return web.json_response({})

    async def swarm(self, request: web.Request) -> web.Response:
        """The swarm we belong to."""
        return json_response(self._backend.swarm_info())

    async def swarm_create(self, request: web.Request) -> web.Response:
        """Found a swarm."""
        wanted = await read_body(request, SwarmCreateRequest)
        return json_response(await self._changes.finish(self._backend.swarm_create(wanted)))

    async def swarm_join(self, request: web.Request) -> web.Response:
        """Join the swarm of an invite."""
        wanted = await read_body(request, SwarmJoinRequest)
        return json_response(await self._changes.finish(self._backend.swarm_join(wanted)))

    async def swarm_leave(self, request: web.Request) -> web.Response:
        """Go back to solo."""
        return json_response(await self._changes.finish(self._backend.swarm_leave()))

    async def measurements(self, request: web.Request) -> web.Response:
        """What was measured last."""
        return json_response(await self._backend.measurements())

    async def measure_network(self, request: web.Request) -> web.Response:
        """Measure lines now."""
        wanted = await read_body(request, MeasureRequest)
        return json_response(await self._backend.measure_network(wanted))


async def _next(states: AsyncIterator[EngineStatus]) -> EngineStatus | None:
    return await anext(states, None)


async def _close(states: AsyncIterator[EngineStatus]) -> None:
    close: Awaitable[None] | None = getattr(states, "aclose", lambda: None)()
    if close is not None:
        await close


def _event(event: EngineEvent) -> str:
    return event.model_dump_json(exclude_none=event.status is None)
