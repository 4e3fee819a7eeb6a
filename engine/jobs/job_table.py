"""Rows of the table `jobs` as `Job`s: functions over a connection."""

from __future__ import annotations

import json
import sqlite3
from typing import Final

from engine.core.errors import RequestError
from engine.jobs.records import Job, JobSpec
from engine.localapi.jobs import JobProblem, JobState

JOB_COLUMNS: Final = (
    "id, public_id, state, reason, name, priority, spec, created_unix_s, started_unix_s, "
    "ended_unix_s, total_rows, done_rows, failed_rows, prompt_tokens, completion_tokens, "
    "num_problems, problems, cancelled_from"
)
KEPT: Final = "deleted_unix_s IS NULL"
"""Not in the trash."""


class JobNotFound(RequestError):
    """There is no such job or file."""

    code = "not_found"


def one_job(connection: sqlite3.Connection, where: str, value: object) -> Job:
    """The job for which the condition `where` holds, with `value` in its place.

    Raises:
        JobNotFound: There is none.
    """
    job = find_job(connection, where, value)
    if job is None:
        raise JobNotFound(f"There is no job {str(value)[:60]!r}; it may have been deleted.")
    return job


def find_job(connection: sqlite3.Connection, where: str, value: object) -> Job | None:
    """The same, or None."""
    query = f"SELECT {JOB_COLUMNS} FROM jobs WHERE {where}"
    row = connection.execute(query, (value,)).fetchone()
    return None if row is None else job_of(row)


def job_of(row: sqlite3.Row) -> Job:
    """A row with `JOB_COLUMNS`."""
    values = dict(row)
    problems = json.loads(values.pop("problems"))
    before = values.pop("cancelled_from")
    return Job(
        key=values.pop("id"),
        id=values.pop("public_id"),
        state=JobState(values.pop("state")),
        spec=JobSpec.model_validate_json(values.pop("spec")),
        problems=tuple(JobProblem.model_validate(problem) for problem in problems),
        cancelled_from=None if before is None else JobState(before),
        **values,
    )
