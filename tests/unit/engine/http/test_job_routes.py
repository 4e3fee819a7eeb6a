"""`/shoal/v1/jobs` and the limits of `/v1/files`, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from engine.config import ApiConfig
from engine.http.server import serve
from engine.jobs import files
from engine.localapi.jobs import JobEvent, JobInfo, JobPreview, JobRows, PreviewRow
from tests.support.api_backend import ScriptedBackend
from tests.support.api_server import TOKEN, job_resources

JOBS = "/shoal/v1/jobs"
ANSWER = "The shoal turns when they turn."


@pytest.fixture
async def api(tokenizer, tmp_path) -> AsyncIterator[aiohttp.ClientSession]:
    backend = ScriptedBackend(tokenizer)
    async with job_resources(backend, tmp_path / "data") as resources:
        server = await serve(backend, TOKEN, ApiConfig(), resources)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            yield session
        await server.close()


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "in.csv"
    path.write_bytes("title;note\nGröße;1\nShoals;2\nbad\n".encode("cp1252"))
    return str(path)


async def ended(api: aiohttp.ClientSession, job_id: str) -> JobInfo:
    async with asyncio.timeout(20):
        while True:
            async with api.get(f"{JOBS}/{job_id}") as answer:
                info = JobInfo.model_validate(await answer.json())
            if info.state not in ("validating", "queued", "running"):
                return info
            await asyncio.sleep(0.02)


async def test_a_preview_shows_how_rows_would_be_asked(api, table):
    body = {"input_path": table, "template": "About {title}", "system": "Be brief.", "rows": 5}
    async with api.post(f"{JOBS}/preview", json=body) as answer:
        preview = JobPreview.model_validate(await answer.json())
    assert (preview.format, preview.encoding, preview.delimiter) == ("csv", "cp1252", ";")
    assert preview.columns == ("title", "note")
    assert preview.rows[0].values == ("Größe", "1")
    assert preview.rows[0].request["messages"][-1]["content"] == "About Größe"
    assert "1 values, but the first line names 2" in preview.rows[2].problem.message
    assert preview.rows[2].values == ("bad", "")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (None, "No column of the table is called 'prompt'"),
        ("About {titel}", "write 'title' if you mean"),
        ("About {", "single '{'"),
    ],
)
async def test_a_preview_for_who_still_writes_the_template_shows_the_columns(
    api, table, template, text
):
    async with api.post(f"{JOBS}/preview", json={"input_path": table, "template": template}) as it:
        preview = JobPreview.model_validate(await it.json())
    assert preview.columns == ("title", "note")
    assert preview.rows[0] == PreviewRow(line=2, values=("Größe", "1"))
    assert text in preview.problem.message


async def test_a_job_waits_for_review_and_its_rows_can_be_looked_at(api, table):
    body = {"input_path": table, "template": "{title}", "parameters": {"max_tokens": 40}}
    async with api.post(JOBS, json=body) as answer:
        job = JobInfo.model_validate(await answer.json())
    assert (await ended(api, job.id)).state == "review"
    async with api.post(f"{JOBS}/{job.id}/start") as answer:
        assert answer.status == 200
    info = await ended(api, job.id)
    assert (info.state, info.done_rows, info.failed_rows) == ("completed", 2, 1)
    async with api.get(f"{JOBS}/{job.id}/rows", params={"limit": 2, "chars": 9}) as answer:
        page = JobRows.model_validate(await answer.json())
    assert [(row.prompt, row.answer) for row in page.rows] == [
        ("Größe", ANSWER[:9]),
        ("Shoals", ANSWER[:9]),
    ]
    params = {"after": page.next_after, "state": "failed"}
    async with api.get(f"{JOBS}/{job.id}/rows", params=params) as answer:
        page = JobRows.model_validate(await answer.json())
    assert [row.line for row in page.rows] == [4]
    assert page.next_after is None
    async with api.get(f"{JOBS}/{job.id}/results", params={"format": "csv"}) as answer:
        lines = (await answer.text("utf-8-sig")).splitlines()
    assert lines[1] == f"Größe,1,{ANSWER},stop,"
    async with api.delete(f"{JOBS}/{job.id}") as answer:
        assert answer.status == 200
    async with api.get(f"{JOBS}/{job.id}") as answer:
        assert answer.status == 404


async def test_events_tell_all_jobs_and_then_those_that_change(api, table):
    async with api.get(f"{JOBS}/events") as stream:
        first = await event(stream)
        assert (first.kind, first.jobs) == ("jobs", ())
        body = {"input_path": table, "template": "{title}", "skip_bad_rows": True}
        async with api.post(JOBS, json=body) as answer:
            job_id = (await answer.json())["id"]
        async with asyncio.timeout(20):
            while (job := (await event(stream)).jobs[0]).state != "completed":
                assert job.id == job_id
        async with api.delete(f"{JOBS}/{job_id}"):
            pass
        async with asyncio.timeout(20):
            while not (told := await event(stream)).deleted:
                pass
        assert told.deleted == (job_id,)


async def event(stream: aiohttp.ClientResponse) -> JobEvent:
    while not (line := await stream.content.readline()).startswith(b"data:"):
        assert line
    return JobEvent.model_validate_json(line[5:])


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("", {}, 400, "either input_path or input_file_id"),
        ("", {"input_path": "relative.csv"}, 400, "must be absolute"),
        ("", {"input_path": "/no/such/file"}, 400, "cannot be read (No such file"),
        ("", {"input_path": "/proc"}, 400, "cannot be read (Is a directory)"),
        ("", {"input_file_id": "file-../../x"}, 404, "There is no file"),
        ("", {"input_path": "/x", "nonsense": 1}, 400, "nonsense"),
        ("/batch_none/pause", {}, 404, "There is no job"),
        ("/batch_none/explode", {}, 404, "There is no POST"),
    ],
)
async def test_wrong_requests_are_one_clear_sentence(api, path, body, status, text):
    async with api.post(f"{JOBS}{path}", json=body) as answer:
        assert answer.status == status
        assert text in (await answer.json())["error"]["message"]


async def test_a_job_in_the_wrong_state_says_so(api, table):
    body = {"input_path": table, "template": "{title}", "skip_bad_rows": True}
    async with api.post(JOBS, json=body) as answer:
        job_id = (await answer.json())["id"]
    await ended(api, job_id)
    async with api.post(f"{JOBS}/{job_id}/resume") as answer:
        assert answer.status == 400
        text = (await answer.json())["error"]["message"]
    assert text == "The job is completed; this needs one that is paused."


async def test_an_upload_beyond_the_limit_is_refused_and_leaves_nothing(api, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_UPLOAD_BYTES", 1 << 16)
    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    form.add_field("file", b"x" * (1 << 17), filename="big.jsonl")
    async with api.post("/v1/files", data=form) as answer:
        assert answer.status == 413
        assert (await answer.json())["error"]["code"] == "file_too_large"
    assert list((tmp_path / "data" / "files").iterdir()) == []


async def test_an_upload_becomes_a_job_by_its_id(api):
    form = aiohttp.FormData()
    form.add_field("file", "prompt\nHello\n".encode("utf-16"), filename="in.csv")
    form.add_field("purpose", "batch")
    async with api.post("/v1/files", data=form) as answer:
        file_id = (await answer.json())["id"]
    async with api.post(JOBS, json={"input_file_id": file_id}) as answer:
        job = await answer.json()
    assert job["input_name"] == "in.csv"
    assert (await ended(api, job["id"])).done_rows == 1
    async with api.get("/v1/batches") as answer:
        assert (await answer.json())["data"] == []
