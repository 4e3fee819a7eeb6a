"""Jobs and their rows in the database. A row's outcome is written once, with its job's counts.

Rows that are being answered are pending here: what a kill interrupts is asked again, and what was
committed never is.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any, Final

from engine.core.clock import Clock
from engine.core.errors import RequestError
from engine.jobs.reading import InputRow
from engine.jobs.records import MAX_PROBLEMS_KEPT, Job, JobSpec, Outcome, Row
from engine.localapi.jobs import ENDED_STATES, JobProblem, JobState, RowState
from engine.storage.database import Database

_JOB: Final = (
    "id, public_id, state, reason, name, priority, spec, created_unix_s, started_unix_s, "
    "ended_unix_s, total_rows, done_rows, failed_rows, prompt_tokens, completion_tokens, "
    "num_problems, problems"
)
_ROW: Final = ", ".join(field.name for field in fields(Row))


class JobNotFound(RequestError):
    """There is no such job or file."""

    code = "not_found"


class JobStore:
    """Everything about jobs that survives the engine."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    # Jobs -----------------------------------------------------------------------------------

    async def create(self, spec: JobSpec, name: str, priority: int) -> Job:
        """A new job, to be validated."""
        values = (
            f"batch_{secrets.token_hex(12)}",
            JobState.VALIDATING,
            name,
            priority,
            spec.model_dump_json(),
            self._clock.unix_s(),
        )

        def insert(connection: sqlite3.Connection) -> Job:
            cursor = connection.execute(
                "INSERT INTO jobs (public_id, state, name, priority, spec, created_unix_s) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                values,
            )
            return _one_job(connection, "id = ?", cursor.lastrowid)

        return await self._database.write(insert)

    async def jobs(self) -> list[Job]:
        """All, newest first."""
        query = f"SELECT {_JOB} FROM jobs ORDER BY id DESC"
        return await self._database.read(lambda c: [_job(row) for row in c.execute(query)])

    async def job(self, public_id: str) -> Job:
        """One.

        Raises:
            JobNotFound: There is none of this id.
        """
        return await self._database.read(lambda c: _one_job(c, "public_id = ?", public_id))

    async def job_of_key(self, key: int) -> Job:
        """One, by the store's own number.

        Raises:
            JobNotFound: It was deleted.
        """
        return await self._database.read(lambda c: _one_job(c, "id = ?", key))

    async def unfinished_with_output(self, output_path: str) -> Job | None:
        """The job that writes to this file, if one that has not ended does."""
        for job in await self.jobs():
            if job.spec.output_path == output_path and job.state not in ENDED_STATES:
                return job
        return None

    async def change(self, key: int, **values: Any) -> Job:
        """Set columns of a job."""
        names = ", ".join(f"{name} = ?" for name in values)

        def update(connection: sqlite3.Connection) -> Job:
            connection.execute(f"UPDATE jobs SET {names} WHERE id = ?", (*values.values(), key))
            return _one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def move(self, key: int, from_states: Collection[JobState], **values: Any) -> Job:
        """Set columns of a job that is in one of these states.

        Returns:
            The job as it is now, changed or not.
        """
        names = ", ".join(f"{name} = ?" for name in values)
        marks = ", ".join("?" * len(from_states))
        query = f"UPDATE jobs SET {names} WHERE id = ? AND state IN ({marks})"

        def update(connection: sqlite3.Connection) -> Job:
            connection.execute(query, (*values.values(), key, *from_states))
            return _one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def delete(self, key: int) -> None:
        """Forget a job with its rows."""
        await self._database.write(lambda c: c.execute("DELETE FROM jobs WHERE id = ?", (key,)))

    # Rows -----------------------------------------------------------------------------------

    async def forget_rows(self, key: int) -> None:
        """Before the input is read again."""

        def forget(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM job_rows WHERE job = ?", (key,))
            connection.execute(
                "UPDATE jobs SET total_rows = 0, failed_rows = 0, num_problems = 0, problems = '[]' "
                "WHERE id = ?",
                (key,),
            )

        await self._database.write(forget)

    async def add_rows(self, key: int, first_number: int, rows: Sequence[InputRow]) -> Job:
        """Add rows as they were read; those that cannot be asked have failed."""
        values = [_input_values(key, number, row) for number, row in enumerate(rows, first_number)]
        problems = [row.problem for row in rows if row.problem is not None]

        def insert(connection: sqlite3.Connection) -> Job:
            connection.executemany(
                "INSERT INTO job_rows (job, number, line, custom_id, url, body, columns, state, "
                "error_code, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )
            before = _one_job(connection, "id = ?", key)
            kept = (*before.problems, *problems)[:MAX_PROBLEMS_KEPT]
            connection.execute(
                "UPDATE jobs SET total_rows = total_rows + ?, failed_rows = failed_rows + ?, "
                "num_problems = num_problems + ?, problems = ? WHERE id = ?",
                (len(values), len(problems), len(problems), _problems_json(kept), key),
            )
            return _one_job(connection, "id = ?", key)

        return await self._database.write(insert)

    async def pending(self, key: int, after: int, limit: int) -> list[Row]:
        """Rows to be asked, in input order, beyond the number `after`."""
        query = (
            f"SELECT {_ROW} FROM job_rows WHERE job = ? AND state = 'pending' AND number > ? "
            "ORDER BY number LIMIT ?"
        )
        return await self._rows(query, key, after, limit)

    async def rows(
        self, key: int, after: int, limit: int, state: RowState | None = None
    ) -> list[Row]:
        """Rows in input order, beyond the number `after`."""
        query = (
            f"SELECT {_ROW} FROM job_rows WHERE job = ? AND number > ? AND (? IS NULL OR state = ?) "
            "ORDER BY number LIMIT ?"
        )
        return await self._rows(query, key, after, state, state, limit)

    async def complete(self, outcomes: Sequence[Outcome]) -> list[Job]:
        """Commit what became of rows, all in one transaction; each counts once, whatever happens.

        Returns:
            Their jobs as they are now.

        Raises:
            DiskFull: There is no space; nothing was committed.
        """

        def update(connection: sqlite3.Connection) -> list[Job]:
            for outcome in outcomes:
                cursor = connection.execute(
                    "UPDATE job_rows SET state = ?, status = ?, answer = ?, error_code = ?, "
                    "error = ? WHERE job = ? AND number = ? AND state = 'pending'",
                    (
                        outcome.state,
                        outcome.status,
                        outcome.answer,
                        outcome.error_code,
                        outcome.error,
                        outcome.job,
                        outcome.number,
                    ),
                )
                done = cursor.rowcount if outcome.state is RowState.DONE else 0
                connection.execute(
                    "UPDATE jobs SET done_rows = done_rows + ?, failed_rows = failed_rows + ?, "
                    "prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ? "
                    "WHERE id = ?",
                    (
                        done,
                        cursor.rowcount - done,
                        outcome.prompt_tokens,
                        outcome.completion_tokens,
                        outcome.job,
                    ),
                )
            keys = dict.fromkeys(outcome.job for outcome in outcomes)
            found = (_find_job(connection, "id = ?", key) for key in keys)
            return [job for job in found if job is not None]  # one may be deleted by now

        return await self._database.write(update)

    async def retry_failed(self, key: int) -> Job:
        """Make failed rows pending that can be asked."""

        def update(connection: sqlite3.Connection) -> Job:
            cursor = connection.execute(
                "UPDATE job_rows SET state = 'pending', status = NULL, answer = NULL, "
                "error_code = NULL, error = NULL "
                "WHERE job = ? AND state = 'failed' AND body IS NOT NULL",
                (key,),
            )
            if not cursor.rowcount:
                raise RequestError(
                    "No row of this job can be asked again: those that failed were wrong in the "
                    "input, so correct it and begin a new job."
                )
            connection.execute(
                "UPDATE jobs SET failed_rows = failed_rows - ?, state = ?, reason = '', "
                "ended_unix_s = NULL WHERE id = ?",
                (cursor.rowcount, JobState.QUEUED, key),
            )
            return _one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def _rows(self, query: str, *values: object) -> list[Row]:
        return await self._database.read(
            lambda c: [
                Row(**{**row, "state": RowState(row["state"])}) for row in c.execute(query, values)
            ]
        )


def _input_values(key: int, number: int, row: InputRow) -> tuple[object, ...]:
    columns = json.dumps(row.values) if row.values else "{}"
    if row.request is None:
        message = "" if row.problem is None else row.problem.message
        return (
            *(key, number, row.line, f"line-{row.line}", "", None, columns),
            *(RowState.FAILED, "invalid_row", message),
        )
    request = row.request
    body = json.dumps(request.body)  # ASCII: JSON can hold what is no Unicode text
    return (
        *(key, number, row.line, request.custom_id, request.url, body, columns),
        *(RowState.PENDING, None, None),
    )


def _one_job(connection: sqlite3.Connection, where: str, value: object) -> Job:
    job = _find_job(connection, where, value)
    if job is None:
        raise JobNotFound(f"There is no job {str(value)[:60]!r}; it may have been deleted.")
    return job


def _find_job(connection: sqlite3.Connection, where: str, value: object) -> Job | None:
    query = f"SELECT {_JOB} FROM jobs WHERE {where}"
    row = connection.execute(query, (value,)).fetchone()
    return None if row is None else _job(row)


def _job(row: sqlite3.Row) -> Job:
    values = dict(row)
    problems = json.loads(values.pop("problems"))
    return Job(
        key=values.pop("id"),
        id=values.pop("public_id"),
        state=JobState(values.pop("state")),
        spec=JobSpec.model_validate_json(values.pop("spec")),
        problems=tuple(JobProblem.model_validate(problem) for problem in problems),
        **values,
    )


def _problems_json(problems: Sequence[JobProblem]) -> str:
    return json.dumps([problem.model_dump() for problem in problems], ensure_ascii=False)
