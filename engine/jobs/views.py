"""Jobs and rows as a person sees them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from engine.jobs.records import Job, Row
from engine.jobs.results import answer_of, error_of, prompt_of
from engine.jobs.work import Work
from engine.localapi.jobs import JobInfo, JobRow, JobState, RowState


def job_info(job: Job, work: Work | None, reason: str, now_s: float) -> JobInfo:
    """A job, with what is going on when it is being worked on."""
    runs = work is not None and job.state is JobState.RUNNING
    eta_s = work.pace.eta_s(job.left_rows) if work is not None and runs else None
    return JobInfo(
        id=job.id,
        name=job.name,
        state=job.state,
        reason=reason,
        priority=job.priority,
        input_name=job.spec.input_name,
        output_path=job.spec.output_path,
        created_at=job.created_unix_s,
        started_at=job.started_unix_s,
        ended_at=job.ended_unix_s,
        total_rows=job.total_rows,
        done_rows=job.done_rows,
        failed_rows=job.failed_rows,
        running_rows=0 if work is None else len(work.asked),
        prompt_tokens=job.prompt_tokens,
        completion_tokens=job.completion_tokens,
        tokens_per_s=0.0 if work is None else round(work.pace.tokens_per_s(now_s), 2),
        eta_low_s=None if eta_s is None else round(eta_s[0], 1),
        eta_high_s=None if eta_s is None else round(eta_s[1], 1),
        num_problems=job.num_problems,
        problems=job.problems,
    )


def job_rows(rows: Sequence[Row], work: Work | None, chars: int) -> list[JobRow]:
    """Rows, their texts cut to so many characters."""
    running = set() if work is None else set(work.asked)
    return [
        JobRow(
            number=row.number,
            line=row.line,
            custom_id=row.custom_id,
            state=RowState.RUNNING if row.number in running else row.state,
            prompt=prompt_of(row)[:chars],
            answer=_cut(answer_of(row)[0], chars),
            error=_cut(error_of(row), chars),
        )
        for row in rows
    ]


def _cut(text: str | None, chars: int) -> str | None:
    return None if text is None else text[:chars]
