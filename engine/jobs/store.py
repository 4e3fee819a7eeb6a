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
from engine.jobs.job_table import JOB_COLUMNS, KEPT, find_job, job_of, one_job
from engine.jobs.reading import InputRow
from engine.jobs.records import MAX_PROBLEMS_KEPT, Job, JobSpec, Outcome, Row
from engine.localapi.jobs import ENDED_STATES, JobProblem, JobState, RowState
from engine.storage.database import Database

TRASH_S: Final = 86400.0
"""How long a deleted job can be brought back: it may hold 50,000 answers, so not for a month."""
_ROW: Final = ", ".join(field.name for field in fields(Row))


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
            return one_job(connection, "id = ?", cursor.lastrowid)

        return await self._database.write(insert)

    async def jobs(self) -> list[Job]:
        """All, newest first."""
        query = f"SELECT {JOB_COLUMNS} FROM jobs WHERE {KEPT} ORDER BY id DESC"
        return await self._database.read(lambda c: [job_of(row) for row in c.execute(query)])

    async def unfinished(self) -> list[Job]:
        """Those that have not ended."""
        return [job for job in await self.jobs() if job.state not in ENDED_STATES]

    async def job(self, public_id: str) -> Job:
        """One.

        Raises:
            JobNotFound: There is none of this id.
        """
        return await self._database.read(
            lambda c: one_job(c, f"{KEPT} AND public_id = ?", public_id)
        )

    async def job_of_key(self, key: int) -> Job:
        """One, by the store's own number.

        Raises:
            JobNotFound: It was deleted.
        """
        return await self._database.read(lambda c: one_job(c, f"{KEPT} AND id = ?", key))

    async def change(self, key: int, **values: Any) -> Job:
        """Set columns of a job."""
        names = ", ".join(f"{name} = ?" for name in values)

        def update(connection: sqlite3.Connection) -> Job:
            connection.execute(f"UPDATE jobs SET {names} WHERE id = ?", (*values.values(), key))
            return one_job(connection, "id = ?", key)

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
            return one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def cancel(self, key: int) -> Job:
        """End a job that has not ended; what it was before is remembered.

        Returns:
            The job as it is now: it may have ended by itself.
        """
        now_s = self._clock.unix_s()

        def update(connection: sqlite3.Connection) -> Job:
            ended = ", ".join("?" * len(ENDED_STATES))
            connection.execute(
                "UPDATE jobs SET cancelled_from = state, state = ?, reason = '', "
                f"ended_unix_s = ? WHERE id = ? AND state NOT IN ({ended})",
                (JobState.CANCELLED, now_s, key, *ENDED_STATES),
            )
            return one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def delete(self, key: int) -> None:
        """Put a job into the trash with its rows."""
        now_s = self._clock.unix_s()
        query = "UPDATE jobs SET deleted_unix_s = ? WHERE id = ?"
        await self._database.write(lambda c: c.execute(query, (now_s, key)))

    async def restore(self, public_id: str) -> Job:
        """Take a job out of the trash; one that does not lie there stays as it is.

        Raises:
            JobNotFound: There is none of this id.
        """
        query = "UPDATE jobs SET deleted_unix_s = NULL WHERE public_id = ?"

        def update(connection: sqlite3.Connection) -> Job:
            connection.execute(query, (public_id,))
            return one_job(connection, "public_id = ?", public_id)

        return await self._database.write(update)

    async def empty_trash(self) -> None:
        """Forget what has been in the trash for `TRASH_S`, with its rows."""
        oldest_s = self._clock.unix_s() - TRASH_S
        query = "DELETE FROM jobs WHERE deleted_unix_s < ?"
        await self._database.write(lambda c: c.execute(query, (oldest_s,)))

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
            before = one_job(connection, "id = ?", key)
            kept = (*before.problems, *problems)[:MAX_PROBLEMS_KEPT]
            connection.execute(
                "UPDATE jobs SET total_rows = total_rows + ?, failed_rows = failed_rows + ?, "
                "num_problems = num_problems + ?, problems = ? WHERE id = ?",
                (len(values), len(problems), len(problems), _problems_json(kept), key),
            )
            return one_job(connection, "id = ?", key)

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
            found = (find_job(connection, "id = ?", key) for key in keys)
            return [job for job in found if job is not None]  # one may be deleted by now

        return await self._database.write(update)

    async def retry_failed(self, key: int) -> Job:
        """Make failed rows pending that can be asked.

        They keep their errors until they have another outcome, so that this can be taken back.
        """

        def update(connection: sqlite3.Connection) -> Job:
            cursor = connection.execute(
                "UPDATE job_rows SET state = 'pending' "
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
            return one_job(connection, "id = ?", key)

        return await self._database.write(update)

    async def leave_failed(self, key: int) -> Job:
        """Let rows that `retry_failed` has made pending, and that still are, have failed."""
        now_s = self._clock.unix_s()

        def update(connection: sqlite3.Connection) -> Job:
            cursor = connection.execute(
                "UPDATE job_rows SET state = 'failed' WHERE job = ? AND state = 'pending' "
                "AND (error_code IS NOT NULL OR answer IS NOT NULL)",
                (key,),
            )
            if not cursor.rowcount:
                raise RequestError(
                    "There is nothing to take back: no row of this job is being asked again."
                )
            connection.execute(
                "UPDATE jobs SET failed_rows = failed_rows + ?, state = ?, reason = '', "
                "ended_unix_s = ? WHERE id = ?",
                (cursor.rowcount, JobState.COMPLETED, now_s, key),
            )
            return one_job(connection, "id = ?", key)

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


def _problems_json(problems: Sequence[JobProblem]) -> str:
    return json.dumps([problem.model_dump() for problem in problems], ensure_ascii=False)
