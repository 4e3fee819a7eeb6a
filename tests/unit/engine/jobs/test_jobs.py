"""Jobs from beginning to end over a real database: no row is lost, none is done twice."""

from __future__ import annotations

import asyncio
import csv
import io
from pathlib import Path

import pytest

from engine.core.errors import EnginePaused, NoRoute, RequestError, WorkerFailed
from engine.jobs.job_table import JobNotFound
from engine.jobs.output import OutputUnusable
from engine.jobs.store import TRASH_S
from engine.jobs.work import MAX_STRIKES
from engine.localapi.jobs import JobChangeRequest, JobCreateRequest, JobState, RowState
from tests.support.job_bench import LIMIT_S, Bench, answers, request, words, working
from tests.support.movable_clock import MovableClock
from tests.support.small_disk import small_disk


async def test_every_row_gets_its_answer_in_input_order_and_many_are_asked_at_once(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    job = await bench.jobs.create(request(tmp_path, words(300), output_path=str(output)))
    info = await bench.ended(job.id)
    assert (info.total_rows, info.done_rows, info.failed_rows) == (300, 300, 0)
    assert info.prompt_tokens == 900
    assert answers(output) == [word[::-1] for word in words(300)]
    assert set(bench.answerer.asked.values()) == {1}
    assert 8 < bench.answerer.most_running <= 64


async def test_result_lines_have_openais_shape(bench, tmp_path):
    bench.answerer.refused.add("b")
    job = await bench.jobs.create(request(tmp_path, ["a", "b"]))
    await bench.ended(job.id)
    good, bad = await bench.lines(job.id)
    assert set(good) == {"id", "custom_id", "response", "error"}
    assert good["id"].startswith("batch_req_")
    assert set(good["response"]) == {"status_code", "request_id", "body"}
    assert (good["response"]["status_code"], good["error"]) == (200, None)
    assert bad["response"]["status_code"] == 400
    assert bad["response"]["body"]["error"]["code"] == "refused"


async def test_a_table_comes_back_with_its_columns_and_the_answers(bench, tmp_path):
    path, output = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("title;year\nShoals;1998\nHerrings, all;2001\n")
    job = await bench.jobs.create(
        JobCreateRequest(input_path=str(path), output_path=str(output), template="{title} {year}")
    )
    await bench.ended(job.id)
    table = list(csv.DictReader(io.StringIO(output.read_text("utf-8-sig"))))
    assert [(row["title"], row["answer"]) for row in table] == [
        ("Shoals", "8991 slaohS"),
        ("Herrings, all", "1002 lla ,sgnirreH"),
    ]


async def test_rows_that_cannot_be_asked_are_shown_before_anything_is_asked(bench, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('"one"\n{"nothing": 1}\n"three"\n')
    job = await bench.jobs.create(JobCreateRequest(input_path=str(path)))
    info = await bench.ended(job.id, JobState.REVIEW)
    assert info.reason.startswith("1 row cannot be asked")
    assert [problem.line for problem in info.problems] == [2]
    assert not bench.answerer.asked
    await bench.jobs.start(job.id)
    info = await bench.ended(job.id)
    assert (info.done_rows, info.failed_rows) == (2, 1)
    lines = await bench.lines(job.id)
    assert lines[1]["response"] is None
    assert lines[1]["error"]["code"] == "invalid_row"
    with pytest.raises(RequestError, match="wrong in the input"):
        await bench.jobs.retry(job.id)


async def test_one_bad_row_is_one_error_row_and_can_be_asked_again(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    bench.answerer.refused.add("word1")
    job = await bench.jobs.create(request(tmp_path, words(4), output_path=str(output)))
    info = await bench.ended(job.id)
    assert (info.done_rows, info.failed_rows) == (3, 1)
    rows = await bench.jobs.rows(await bench.jobs.store.job(job.id), -1, 10, RowState.FAILED, 200)
    assert [(row.prompt, row.error) for row in rows.rows] == [("word1", "No.")]
    bench.answerer.refused.clear()
    await bench.jobs.retry(job.id)
    info = await bench.ended(job.id)
    assert (info.done_rows, info.failed_rows) == (4, 0)
    assert bench.answerer.asked == {"word0": 1, "word1": 2, "word2": 1, "word3": 1}
    assert answers(output) == [word[::-1] for word in words(4)]


async def test_a_lost_swarm_loses_no_row_and_the_job_says_what_it_waits_for(bench, tmp_path):
    bench.answerer.room = None
    lost = [NoRoute("Nobody holds block 3."), EnginePaused("Paused.")] * 10
    bench.answerer.failures = {word: list(lost) for word in words(5)}
    job = await bench.jobs.create(request(tmp_path, words(5)))
    await bench.until(job.id, lambda info: info.reason in ("Nobody holds block 3.", "Paused."))
    bench.answerer.room = 1_000_000
    info = await bench.ended(job.id)
    assert (info.done_rows, info.failed_rows) == (5, 0)
    assert set(bench.answerer.asked.values()) == {1}


async def test_a_row_that_fails_while_others_succeed_is_given_up(bench, tmp_path):
    bench.answerer.failures = {"word3": [WorkerFailed("The worker died.")] * (10 * MAX_STRIKES)}
    job = await bench.jobs.create(request(tmp_path, words(100)))
    info = await bench.ended(job.id)
    assert (info.done_rows, info.failed_rows) == (99, 1)
    lines = {line["custom_id"]: line for line in await bench.lines(job.id)}
    assert lines["line-4"]["error"] == {"code": "worker_failed", "message": "The worker died."}


async def test_a_paused_job_begins_no_row_until_it_is_resumed(bench, tmp_path):
    bench.answerer.gate.clear()
    job = await bench.jobs.create(request(tmp_path, words(40)))
    await bench.until(job.id, lambda info: info.running_rows > 0)
    info = bench.jobs.info(await bench.jobs.pause(job.id))
    assert (info.state, info.reason) == (JobState.PAUSED, "Paused until you resume.")
    bench.answerer.gate.set()
    info = await bench.until(job.id, lambda info: info.running_rows == 0 and info.done_rows > 0)
    await asyncio.sleep(0.1)
    assert (await bench.info(job.id)).done_rows == info.done_rows < 40
    await bench.jobs.resume(job.id)
    await bench.ended(job.id)
    assert set(bench.answerer.asked.values()) == {1}


async def test_a_cancelled_job_keeps_its_answers_and_gives_up_the_rest(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    job = await bench.jobs.create(request(tmp_path, words(5000), output_path=str(output)))
    await bench.until(job.id, lambda info: info.done_rows >= 10)
    await bench.jobs.cancel(job.id)
    info = await bench.info(job.id)
    assert info.state is JobState.CANCELLED
    assert 10 <= info.done_rows < 5000
    assert len(await bench.lines(job.id)) == info.done_rows == len(answers(output))


async def test_the_job_with_the_higher_priority_comes_first(bench, tmp_path):
    bench.answerer.gate.clear()
    bench.answerer.room = 0  # one row at a time
    first = await bench.jobs.create(request(tmp_path, ["a1", "a2", "a3"]))
    await bench.until(first.id, lambda info: info.running_rows == 1)
    (tmp_path / "more").mkdir()
    second = await bench.jobs.create(request(tmp_path / "more", ["b1", "b2"]))
    await bench.until(second.id, lambda info: info.state is JobState.QUEUED)
    await bench.jobs.change(second.id, JobChangeRequest(priority=5))
    bench.answerer.gate.set()
    await bench.ended(first.id)
    await bench.ended(second.id)
    assert list(bench.answerer.asked) == ["a1", "b1", "b2", "a2", "a3"]


async def test_what_an_engine_has_left_is_finished_by_the_next(tmp_path, answerer):
    output = tmp_path / "out.jsonl"
    async with working(tmp_path, answerer) as bench:
        job = await bench.jobs.create(request(tmp_path, words(500), output_path=str(output)))
        await bench.until(job.id, lambda info: info.done_rows >= 20)
    # As a kill in the middle of appending would leave it.
    whole = output.read_bytes()
    output.write_bytes(whole[: len(whole) - 30] + b"\0\0 half a line")
    async with working(tmp_path, answerer) as bench:
        info = await bench.ended(job.id)
        assert info.done_rows == 500
    assert answers(output) == [word[::-1] for word in words(500)]


async def test_an_input_that_was_half_read_is_read_again(tmp_path, answerer):
    async with working(tmp_path, answerer) as bench:
        wanted = request(tmp_path, words(3000))
        job = await bench.jobs.create(wanted)
        await bench.until(job.id, lambda info: info.total_rows > 0)
        read = (await bench.info(job.id)).total_rows
    assert read <= 3000
    async with working(tmp_path, answerer) as bench:
        assert (await bench.ended(job.id)).done_rows == 3000


async def test_a_full_disk_pauses_the_job_with_a_reason_and_it_goes_on(bench, tmp_path):
    job = await bench.jobs.create(request(tmp_path, words(2000)))
    await bench.until(job.id, lambda info: info.done_rows >= 5)
    pages = await bench.database.read(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
    await bench.database.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}"))
    info = await bench.until(job.id, lambda info: "is full" in info.reason)
    assert info.state is JobState.RUNNING
    await bench.database.write(lambda c: c.execute("PRAGMA max_page_count = 1000000"))
    info = await bench.ended(job.id)
    assert info.done_rows == 2000
    assert set(bench.answerer.asked.values()) == {1}


async def test_results_wait_for_a_full_disk_of_theirs(bench, tmp_path):
    with small_disk(tmp_path / "disk", "64k") as disk:
        output = disk.folder / "out.jsonl"
        job = await bench.jobs.create(request(tmp_path, words(100), output_path=str(output)))
        disk.fill()
        info = await bench.until(job.id, lambda info: "is full" in info.reason)
        assert info.state is JobState.RUNNING
        disk.free()
        assert (await bench.ended(job.id)).done_rows == 100
        assert answers(output) == [word[::-1] for word in words(100)]


async def test_an_output_that_cannot_be_written_is_refused_at_once(bench, tmp_path):
    (tmp_path / "there").write_text("mine")
    for output, text in [
        (tmp_path / "there", "exists already"),
        (tmp_path / "no" / "such" / "folder", "No such file or directory"),
        (Path("/proc/results.jsonl"), "cannot be written"),
    ]:
        with pytest.raises(OutputUnusable, match=text):
            await bench.jobs.create(request(tmp_path, words(2), output_path=str(output)))
    assert (tmp_path / "there").read_text() == "mine"
    assert await bench.jobs.infos() == []


async def test_results_never_replace_the_input(bench, tmp_path):
    wanted = request(tmp_path, words(3))
    link = tmp_path / "link.jsonl"
    link.symlink_to(wanted.input_path)
    for output in (wanted.input_path, str(link)):
        with pytest.raises(OutputUnusable, match="is the input itself"):
            await bench.jobs.create(
                wanted.model_copy(update={"output_path": output, "overwrite": True})
            )
    assert Path(wanted.input_path).read_text().split() == words(3)


async def test_asking_for_the_same_again_goes_on_with_the_same_job(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    bench.answerer.gate.clear()
    wanted = request(tmp_path, words(20), output_path=str(output))
    job = await bench.jobs.create(wanted)
    await bench.until(job.id, lambda info: info.running_rows > 0)
    await bench.jobs.pause(job.id)
    again = await bench.jobs.create(wanted)
    assert (again.id, again.state) == (job.id, JobState.QUEUED)
    with pytest.raises(OutputUnusable, match="another input or template"):
        await bench.jobs.create(wanted.model_copy(update={"template": "Say {line}"}))
    bench.answerer.gate.set()
    await bench.ended(job.id)


def other_paths(folder: Path, kind: str) -> tuple[Path, Path]:
    """A path for results, and another that leads to the same file."""
    there = folder / "out.jsonl"
    (folder / "below").mkdir()
    match kind:
        case "a link to the file":
            other = folder / "link.jsonl"
            other.symlink_to(there)
        case "a link to its folder":
            (folder / "linked").symlink_to(folder)
            other = folder / "linked" / "out.jsonl"
        case "a way around":
            other = folder / "below" / ".." / "out.jsonl"
        case _:
            other = folder / "OUT.jsonl"
    return there, other


@pytest.mark.parametrize(
    "kind", ["a link to the file", "a link to its folder", "a way around", "another case"]
)
async def test_one_file_is_one_jobs_whatever_path_leads_to_it(bench, tmp_path, kind):
    there, other = other_paths(tmp_path, kind)
    bench.answerer.gate.clear()
    wanted = request(tmp_path, words(20), output_path=str(there))
    job = await bench.jobs.create(wanted)
    await bench.until(job.id, lambda info: info.running_rows > 0)
    if kind == "another case":
        there.unlink()  # a disk to which case means nothing cannot be asked
    again = wanted.model_copy(update={"output_path": str(other), "overwrite": True})
    assert (await bench.jobs.create(again)).id == job.id
    with pytest.raises(OutputUnusable, match="another input or template"):
        await bench.jobs.create(again.model_copy(update={"template": "Say {line}"}))
    bench.answerer.gate.set()
    await bench.ended(job.id)
    assert answers(there) == [word[::-1] for word in words(20)]


async def test_a_deleted_job_is_gone_and_a_day_later_its_rows_are_too(tmp_path, answerer):
    clock = MovableClock()
    async with working(tmp_path, answerer, clock) as bench:
        job = await bench.jobs.create(request(tmp_path, words(200)))
        await bench.until(job.id, lambda info: info.done_rows > 0)
        await bench.jobs.delete(job.id)
        assert await bench.jobs.infos() == []
        with pytest.raises(JobNotFound):
            await bench.jobs.store.job(job.id)
        assert await rows_kept(bench) == 200
        clock.ahead_s = TRASH_S + 60
    async with working(tmp_path, answerer, clock) as bench:
        async with asyncio.timeout(LIMIT_S):
            while await rows_kept(bench):
                await asyncio.sleep(0.01)
        with pytest.raises(JobNotFound):
            await bench.jobs.restore(job.id)


async def rows_kept(bench: Bench) -> int:
    count = "SELECT count(*) FROM job_rows"
    return await bench.database.read(lambda c: c.execute(count).fetchone()[0])


async def test_watchers_learn_of_every_job_that_changes(bench, tmp_path):
    changes = bench.jobs.watch()
    coming = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    job = await bench.jobs.create(request(tmp_path, words(2)))
    assert await asyncio.wait_for(coming, LIMIT_S) == {job.id}
    await changes.aclose()
