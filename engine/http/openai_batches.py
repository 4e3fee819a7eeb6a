"""Jobs and files as OpenAI's batch and file objects. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.http.openai_responses import Json
from engine.jobs.files import KEPT_S
from engine.jobs.records import FileRecord, Job
from engine.localapi.jobs import JobState

_STATES: Final = {
    JobState.VALIDATING: "validating",
    JobState.REVIEW: "validating",
    JobState.QUEUED: "in_progress",
    JobState.RUNNING: "in_progress",
    JobState.PAUSED: "in_progress",
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}


def file_json(record: FileRecord) -> Json:
    """OpenAI's file object."""
    return {
        "id": record.id,
        "object": "file",
        "bytes": record.size_bytes,
        "created_at": int(record.created_unix_s),
        "expires_at": None if record.job is not None else int(record.created_unix_s + KEPT_S),
        "filename": record.name,
        "purpose": record.purpose,
        "status": "processed",
    }


def batch_json(job: Job, results: Sequence[FileRecord]) -> Json:
    """OpenAI's batch object. A batch never expires here: it waits for the swarm."""
    output = next((file.id for file in results if not file.has_failures), None)
    errors = next((file.id for file in results if file.has_failures), None)
    ended = _second(job.ended_unix_s)
    return {
        "id": job.id,
        "object": "batch",
        "endpoint": job.spec.endpoint,
        "model": None,
        "errors": _errors(job),
        "input_file_id": job.spec.input_file_id,
        "completion_window": "24h",
        "status": _STATES[job.state],
        "output_file_id": output,
        "error_file_id": errors,
        "created_at": int(job.created_unix_s),
        "in_progress_at": _second(job.started_unix_s),
        "expires_at": None,
        "finalizing_at": ended if job.state is JobState.COMPLETED else None,
        "completed_at": ended if job.state is JobState.COMPLETED else None,
        "failed_at": ended if job.state is JobState.FAILED else None,
        "expired_at": None,
        "cancelling_at": ended if job.state is JobState.CANCELLED else None,
        "cancelled_at": ended if job.state is JobState.CANCELLED else None,
        "request_counts": {
            "total": job.total_rows,
            "completed": job.done_rows,
            "failed": job.failed_rows,
        },
        "usage": {
            "input_tokens": job.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": job.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": job.prompt_tokens + job.completion_tokens,
        },
        "metadata": job.spec.metadata,
    }


def _errors(job: Job) -> Json | None:
    if not job.problems:
        return None
    return {
        "object": "list",
        "data": [
            {
                "code": "invalid_row" if problem.line is not None else "invalid_input_file",
                "line": problem.line,
                "message": problem.message,
                "param": problem.column,
            }
            for problem in job.problems
        ],
    }


def _second(unix_s: float | None) -> int | None:
    return None if unix_s is None else int(unix_s)
