"""`/shoal/v1/settings`, models on disk, the identity; see `engine.localapi.settings`."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from engine.core.errors import RequestError
from engine.http.bodies import json_response, read_body
from engine.http.changes import Changes
from engine.localapi.settings import (
    BackupRequest,
    IdentityBackup,
    KeptModels,
    RestoreRequest,
    Settings,
    SettingsChange,
)


class HouseholdBackend(Protocol):
    """What the routes need; `engine.node.household.Household` is it."""

    async def settings(self) -> Settings:
        """All settings."""
        ...

    async def change_settings(self, change: SettingsChange) -> Settings:
        """Write settings and follow them."""
        ...

    async def kept_models(self) -> KeptModels:
        """The models on disk."""
        ...

    async def delete_model(self, name: str) -> KeptModels:
        """Remove one that does not run."""
        ...

    async def back_up_identity(self, request: BackupRequest) -> IdentityBackup:
        """The identity under a passphrase."""
        ...

    async def restore_identity(self, request: RestoreRequest) -> None:
        """Become who the backup was."""
        ...


class HouseholdRoutes:
    """Handlers of what a person arranges."""

    def __init__(self, backend: HouseholdBackend) -> None:
        self._backend = backend
        self._changes = Changes()

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/shoal/v1/settings", self.settings),
            web.patch("/shoal/v1/settings", self.change_settings),
            web.get("/shoal/v1/models/kept", self.kept_models),
            web.delete("/shoal/v1/models/kept", self.delete_model),
            web.post("/shoal/v1/identity/backup", self.back_up_identity),
            web.post("/shoal/v1/identity/restore", self.restore_identity),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """There are none."""

    async def settings(self, request: web.Request) -> web.Response:
        """All settings."""
        return json_response(await self._backend.settings())

    async def change_settings(self, request: web.Request) -> web.Response:
        """Change some, or none if one of them is wrong."""
        wanted = await read_body(request, SettingsChange)
        return json_response(await self._changes.finish(self._backend.change_settings(wanted)))

    async def kept_models(self, request: web.Request) -> web.Response:
        """The models on disk."""
        return json_response(await self._backend.kept_models())

    async def delete_model(self, request: web.Request) -> web.Response:
        """Remove one."""
        name = request.query.get("name")
        if not name:
            raise RequestError("name must say which model.", param="name")
        return json_response(await self._changes.finish(self._backend.delete_model(name)))

    async def back_up_identity(self, request: web.Request) -> web.Response:
        """The identity under a passphrase."""
        wanted = await read_body(request, BackupRequest)
        return json_response(await self._backend.back_up_identity(wanted))

    async def restore_identity(self, request: web.Request) -> web.Response:
        """Become who a backup was."""
        wanted = await read_body(request, RestoreRequest)
        await self._changes.finish(self._backend.restore_identity(wanted))
        return web.json_response({})
