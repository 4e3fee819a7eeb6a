"""A small engine with the real local API and no model: `python -m tests.support.fake_engine`.

Takes the arguments that the app gives to an engine (`--leased --ready-file F`) and a few of its
own. Besides the API it answers `GET /fake` (what has been asked of it) and `POST /fake` (what to do
next: change the status, fail a chat, crash).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from engine.core.clock import SystemClock
from engine.http.past_routes import PastRoutes
from engine.localapi.running import Home
from engine.localapi.schema import (
    EngineEvent,
    EngineState,
    EngineStatus,
    PauseRequest,
    PipelineStage,
    ReadyFile,
)
from tests.support.fake_chats import FakeChats
from tests.support.fake_past import FakePast

ANSWER = (
    "A **shoal** is a group of fish that stay together.\n\n"
    "1. Each fish sees only its neighbours.\n"
    "2. Together they turn as one.\n\n"
    "```python\nfor fish in shoal:\n    fish.follow(neighbours)\n```\n\n"
    "That is all."
)
PING_S = 5.0
FIRST_LEASE_LIMIT_S = 10.0
"""The app may have been killed before it opened its event stream."""


class FakeEngine:
    """State and routes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.token = secrets.token_hex(16)
        self.over = asyncio.Event()
        self.changed = asyncio.Condition()
        self.asked: dict[str, Any] = {
            "pid": os.getpid(), "leases": 0, "pauses": [], "resumes": 0, "quits": 0,
            "chats": [], "stops": 0, "searches": [], "past": [],
        }  # fmt: skip
        self.chats = FakeChats(options.answer, options.tokens_per_s, self.asked)
        if options.messages:
            self.chats.fill(options.messages)
        self.status = EngineStatus(
            state=EngineState(options.state),
            span=(0, 30),
            model="starter/SmolLM2-135M-Instruct@5f1c",
            num_blocks=30,
            plan=(PipelineStage(peer="QmSelf", start=0, end=30, is_self=True),),
            version="0",
            api_url="",
            worker_pid=os.getpid(),
            worker_rss_bytes=620_000_000,
            kv_total_tokens=8192,
            kv_free_tokens=8192,
            leased=options.leased,
            can_chat=options.state in ("serving", "idle"),
        )

    async def set_status(self, **fields: Any) -> None:
        merged = {**self.status.model_dump(), **fields}
        self.status = EngineStatus.model_validate(merged)
        async with self.changed:
            self.changed.notify_all()

    @web.middleware
    async def check_token(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return _error(401, "The access token is wrong.", "unauthorized")
        return await handler(request)

    async def get_status(self, _: web.Request) -> web.Response:
        return _json(self.status)

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        lease = request.query.get("lease") == "1"
        self.asked["leases"] += lease
        try:
            while True:
                told = self.status
                event = EngineEvent(kind="status", status=told)
                await response.write(f"data: {event.model_dump_json()}\n\n".encode())
                while self.status is told:
                    async with self.changed:
                        try:
                            await asyncio.wait_for(self.changed.wait(), PING_S)
                        except TimeoutError:
                            await response.write(b'data: {"kind": "ping"}\n\n')
        finally:
            self.asked["leases"] -= lease
            if lease and self.options.leased and not self.asked["leases"]:
                self.over.set()

    def end_unless_leased(self) -> None:
        if not self.asked["leases"]:
            self.over.set()

    async def pause(self, request: web.Request) -> web.Response:
        wanted = PauseRequest.model_validate_json(await request.text())
        self.asked["pauses"].append(wanted.model_dump(exclude_defaults=True))
        until = None if wanted.seconds is None else SystemClock().unix_s() + wanted.seconds
        if wanted.until_tomorrow:
            until = SystemClock().unix_s() + 43_200
        if wanted.finish_first:
            await self.set_status(state="draining", sessions=2)
        else:
            await self.set_status(
                state="paused", can_chat=False, reason="You paused it.", until=until,
                worker_rss_bytes=0,
            )  # fmt: skip
        return _json(self.status)

    async def resume(self, _: web.Request) -> web.Response:
        self.asked["resumes"] += 1
        await self.set_status(
            state="idle", can_chat=True, reason="", until=None, worker_rss_bytes=620_000_000
        )
        return _json(self.status)

    async def quit(self, _: web.Request) -> web.Response:
        self.asked["quits"] += 1
        asyncio.get_running_loop().call_later(0.1, self.over.set)
        return web.json_response({})

    async def what_was_asked(self, _: web.Request) -> web.Response:
        return web.json_response(self.asked)

    async def do(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        if "crash" in wanted:
            sys.stderr.write("shoal: The worker has no memory left; close other programs.\n")
            sys.stderr.flush()
            os._exit(wanted["crash"])
        if "fail_chat" in wanted:
            self.chats.next_failure = wanted["fail_chat"]
        if "status" in wanted:
            await self.set_status(**wanted["status"])
        return web.json_response({})


async def serve(options: argparse.Namespace) -> None:
    engine = FakeEngine(options)
    app = web.Application(middlewares=[engine.check_token])
    app.add_routes(
        [
            web.get("/shoal/v1/status", engine.get_status),
            web.get("/shoal/v1/events", engine.events),
            web.post("/shoal/v1/pause", engine.pause),
            web.post("/shoal/v1/resume", engine.resume),
            web.post("/shoal/v1/quit", engine.quit),
            *engine.chats.routes(),
            *PastRoutes(FakePast(engine.asked["past"])).table(),
            web.get("/fake", engine.what_was_asked),
            web.post("/fake", engine.do),
        ]
    )
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    await engine.set_status(api_url=f"http://127.0.0.1:{port}")
    _announce(engine, Home.from_environment(), options.ready_file)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, engine.over.set)
    if options.leased:
        asyncio.get_running_loop().call_later(FIRST_LEASE_LIMIT_S, engine.end_unless_leased)
    await engine.over.wait()
    Home.from_environment().running_file.unlink(missing_ok=True)
    await runner.cleanup()


def _announce(engine: FakeEngine, home: Home, ready_file: str | None) -> None:
    for folder in (home.data_dir, home.state_dir):
        folder.mkdir(parents=True, exist_ok=True)
    home.token_file.write_text(engine.token)
    ready = ReadyFile(
        url=engine.status.api_url, token_file=str(home.token_file), pid=os.getpid()
    ).model_dump_json()
    home.running_file.write_text(ready)
    if ready_file:
        Path(ready_file).write_text(ready)


def _json(status: EngineStatus) -> web.Response:
    return web.Response(text=status.model_dump_json(), content_type="application/json")


def _error(status: int, message: str, code: str) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "error", "param": None, "code": code}},
        status=status,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--leased", action="store_true")
    parser.add_argument("--ready-file")
    parser.add_argument("--state", default="idle")
    parser.add_argument("--tokens-per-s", type=float, default=40.0)
    parser.add_argument("--answer", default=ANSWER)
    parser.add_argument("--messages", type=int, default=0, help="of a long conversation")
    parser.add_argument("--fail-to-start", metavar="MESSAGE")
    options = parser.parse_args()
    if options.fail_to_start:
        sys.stderr.write(f"shoal: {options.fail_to_start}\n")
        sys.exit(1)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
