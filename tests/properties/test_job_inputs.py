"""Whatever bytes a file holds, each row of it is a request or a sentence, and can be kept."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.clock import SystemClock
from engine.http.openai_requests import chat_request, completion_request
from engine.jobs.problems import InputUnusable
from engine.jobs.reading import InputReader, InputRow
from engine.jobs.records import JobSpec
from engine.jobs.requests import CHAT_URL, Recipe
from engine.jobs.store import JobStore
from engine.jobs.templates import Template
from engine.storage.database import Database

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = ("custom_id", "body", "messages", "prompt", "url", "method", "content", "role")
LINES = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
ODD = st.text(st.sampled_from("abü\n\r\"',;\t\\{}[]:01\ud800\0 \ufeff"), max_size=60)


def rows(data: bytes, kind: str, template: str | None) -> list[InputRow]:
    def check(url: str, body) -> None:
        (chat_request if url == CHAT_URL else completion_request)(body)

    recipe = Recipe(None if template is None else Template.parse(template), None, {}, check)
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with closing(InputReader.open(Path(file.name), recipe, name=f"input.{kind}")) as reader:
            return list(reader.rows())


async def keep(found: list[InputRow]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open(Path(folder) / "shoal.sqlite3", SystemClock())
        store = JobStore(database, SystemClock())
        job = await store.create(JobSpec(input_name="x", max_rows=10), "x", 0)
        job = await store.add_rows(job.key, 0, found)
        assert job.total_rows == len(found)
        await database.close()


@pytest.mark.parametrize("template", [None, "Say {a}", "{line}"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "txt", "unknown"])
@settings(max_examples=40, deadline=None)
@given(
    data=st.binary(max_size=200)
    | ODD.map(lambda text: text.encode("utf-8", "surrogatepass"))
    | ODD.map(lambda text: ("a,prompt\n" + text).encode("utf-8", "surrogatepass"))
    | st.lists(LINES, max_size=3).map(lambda lines: "\n".join(map(_dumps, lines)).encode())
)
def test_any_file_becomes_rows_or_one_sentence(data, kind, template):
    try:
        found = rows(data, kind, template)
    except InputUnusable:
        return
    for row in found:
        assert (row.request is None) != (row.problem is None)
    if found:
        asyncio.run(keep(found))


def _dumps(value: object) -> str:
    return json.dumps(value)
