"""`/shoal/v1/setup` and what a person wants to know before; see `engine.localapi.setup`."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from engine.http.bodies import json_response, read_body
from engine.localapi.schema import EngineStatus, Measurements
from engine.localapi.setup import MachineRequest, PlanPreview, PreviewRequest


class SetupBackend(Protocol):
    """What the routes need; `engine.node.setting_up.SettingUp` is it."""

    async def preview(self, request: PreviewRequest) -> PlanPreview:
        """What the node would hold."""
        ...

    async def measure(self, request: MachineRequest) -> Measurements:
        """Measure this machine; cancelling ends it."""
        ...

    async def begin(self) -> EngineStatus:
        """Begin alone, if nothing has begun yet."""
        ...


class SetupRoutes:
    """Handlers of the first steps."""

    def __init__(self, backend: SetupBackend) -> None:
        self._backend = backend

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.post("/shoal/v1/plan/preview", self.preview),
            web.post("/shoal/v1/measurements/machine", self.measure),
            web.post("/shoal/v1/setup", self.begin),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """There are none."""

    async def preview(self, request: web.Request) -> web.Response:
        """What the node would hold."""
        wanted = await read_body(request, PreviewRequest)
        return json_response(await self._backend.preview(wanted))

    async def measure(self, request: web.Request) -> web.Response:
        """Measure now; who hangs up ends it."""
        wanted = await read_body(request, MachineRequest)
        return json_response(await self._backend.measure(wanted))

    async def begin(self, request: web.Request) -> web.Response:
        """Begin alone."""
        return json_response(await self._backend.begin())
