"""`/shoal/v1/updates`: new versions of Shoal; see `engine.localapi.updates`."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from engine.http.bodies import json_response
from engine.http.changes import Changes
from engine.localapi.updates import UpdateInfo


class UpdateBackend(Protocol):
    """What the routes need; `engine.node.updating.Updating` is it."""

    async def check(self) -> UpdateInfo:
        """Look for a new version now."""
        ...

    async def install(self) -> UpdateInfo:
        """Fetch it and put it beside this one."""
        ...

    async def restart(self) -> UpdateInfo:
        """End to be started anew."""
        ...


class UpdateRoutes:
    """Handlers of new versions."""

    def __init__(self, backend: UpdateBackend) -> None:
        self._backend = backend
        self._changes = Changes()

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.post("/shoal/v1/updates/check", self.check),
            web.post("/shoal/v1/updates/install", self.install),
            web.post("/shoal/v1/updates/restart", self.restart),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """There are none."""

    async def check(self, request: web.Request) -> web.Response:
        """Look now."""
        return json_response(await self._changes.finish(self._backend.check()))

    async def install(self, request: web.Request) -> web.Response:
        """Begin to install."""
        return json_response(await self._changes.finish(self._backend.install()))

    async def restart(self, request: web.Request) -> web.Response:
        """Begin to end."""
        return json_response(await self._changes.finish(self._backend.restart()))
