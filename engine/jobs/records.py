"""Jobs and rows as the store keeps them: frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from engine.localapi.jobs import JobFormat, JobProblem, JobState, ResultFormat, RowState

MAX_PROBLEMS_KEPT = 100


class JobSpec(BaseModel):
    """How a job was asked for; it never changes."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    input_path: str | None = None
    input_file_id: str | None = None
    input_name: str
    format: JobFormat | None = None
    template: str | None = None
    system: str | None = None
    parameters: dict[str, Any] = {}
    endpoint: str | None = None
    """OpenAI's batches name the one URL of their rows."""
    metadata: dict[str, str] | None = None
    """Theirs too: returned as it came."""
    output_path: str | None = None
    output_format: ResultFormat = "jsonl"
    skip_bad_rows: bool = False
    max_rows: int


@dataclass(frozen=True, slots=True)
class Job:
    """One job."""

    key: int
    """The store's own number."""
    id: str
    state: JobState
    reason: str
    name: str
    priority: int
    spec: JobSpec
    created_unix_s: float
    started_unix_s: float | None
    ended_unix_s: float | None
    total_rows: int
    done_rows: int
    failed_rows: int
    prompt_tokens: int
    completion_tokens: int
    num_problems: int
    problems: tuple[JobProblem, ...]
    cancelled_from: JobState | None = None
    """The state before it was cancelled."""

    @property
    def left_rows(self) -> int:
        """Rows without answer or error."""
        return self.total_rows - self.done_rows - self.failed_rows


@dataclass(frozen=True, slots=True)
class Row:
    """One row, with all its texts."""

    job: int
    number: int
    line: int
    custom_id: str
    url: str
    body: str | None
    """JSON."""
    columns: str
    """JSON object."""
    state: RowState
    status: int | None = None
    answer: str | None = None
    """JSON."""
    error_code: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row."""

    job: int
    number: int
    status: int | None
    """Of the answer, as HTTP has it; None: there was none."""
    answer: str | None
    """JSON body of the answer, or of its error."""
    error_code: str | None = None
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def state(self) -> RowState:
        """Done, or failed."""
        return RowState.DONE if self.status == 200 else RowState.FAILED


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of `/v1/files`."""

    id: str
    name: str
    purpose: str
    size_bytes: int
    created_unix_s: float
    job: int | None = None
    has_failures: bool = False
