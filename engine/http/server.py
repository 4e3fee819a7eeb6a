"""The local API as an aiohttp application, bound to this machine alone."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from aiohttp import web

from engine.config import ApiConfig
from engine.core.clock import Clock, SystemClock
from engine.core.errors import ConfigError
from engine.http.answering import Answering
from engine.http.backend import Backend
from engine.http.middleware import errors_as_json, guard
from engine.http.openai_routes import OpenAiRoutes
from engine.http.shoal_routes import ShoalRoutes

LOOPBACK: Final = "127.0.0.1"
# aiohttp writes what it cannot parse to the log, with a traceback; that may hold anything.
logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)

_SHUTDOWN_S: Final = 0.5
"""How long running requests may go on when the engine ends."""


class Resource(Protocol):
    """What else the engine keeps and can do, with its own routes: chats, jobs."""

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        ...

    async def end_streams(self, app: web.Application) -> None:
        """The server is about to end: let go of what would outlast its patience."""
        ...


def create_app(
    backend: Backend,
    token: str,
    config: ApiConfig,
    resources: Sequence[Resource] = (),
    *,
    clock: Clock | None = None,
) -> web.Application:
    """Build the application: routes under `/v1` and `/shoal/v1`, behind the token.

    A handler is cancelled when its client disconnects only on a server that was started with
    `handler_cancellation=True`, as `serve` does.
    """
    app = web.Application(
        middlewares=[errors_as_json, guard(token)], client_max_size=config.max_body_bytes
    )
    clock = clock or SystemClock()
    answering = Answering(backend, clock)
    openai = OpenAiRoutes(backend, answering, clock, max_concurrent=config.max_concurrent)
    shoal = ShoalRoutes(backend, ping_every_s=config.ping_every_s)
    app.add_routes(openai.table())
    for resource in (shoal, *resources):
        app.add_routes(resource.table())
        app.on_shutdown.append(resource.end_streams)
    return app


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running server."""

    url: str
    """`http://127.0.0.1:PORT`, without a slash at the end."""
    port: int
    _runner: web.AppRunner

    async def close(self) -> None:
        """Stop listening, end what runs, close all connections."""
        await self._runner.cleanup()


async def serve(
    backend: Backend, token: str, config: ApiConfig, resources: Sequence[Resource] = ()
) -> ApiServer:
    """Start the API on loopback; the caller closes it.

    Raises:
        ConfigError: The port cannot be used.
    """
    runner = web.AppRunner(
        create_app(backend, token, config, resources),
        access_log=None,  # paths and times of requests are nobody's business
        handler_cancellation=True,  # a client that hangs up frees its sessions at once
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, config.port).start()
    except OSError as error:
        await runner.cleanup()
        if error.errno == errno.EADDRINUSE:
            reason = (
                f"Port {config.port} is taken by another program; choose another with --port or "
                "stop it."
            )
        else:
            reason = (
                f"Port {config.port} cannot be used ({error.strerror}); choose another with --port."
            )
        raise ConfigError(reason) from error
    port = int(runner.addresses[0][1])
    return ApiServer(f"http://{LOOPBACK}:{port}", port, runner)
