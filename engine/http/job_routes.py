"""`/shoal/v1/jobs`: see `engine.localapi.jobs` for the calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, Literal, cast
from weakref import WeakSet

from aiohttp import web

from engine.core.errors import RequestError
from engine.http.bodies import json_response, read_body
from engine.http.changes import Changes
from engine.http.sse import EventStream
from engine.jobs.job_table import JobNotFound
from engine.jobs.jobs import Jobs
from engine.jobs.output import Results
from engine.jobs.records import Job
from engine.localapi.jobs import (
    JobChangeRequest,
    JobCreateRequest,
    JobEvent,
    JobInfo,
    JobList,
    JobPreviewRequest,
    ResultFormat,
    RowState,
)

_MAX_PAGE = 1000
_MAX_CHARS = 1 << 20


class JobRoutes:
    """Handlers of `/shoal/v1/jobs`."""

    def __init__(self, jobs: Jobs, *, ping_every_s: float) -> None:
        self._jobs = jobs
        self._ping_every_s = ping_every_s
        self._streams: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._changes = Changes()
        self._acts: dict[str, Callable[[str], Coroutine[Any, Any, Job]]] = {
            "start": jobs.start,
            "pause": jobs.pause,
            "resume": jobs.resume,
            "cancel": jobs.cancel,
            "uncancel": jobs.uncancel,
            "retry": jobs.retry,
            "unretry": jobs.unretry,
            "restore": jobs.restore,
        }

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        jobs = "/shoal/v1/jobs"
        return [
            web.get(jobs, self.overview),
            web.post(jobs, self.create),
            web.post(f"{jobs}/preview", self.preview),
            web.get(f"{jobs}/events", self.events),
            web.get(f"{jobs}/{{id}}", self.get),
            web.post(f"{jobs}/{{id}}", self.change),
            web.delete(f"{jobs}/{{id}}", self.delete),
            web.get(f"{jobs}/{{id}}/rows", self.rows),
            web.get(f"{jobs}/{{id}}/results", self.results),
            web.post(f"{jobs}/{{id}}/{{action:{'|'.join(self._acts)}}}", self.act),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """End the event streams, which would otherwise outlast the server's patience."""
        for task in list(self._streams):
            task.cancel()

    async def overview(self, request: web.Request) -> web.Response:
        """All jobs."""
        return json_response(JobList(jobs=tuple(await self._jobs.infos())))

    async def create(self, request: web.Request) -> web.Response:
        """Begin a job."""
        wanted = await read_body(request, JobCreateRequest)
        return self._info(await self._changes.finish(self._jobs.create(wanted)))

    async def preview(self, request: web.Request) -> web.Response:
        """Show the first rows."""
        wanted = await read_body(request, JobPreviewRequest)
        return json_response(await self._jobs.preview(wanted))

    async def get(self, request: web.Request) -> web.Response:
        """One job."""
        return self._info(await self._job(request))

    async def change(self, request: web.Request) -> web.Response:
        """Rename it, or change its priority."""
        wanted = await read_body(request, JobChangeRequest)
        change = self._jobs.change(request.match_info["id"], wanted)
        return self._info(await self._changes.finish(change))

    async def delete(self, request: web.Request) -> web.Response:
        """Forget it."""
        await self._changes.finish(self._jobs.delete(request.match_info["id"]))
        return web.json_response({})

    async def act(self, request: web.Request) -> web.Response:
        """Start, pause, resume, cancel, retry, or take one of these back."""
        act = self._acts[request.match_info["action"]](request.match_info["id"])
        return self._info(await self._changes.finish(act))

    async def rows(self, request: web.Request) -> web.Response:
        """A page of rows."""
        job = await self._job(request)
        state = request.query.get("state")
        if state is not None and state not in list(RowState):
            raise RequestError(f"state must be one of {', '.join(RowState)}.", param="state")
        return json_response(
            await self._jobs.rows(
                job,
                _number(request, "after", -1, -1, 1 << 40),
                _number(request, "limit", 100, 1, _MAX_PAGE),
                None if state is None else RowState(state),
                _number(request, "chars", 200, 0, _MAX_CHARS),
            )
        )

    async def results(self, request: web.Request) -> web.StreamResponse:
        """The results so far."""
        job = await self._job(request)
        format_ = request.query.get("format", "jsonl")
        if format_ not in ("jsonl", "csv"):
            raise RequestError("format must be jsonl or csv.", param="format")
        results = Results(self._jobs.store, job, cast(ResultFormat, format_))
        return await send_results(request, results)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """All jobs, then those that change."""
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        events = await EventStream.open(request)
        with suppress(ConnectionResetError):
            await self._send_changes(events)
        return events.response

    async def _send_changes(self, events: EventStream) -> None:
        async with aclosing(cast(Any, self._jobs.watch())) as changes:
            coming = asyncio.ensure_future(anext(changes))
            try:
                await asyncio.sleep(0)  # from here on changes are collected
                await self._send(events, "jobs", await self._jobs.infos())
                while True:
                    done, _ = await asyncio.wait({coming}, timeout=self._ping_every_s)
                    if not done:
                        await self._send(events, "ping", [])
                        continue
                    infos, gone = await self._changed(coming.result())
                    await self._send(events, "jobs", infos, gone)
                    coming = asyncio.ensure_future(anext(changes))
            finally:
                coming.cancel()
                with suppress(asyncio.CancelledError):
                    await coming

    async def _changed(self, ids: set[str]) -> tuple[list[JobInfo], list[str]]:
        infos, gone = [], []
        for job_id in sorted(ids):
            try:
                infos.append(self._jobs.info(await self._jobs.store.job(job_id)))
            except JobNotFound:
                gone.append(job_id)
        return infos, gone

    async def _send(
        self,
        events: EventStream,
        kind: Literal["jobs", "ping"],
        infos: list[JobInfo],
        gone: list[str] | None = None,
    ) -> None:
        event = JobEvent(kind=kind, jobs=tuple(infos), deleted=tuple(gone or ()))
        await events.send(event.model_dump_json())

    async def _job(self, request: web.Request) -> Job:
        return await self._jobs.store.job(request.match_info["id"])

    def _info(self, job: Job) -> web.Response:
        return json_response(self._jobs.info(job))


async def send_results(
    request: web.Request, results: Results, *, failed: bool | None = None
) -> web.StreamResponse:
    """Send result lines as they are read, a page at a time; see `Results.next`."""
    response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    await response.prepare(request)
    while (lines := await results.next(skip_pending=True, failed=failed)) is not None:
        if lines:
            await response.write(b"".join(lines))
    await response.write_eof()
    return response


def _number(request: web.Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise RequestError(f"{name} must be a number between {low} and {high}.", param=name)
    return value
