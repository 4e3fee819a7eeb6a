"""What was done to a job by mistake can be taken back, and nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.errors import RequestError
from engine.jobs.output import OutputUnusable
from engine.localapi.jobs import JobCreateRequest, JobState, RowState
from tests.support.job_bench import Bench, answers, request, words, working


async def failed_rows(bench: Bench, job_id: str) -> list[tuple[str, str | None]]:
    job = await bench.jobs.store.job(job_id)
    page = await bench.jobs.rows(job, -1, 100, RowState.FAILED, 200)
    return [(row.prompt, row.error) for row in page.rows]


async def test_a_cancelled_job_goes_on_where_it_was_and_no_row_is_asked_twice(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    job = await bench.jobs.create(request(tmp_path, words(2000), output_path=str(output)))
    await bench.until(job.id, lambda info: info.done_rows >= 10)
    cancelled = bench.jobs.info(await bench.jobs.cancel(job.id))
    assert cancelled.state is JobState.CANCELLED
    again = bench.jobs.info(await bench.jobs.uncancel(job.id))
    assert again.state in (JobState.QUEUED, JobState.RUNNING)
    assert (again.ended_at, again.done_rows) == (None, cancelled.done_rows)
    await bench.ended(job.id)
    assert answers(output) == [word[::-1] for word in words(2000)]
    assert set(bench.answerer.asked.values()) == {1}


async def test_a_paused_job_is_paused_again_after_a_cancel_is_taken_back(bench, tmp_path):
    job = await bench.jobs.create(request(tmp_path, words(2000)))
    await bench.until(job.id, lambda info: info.done_rows >= 5)
    await bench.jobs.pause(job.id)
    await bench.jobs.cancel(job.id)
    info = bench.jobs.info(await bench.jobs.uncancel(job.id))
    assert (info.state, info.reason) == (JobState.PAUSED, "Paused until you resume.")


async def test_a_review_is_a_review_again_after_a_cancel_is_taken_back(bench, tmp_path):
    path, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text('"one"\n{"nothing": 1}\n')
    wanted = JobCreateRequest(input_path=str(path), output_path=str(output))
    job = await bench.jobs.create(wanted)
    before = await bench.ended(job.id, JobState.REVIEW)
    await bench.jobs.cancel(job.id)
    assert not output.exists()
    after = bench.jobs.info(await bench.jobs.uncancel(job.id))
    assert (after.state, after.reason) == (JobState.REVIEW, before.reason)
    assert output.exists()
    assert not bench.answerer.asked


async def test_an_input_that_was_being_read_is_read_again(bench, tmp_path):
    job = await bench.jobs.create(request(tmp_path, words(3000)))
    await bench.jobs.cancel(job.id)
    await bench.jobs.uncancel(job.id)
    assert (await bench.ended(job.id)).done_rows == 3000


async def test_a_cancel_is_not_taken_back_into_a_file_that_has_another_owner(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    path = tmp_path / "in.jsonl"
    path.write_text('"one"\n{"nothing": 1}\n')
    wanted = JobCreateRequest(input_path=str(path), output_path=str(output))
    job = await bench.jobs.create(wanted)
    await bench.ended(job.id, JobState.REVIEW)
    await bench.jobs.cancel(job.id)
    output.write_text("mine")
    with pytest.raises(OutputUnusable, match="exists already"):
        await bench.jobs.uncancel(job.id)
    assert output.read_text() == "mine"
    output.unlink()
    bench.answerer.gate.clear()
    await bench.jobs.create(request(tmp_path, words(9), output_path=str(output)))
    with pytest.raises(OutputUnusable, match="belongs to the job"):
        await bench.jobs.uncancel(job.id)


async def test_a_deleted_job_comes_back_with_its_answers(bench, tmp_path):
    job = await bench.jobs.create(request(tmp_path, words(5)))
    await bench.ended(job.id)
    await bench.jobs.delete(job.id)
    assert await bench.jobs.infos() == []
    info = bench.jobs.info(await bench.jobs.restore(job.id))
    assert (info.state, info.done_rows) == (JobState.COMPLETED, 5)
    assert [known.id for known in await bench.jobs.infos()] == [job.id]
    assert len(await bench.lines(job.id)) == 5


async def test_a_retry_taken_back_leaves_the_errors_and_keeps_what_was_answered(bench, tmp_path):
    output = tmp_path / "out.jsonl"
    bench.answerer.refused |= {"word1", "word3"}
    job = await bench.jobs.create(request(tmp_path, words(4), output_path=str(output)))
    before = await bench.ended(job.id)
    errors = [("word1", "No."), ("word3", "No.")]
    assert await failed_rows(bench, job.id) == errors
    whole = output.read_bytes()
    bench.answerer.gate.clear()
    await bench.jobs.retry(job.id)
    info = await bench.until(job.id, lambda info: info.running_rows == 2)
    assert info.failed_rows == 0
    info = bench.jobs.info(await bench.jobs.unretry(job.id))
    assert (info.state, info.done_rows, info.failed_rows) == (JobState.COMPLETED, 2, 2)
    assert await failed_rows(bench, job.id) == errors
    assert output.read_bytes() == whole
    assert before.total_rows == info.total_rows
    bench.answerer.gate.set()
    bench.answerer.refused.discard("word1")
    await bench.jobs.retry(job.id)
    await bench.ended(job.id)
    assert await failed_rows(bench, job.id) == [("word3", "No.")]
    with pytest.raises(RequestError, match="no row of it is being asked again"):
        await bench.jobs.unretry(job.id)


async def test_only_what_was_done_can_be_taken_back(bench, tmp_path):
    bench.answerer.gate.clear()
    job = await bench.jobs.create(request(tmp_path, words(4)))
    await bench.until(job.id, lambda info: info.running_rows > 0)
    with pytest.raises(RequestError, match="nothing to take back"):
        await bench.jobs.unretry(job.id)
    with pytest.raises(RequestError, match="only a cancelled one can go on"):
        await bench.jobs.uncancel(job.id)
    info = bench.jobs.info(await bench.jobs.restore(job.id))
    assert info.state is JobState.RUNNING


async def test_a_cancel_can_be_taken_back_after_a_restart(tmp_path: Path, answerer):
    output = tmp_path / "out.jsonl"
    async with working(tmp_path, answerer) as bench:
        job = await bench.jobs.create(request(tmp_path, words(1000), output_path=str(output)))
        await bench.until(job.id, lambda info: info.done_rows >= 10)
        await bench.jobs.cancel(job.id)
    async with working(tmp_path, answerer) as bench:
        await bench.jobs.uncancel(job.id)
        await bench.ended(job.id)
    assert answers(output) == [word[::-1] for word in words(1000)]
