"""`/shoal/v1/statistics`, the log and the diagnostics; see `engine.localapi.statistics`."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from engine.core.errors import RequestError
from engine.http.bodies import json_response
from engine.localapi.statistics import DiagnosticsPreview, LogTail, Range, Statistics

_MAX_LINES = 5000


class PastBackend(Protocol):
    """What the routes need; `engine.node.past.Past` is it."""

    async def statistics(self, span: Range) -> Statistics:
        """The last hour, day or week."""
        ...

    async def log_tail(self, lines: int) -> LogTail:
        """The newest lines of the log, redacted."""
        ...

    async def diagnostics(self) -> DiagnosticsPreview:
        """What the archive would hold."""
        ...

    async def diagnostics_archive(self) -> bytes:
        """The archive, a zip."""
        ...


class PastRoutes:
    """Handlers of what the engine remembers."""

    def __init__(self, backend: PastBackend) -> None:
        self._backend = backend

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.get("/shoal/v1/statistics", self.statistics),
            web.get("/shoal/v1/log", self.log),
            web.get("/shoal/v1/diagnostics", self.diagnostics),
            web.get("/shoal/v1/diagnostics/archive", self.archive),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """There are none."""

    async def statistics(self, request: web.Request) -> web.Response:
        """Samples and totals."""
        try:
            span = Range(request.query.get("range", Range.HOUR))
        except ValueError as error:
            raise RequestError("range must be hour, day or week.", param="range") from error
        return json_response(await self._backend.statistics(span))

    async def log(self, request: web.Request) -> web.Response:
        """The newest lines."""
        text = request.query.get("lines", "200")
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= _MAX_LINES:
            raise RequestError(f"lines must be 1 to {_MAX_LINES}.", param="lines")
        return json_response(await self._backend.log_tail(int(text)))

    async def diagnostics(self, request: web.Request) -> web.Response:
        """What the archive would hold."""
        return json_response(await self._backend.diagnostics())

    async def archive(self, request: web.Request) -> web.Response:
        """The archive."""
        return web.Response(
            body=await self._backend.diagnostics_archive(),
            content_type="application/zip",
            headers={"Content-Disposition": 'attachment; filename="shoal-diagnostics.zip"'},
        )
