"""`/v1/files` and `/v1/batches`, as OpenAI's clients know them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from aiohttp import BodyPartReader, web

from engine.core.errors import RequestError
from engine.http.changes import Changes
from engine.http.fields import Fields, parse_object, wrong_type
from engine.http.job_routes import send_results
from engine.http.openai_batches import batch_json, file_json
from engine.http.openai_responses import Json, dumps
from engine.jobs.job_table import JobNotFound
from engine.jobs.jobs import MAX_BATCH_ROWS, Jobs
from engine.jobs.output import Results
from engine.jobs.records import Job, JobSpec
from engine.jobs.requests import URLS

_CHUNK_BYTES: Final = 1 << 18
_MAX_FIELD_BYTES: Final = 1024
_MAX_NAME_CHARS: Final = 255
_MAX_METADATA: Final = (16, 64, 512)
"""Pairs, and characters of a key and of a value: OpenAI's limits."""
T = TypeVar("T")


class BatchRoutes:
    """Handlers of `/v1/files` and `/v1/batches`."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._changes = Changes()

    def table(self) -> list[web.RouteDef]:
        """The routes."""
        return [
            web.post("/v1/files", self.upload),
            web.get("/v1/files", self.files),
            web.get("/v1/files/{id}", self.file),
            web.delete("/v1/files/{id}", self.delete_file),
            web.get("/v1/files/{id}/content", self.content),
            web.post("/v1/batches", self.create),
            web.get("/v1/batches", self.batches),
            web.get("/v1/batches/{id}", self.batch),
            web.post("/v1/batches/{id}/cancel", self.cancel),
        ]

    async def end_streams(self, app: web.Application) -> None:
        """There are none that would last."""

    # Files ----------------------------------------------------------------------------------

    async def upload(self, request: web.Request) -> web.Response:
        """Keep a file; it goes to the disk as it comes."""
        if not request.content_type.startswith("multipart/"):
            raise RequestError("The body must be multipart/form-data with purpose and file.")
        purpose, record = None, None
        try:
            reader = await request.multipart()
            while (part := await reader.next()) is not None:
                if not isinstance(part, BodyPartReader):
                    raise RequestError("The form must not hold further forms.")
                if part.name == "purpose":
                    data = await part.read_chunk(_MAX_FIELD_BYTES)
                    purpose = data.decode("utf-8", "replace")
                    _check_purpose(purpose)
                elif part.name == "file" and record is None:
                    name = (part.filename or "batch.jsonl")[:_MAX_NAME_CHARS]
                    record = await self._jobs.files.add(name, "batch", _chunks(part))
            if record is None:
                raise RequestError("The form has no file.", param="file")
            if purpose is None:
                raise RequestError("The form has no purpose; it must be batch.", param="purpose")
        except BaseException:
            if record is not None:
                await self._jobs.files.delete(record.id)
            raise
        return _json(file_json(record))

    async def files(self, request: web.Request) -> web.Response:
        """List the files."""
        purpose = request.query.get("purpose")
        records = await self._jobs.files.all()
        wanted = [record for record in records if purpose in (None, record.purpose)]
        if request.query.get("order") == "asc":
            wanted.reverse()
        page, more = _page(request, wanted, [record.id for record in wanted], 10_000)
        return _json(_list([file_json(record) for record in page], has_more=more))

    async def file(self, request: web.Request) -> web.Response:
        """Describe one."""
        return _json(file_json(await self._jobs.files.one(request.match_info["id"])))

    async def delete_file(self, request: web.Request) -> web.Response:
        """Delete one."""
        file_id = request.match_info["id"]
        await self._jobs.files.delete(file_id)
        return _json({"id": file_id, "object": "file", "deleted": True})

    async def content(self, request: web.Request) -> web.StreamResponse:
        """What is in one; a batch's results come straight from its rows."""
        record = await self._jobs.files.one(request.match_info["id"])
        if record.job is None:
            path = self._jobs.files.path(record.id)
            return web.FileResponse(path, headers={"Content-Type": "application/octet-stream"})
        job = await self._jobs.store.job_of_key(record.job)
        results = Results(self._jobs.store, job, "jsonl")
        return await send_results(request, results, failed=record.has_failures)

    # Batches --------------------------------------------------------------------------------

    async def create(self, request: web.Request) -> web.Response:
        """Begin a batch; what is wrong with its lines shows in the batch."""
        fields = Fields(parse_object(await request.read()))
        endpoint = fields.text("endpoint")
        if endpoint not in URLS:
            raise RequestError(f"endpoint must be {' or '.join(URLS)}.", param="endpoint")
        file_id = fields.text("input_file_id")
        if not file_id:
            raise RequestError("input_file_id is missing.", param="input_file_id")
        record = await self._jobs.files.one(file_id)
        if record.job is not None:
            raise RequestError(
                "input_file_id names the results of a batch; upload a file of requests.",
                param="input_file_id",
            )
        spec = JobSpec(
            input_file_id=file_id,
            input_name=record.name,
            format="jsonl",
            endpoint=endpoint,
            metadata=_metadata(fields.raw("metadata")),
            skip_bad_rows=True,
            max_rows=MAX_BATCH_ROWS,
        )
        job = await self._changes.finish(self._jobs.begin(spec, record.name))
        return _json(await self._batch_json(job))

    async def batches(self, request: web.Request) -> web.Response:
        """List the batches."""
        jobs = [job for job in await self._jobs.store.jobs() if job.spec.endpoint is not None]
        page, more = _page(request, jobs, [job.id for job in jobs], 20)
        return _json(_list([await self._batch_json(job) for job in page], has_more=more))

    async def batch(self, request: web.Request) -> web.Response:
        """Describe one."""
        return _json(await self._batch_json(await self._batch(request)))

    async def cancel(self, request: web.Request) -> web.Response:
        """End one; the answers so far stay."""
        job = await self._batch(request)
        job = await self._changes.finish(self._jobs.cancel(job.id))
        return _json(await self._batch_json(job))

    async def _batch(self, request: web.Request) -> Job:
        job = await self._jobs.store.job(request.match_info["id"])
        if job.spec.endpoint is None:
            raise JobNotFound(f"The job {job.id} is no batch of this API; see /shoal/v1/jobs.")
        return job

    async def _batch_json(self, job: Job) -> Json:
        return batch_json(job, await self._jobs.files.results_of(job))


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk(_CHUNK_BYTES):
        yield bytes(chunk)


