"""Batches through OpenAI's own client, and jobs through an engine that is killed in the middle."""

import csv
import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest
from openai import OpenAI

from tests.support.api_backend import ScriptedBackend, tiny_tokenizer
from tests.support.api_server import Api, serving_in_thread
from tests.support.real_engine import RealEngine, eventually, real_engine
from tests.support.tiny_models import save_tiny

LIMIT_S = 90.0


@pytest.fixture(scope="module")
def api(tmp_path_factory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("engine")
    with serving_in_thread(ScriptedBackend(tiny_tokenizer(folder)), folder) as serving:
        yield serving


@pytest.fixture
def client(api: Api, monkeypatch) -> Iterator[OpenAI]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with OpenAI(base_url=f"{api.url}/v1", api_key=api.token, max_retries=0) as client:
        yield client


def line(custom_id: str, **body) -> str:
    asked = {"model": "default", "max_tokens": 4, "messages": [], **body}
    asked["messages"] = asked["messages"] or [{"role": "user", "content": "Hello"}]
    url = "/v1/chat/completions"
    return json.dumps({"custom_id": custom_id, "method": "POST", "url": url, "body": asked})


def finished(client: OpenAI, batch_id: str):
    ends = ("completed", "failed", "cancelled")
    return eventually(
        lambda: client.batches.retrieve(batch_id), lambda batch: batch.status in ends, LIMIT_S
    )


def contents(client: OpenAI, file_id: str) -> list[dict]:
    return [json.loads(text) for text in client.files.content(file_id).text.splitlines()]


def begin(client: OpenAI, lines: list[str], **fields):
    file = client.files.create(file=("in.jsonl", "\n".join(lines).encode()), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        **fields,
    )


def test_a_batch_is_answered_in_order_with_errors_in_their_own_file(client):
    bad = [line("bad", temperature=9), "{", line("r-2"), line("unknown", model="gpt-4")]
    batch = begin(client, [*(line(f"r-{n}") for n in range(20)), *bad], metadata={"for": "me"})
    assert batch.object == "batch"
    done = finished(client, batch.id)
    assert done.status == "completed"
    counts = done.request_counts
    assert (counts.total, counts.completed, counts.failed) == (24, 20, 4)
    assert done.metadata == {"for": "me"}
    assert done.usage.output_tokens > 0
    output = contents(client, done.output_file_id)
    assert [row["custom_id"] for row in output] == [f"r-{n}" for n in range(20)]
    assert all(row["response"]["body"]["object"] == "chat.completion" for row in output)
    assert all(row["error"] is None for row in output)
    errors = contents(client, done.error_file_id)
    assert [row["response"] for row in errors] == [None] * 4
    assert all(row["error"]["message"] for row in errors)
    assert {error.line for error in done.errors.data} == {21, 22, 23, 24}
    size = client.files.retrieve(done.output_file_id).bytes
    assert size == len(client.files.content(done.output_file_id).content)


def test_files_are_listed_described_and_deleted(client):
    data = line("a").encode()
    file = client.files.create(file=("mine.jsonl", data), purpose="batch")
    assert (file.filename, file.bytes, file.purpose) == ("mine.jsonl", len(data), "batch")
    assert client.files.retrieve(file.id) == file
    assert file.id in [listed.id for listed in client.files.list(purpose="batch")]
    assert client.files.content(file.id).content == data
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file.id)


def test_batches_are_listed_page_by_page(client):
    ids = [begin(client, [line("a")]).id for _ in range(3)]
    for batch_id in ids:
        finished(client, batch_id)
    listed = [batch.id for batch in client.batches.list(limit=2)]
    assert listed[:3] == ids[::-1]


def test_a_batch_without_a_usable_line_fails_and_says_why(client):
    for lines, text in [(["[", "]"], "not valid JSON"), ([], "no rows")]:
        batch = finished(client, begin(client, lines).id)
        assert batch.status == "failed"
        assert text in batch.errors.data[0].message


def test_a_cancelled_batch_stays_cancelled(client):
    batch = begin(client, [line(f"r-{n}", max_tokens=100) for n in range(300)])
    assert client.batches.cancel(batch.id).status == "cancelled"
    assert finished(client, batch.id).status == "cancelled"


def test_what_cannot_be_a_batch_is_a_bad_request_that_names_the_field(client):
    file = client.files.create(file=("in.jsonl", line("a").encode()), purpose="batch")
    with pytest.raises(openai.BadRequestError) as refused:
        client.batches.create(
            input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h"
        )
    assert refused.value.param == "endpoint"
    with pytest.raises(openai.BadRequestError) as refused:
        client.files.create(file=("in.jsonl", b"{}"), purpose="fine-tune")
    assert refused.value.param == "purpose"
    with pytest.raises(openai.NotFoundError):
        client.batches.create(
            input_file_id="file-no", endpoint="/v1/completions", completion_window="24h"
        )


@pytest.mark.end2end
def test_no_row_is_lost_or_done_twice_when_the_engine_is_killed_in_the_middle(
    tmp_path, monkeypatch
):
    tiny = str(save_tiny("llama", tmp_path / "tiny"))
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f"{number},word {number}" for number in range(400)]
    source.write_text("\n".join(["id,text", *rows]))
    wanted = {
        "input_path": str(source),
        "output_path": str(output),
        "template": "Say {text}",
        "parameters": {"max_tokens": 12, "temperature": 0},
    }
    arguments = (tmp_path / "home", "--model", tiny)
    with real_engine(*arguments) as engine:
        begun = engine.api.call("POST", "/shoal/v1/jobs", wanted)
        until(engine, begun, lambda info: info["done_rows"] >= 5)
        os.kill(engine.process.pid, signal.SIGKILL)
    assert len(read_table(output)) < 400
    with real_engine(*arguments) as engine:
        info = until(engine, begun, lambda info: info["state"] == "completed")
        assert (info["total_rows"], info["done_rows"], info["failed_rows"]) == (400, 400, 0)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with OpenAI(base_url=f"{engine.url}/v1", api_key=engine.token) as client:
            batch = finished(client, begin(client, [line("a"), line("b")]).id)
            assert batch.request_counts.completed == 2
    table = read_table(output)
    assert [row["id"] for row in table] == [str(number) for number in range(400)]
    assert all(row["finish_reason"] in ("stop", "length") for row in table)


def until(engine: RealEngine, job: dict, wanted: Callable[[dict], bool]) -> dict:
    path = f"/shoal/v1/jobs/{job['id']}"
    return eventually(lambda: engine.api.call("GET", path), wanted, LIMIT_S)


def read_table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
