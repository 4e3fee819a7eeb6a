"""Whatever is wrong with an input, a disk or a file: one row's error or one sentence, never a dead job."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.core.errors import DiskFull, EngineError
from engine.jobs.output import OutputUnusable
from engine.jobs.problems import InputUnusable
from engine.localapi.jobs import JobCreateRequest, JobPreviewRequest, JobState, RowState
from tests.support.job_bench import Bench, answers, request, words, working
from tests.support.small_disk import small_disk

GIGABYTE = 1 << 30


def is_one_sentence(text: str) -> bool:
    """Ends with a stop, and has none before but in names and abbreviations."""
    return text.endswith((".", "?")) and re.search(r"[.?!] [A-Z]", text) is None


def table(folder: Path, data: bytes | str, name: str = "in.csv", **fields: Any) -> JobCreateRequest:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return JobCreateRequest(input_path=str(path), **fields)


@asynccontextmanager
async def watched_memory() -> AsyncIterator[list[int]]:
    """How many bytes this process has beyond those that it had, again and again."""
    process, seen = psutil.Process(), [0]
    before = process.memory_info().rss

    async def watch() -> None:
        while True:
            seen.append(process.memory_info().rss - before)
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        watching.cancel()


def with_long_line(path: Path, first: str, last: str) -> None:
    """A gigabyte without a line end between two lines; most of it takes no room on the disk."""
    with path.open("wb") as file:
        file.write(first.encode() + b"x" * (1 << 16))
        file.truncate(GIGABYTE)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + last.encode())


@pytest.mark.parametrize(
    ("name", "first", "last", "line"),
    [
        ("in.jsonl", "", '"short"\n', 1),
        ("in.csv", "prompt\n" + "row\n" * 60, "short\n", 62),
    ],
)
async def test_a_line_of_a_gigabyte_costs_its_own_row_and_hardly_any_memory(
    bench, tmp_path, name, first, last, line
):
    path = tmp_path / name
    with_long_line(path, first, last)
    async with watched_memory() as more_bytes:
        preview = await bench.jobs.preview(JobPreviewRequest(input_path=str(path), rows=5))
        job = await bench.jobs.create(JobCreateRequest(input_path=str(path), skip_bad_rows=True))
        info = await bench.until(job.id, lambda info: info.state not in ("validating", "queued"))
    assert max(more_bytes) < 96 << 20
    assert (info.num_problems, info.problems[0].line) == (1, line)
    assert "longer than 4 million characters; split it" in info.problems[0].message
    if line == 1:
        assert preview.rows[0].problem == info.problems[0]
    await bench.ended(job.id)
    failed = await bench.jobs.rows(await bench.jobs.store.job(job.id), -1, 10, RowState.FAILED, 99)
    assert [row.line for row in failed.rows] == [line]


@pytest.mark.slow
async def test_a_hundred_thousand_rows_are_answered_in_bounded_memory(bench, tmp_path):
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    padding = "z" * 200
    with path.open("w") as file:
        file.write("prompt,note\n")
        file.writelines(f"row {number},{padding}\n" for number in range(100_000))
    # What is loaded and cached once does not count.
    first = await bench.jobs.create(request(tmp_path, words(200)))
    await bench.ended(first.id)
    async with watched_memory() as more_bytes:
        job = await bench.jobs.create(
            JobCreateRequest(input_path=str(path), output_path=str(output))
        )
        async with asyncio.timeout(200):
            while (await bench.info(job.id)).state is not JobState.COMPLETED:
                await asyncio.sleep(0.1)
    assert max(more_bytes) < 64 << 20
    with output.open(encoding="utf-8-sig", newline="") as file:
        answered = [row["answer"] for row in csv.DictReader(file)]
    assert answered == [f"row {number}"[::-1] for number in range(100_000)]


async def test_rows_of_a_preview_are_cut_though_they_are_long(bench, tmp_path):
    wanted = table(tmp_path, "prompt,note\n" + f"{'long ' * 200_000},x\n" * 4)
    async with watched_memory() as more_bytes:
        preview = await bench.jobs.preview(JobPreviewRequest(input_path=wanted.input_path))
    assert [len(row.values[0]) for row in preview.rows] == [2000] * 4
    assert len(preview.model_dump_json()) < 30_000
    assert max(more_bytes) < 64 << 20


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.txt", "in"])
async def test_a_file_that_is_no_text_is_refused_and_leaves_nothing(bench, tmp_path, name):
    output = tmp_path / "out.jsonl"
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 500
    wanted = table(tmp_path, picture, name, template="{line}", output_path=str(output))
    with pytest.raises(InputUnusable, match="not text") as refused:
        await bench.jobs.create(wanted)
    assert is_one_sentence(str(refused.value))
    assert await bench.jobs.infos() == []
    assert not output.exists()


@pytest.mark.parametrize(("name", "line"), [("in.jsonl", '"row"\n'), ("in.txt", "row\n")])
async def test_bytes_that_are_no_text_cost_the_rows_that_hold_them(bench, tmp_path, name, line):
    good = line.encode() * 20_000  # the beginning tells nothing
    wanted = table(
        tmp_path, good + b"\0\1\2\xfe\xff\n" + line.encode() * 100, name, skip_bad_rows=True
    )
    job = await bench.jobs.create(wanted)
    info = await bench.until(job.id, lambda info: info.state not in ("validating", "queued"))
    assert (info.failed_rows, info.problems[0].line) == (1, 20_001)
    assert "save it as UTF-8" in info.problems[0].message


async def test_an_id_that_is_used_twice_costs_the_later_row(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    lines = [{"custom_id": name, "prompt": name} for name in ("a", "b", "a", "c")]
    for line in lines:
        line["messages"] = [{"role": "user", "content": line.pop("prompt")}]
    text = "\n".join(json.dumps(line) for line in lines)
    wanted = table(tmp_path, text, "in.jsonl", output_path=str(output))
    job = await bench.jobs.create(wanted)
    info = await bench.ended(job.id, JobState.REVIEW)
    assert not bench.answerer.asked
    (problem,) = info.problems
    assert (problem.line, problem.column) == (3, "custom_id")
    assert problem.message == "custom_id 'a' was used in line 1 already; give each row its own."
    await bench.jobs.start(job.id)
    await bench.ended(job.id)
    assert bench.answerer.asked == {"a": 1, "b": 1, "c": 1}
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["custom_id"] for line in found] == ["a", "b", "line-3", "c"]
    assert found[2]["error"] == {"code": "invalid_row", "message": problem.message}


ODD_VALUES = ["plain", 'say "six"', "two\nlines", "a;b,c\td|e", "Größe, naïve", "two  blanks "]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
async def test_tables_of_every_make_come_back_with_their_values(
    bench, tmp_path, encoding, delimiter
):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows([["no", "value"], *([n, value] for n, value in enumerate(ODD_VALUES))])
    output = tmp_path / "out.csv"
    wanted = table(
        tmp_path, text.getvalue().encode(encoding), template="{value}", output_path=str(output)
    )
    job = await bench.jobs.create(wanted)
    await bench.ended(job.id)
    rows = list(csv.DictReader(io.StringIO(output.read_text("utf-8-sig"), newline="")))
    assert [row["value"] for row in rows] == ODD_VALUES
    assert [row["answer"] for row in rows] == [value[::-1] for value in ODD_VALUES]


async def test_rows_that_lack_columns_are_named_and_the_others_are_answered(bench, tmp_path):
    wanted = table(tmp_path, "a;b\n1;2\n3\n4;5;6\n7;8\n", template="{a}{b}")
    job = await bench.jobs.create(wanted)
    info = await bench.ended(job.id, JobState.REVIEW)
    assert [problem.line for problem in info.problems] == [3, 4]
    assert all("the first line names 2 columns" in one.message for one in info.problems)
    assert all(is_one_sentence(problem.message) for problem in info.problems)
    await bench.jobs.start(job.id)
    assert (await bench.ended(job.id)).done_rows == 2
    assert set(bench.answerer.asked) == {"12", "78"}


@pytest.mark.parametrize(
    ("data", "template", "text"),
    [
        ("title,body\n1,2\n", "{titel}", "write 'title' if you mean that column"),
        ("title,body\n1,2\n", "{author}", "those that there are: 'title', 'body'"),
        ("title,body\n1,2\n", None, "give a template that says how a row becomes a prompt"),
        ("title,body\n1,2\n", "{title", "has a single '{' at character 1"),
        ("title,body\n1,2\n", "a } b", "has a single '}' at character 3"),
        ("title,body\n1,2\n", "{}", "an empty placeholder at character 1"),
        ("title,title\n1,2\n", "{title}", "names the column 'title' twice"),
        ("", "{title}", "its first line must name the columns"),
    ],
)
async def test_a_template_that_does_not_fit_is_refused_before_anything_is_touched(
    bench, tmp_path, data, template, text
):
    output = tmp_path / "out.csv"
    with pytest.raises(InputUnusable) as refused:
        await bench.jobs.create(table(tmp_path, data, template=template, output_path=str(output)))
    assert text in str(refused.value)
    assert is_one_sentence(str(refused.value))
    assert not output.exists()
    assert await bench.jobs.infos() == []


async def test_results_on_a_disk_that_cannot_be_written_are_refused_at_once(bench, tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        disk.set_read_only(read_only=True)
        output = disk.folder / "out.jsonl"
        with pytest.raises(OutputUnusable, match="Read-only file system") as refused:
            await bench.jobs.create(request(tmp_path, words(2), output_path=str(output)))
        assert is_one_sentence(str(refused.value))
        assert await bench.jobs.infos() == []


async def test_results_that_cannot_be_written_any_more_pause_the_job_until_they_can(
    bench, tmp_path
):
    with small_disk(tmp_path / "disk", "1m") as disk:
        output = disk.folder / "out.jsonl"
        bench.answerer.gate.clear()
        job = await bench.jobs.create(request(tmp_path, words(100), output_path=str(output)))
        disk.set_read_only(read_only=True)
        bench.answerer.gate.set()
        info = await bench.ended(job.id, JobState.PAUSED)
        assert "Read-only file system" in info.reason
        assert is_one_sentence(info.reason)
        disk.set_read_only(read_only=False)
        await bench.jobs.resume(job.id)
        await bench.ended(job.id)
        assert answers(output) == [word[::-1] for word in words(100)]
        assert set(bench.answerer.asked.values()) == {1}


async def test_a_disk_that_fills_up_in_the_middle_stops_the_job_until_there_is_room(
    tmp_path, answerer
):
    with small_disk(tmp_path / "disk", "16m") as disk:
        async with working(disk.folder, answerer) as bench:
            job = await bench.jobs.create(request(tmp_path, words(2000)))
            await bench.until(job.id, lambda info: info.done_rows >= 5)
            disk.fill()
            info = await bench.until(job.id, lambda info: "is full" in info.reason)
            assert info.state is JobState.RUNNING
            assert is_one_sentence(info.reason)
            asked = sum(answerer.asked.values())
            await asyncio.sleep(0.2)
            assert sum(answerer.asked.values()) - asked <= 64  # those that were on their way
            error = await refusal(bench, tmp_path)
            assert isinstance(error, DiskFull)
            assert is_one_sentence(str(error))
            disk.free()
            assert (await bench.ended(job.id)).done_rows == 2000
        assert set(answerer.asked.values()) == {1}


async def refusal(bench: Bench, folder: Path) -> EngineError:
    """Why no other job can be begun."""
    with pytest.raises(EngineError) as refused:
        await bench.jobs.create(table(folder, "prompt\nHello\n"))
    return refused.value