def _check_purpose(purpose: str) -> None:
    if purpose != "batch":
        raise RequestError("purpose must be batch: files are only for batches.", param="purpose")


def _metadata(value: object) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise wrong_type("metadata", "an object", value)
    pairs, key_chars, value_chars = _MAX_METADATA
    if len(value) > pairs or not all(
        isinstance(text, str) and len(name) <= key_chars and len(text) <= value_chars
        for name, text in value.items()
    ):
        raise RequestError(
            f"metadata may hold {pairs} texts of {value_chars} characters, under names of "
            f"{key_chars}.",
            param="metadata",
        )
    return value


def _page(
    request: web.Request, items: Sequence[T], ids: Sequence[str], default: int
) -> tuple[Sequence[T], bool]:
    """The items after the one that the query names, and whether there are more."""
    after, limit = request.query.get("after"), request.query.get("limit", str(default))
    if not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= 10_000):
        raise RequestError("limit must be a number between 1 and 10000.", param="limit")
    begin = 0
    if after is not None:
        if after not in ids:
            raise RequestError("after names nothing in this list.", param="after")
        begin = ids.index(after) + 1
    end = begin + int(limit)
    return items[begin:end], end < len(items)


def _list(data: Sequence[Json], *, has_more: bool) -> Json:
    return {
        "object": "list",
        "data": list(data),
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def _json(value: Json) -> web.Response:
    return web.Response(text=dumps(value), content_type="application/json")
