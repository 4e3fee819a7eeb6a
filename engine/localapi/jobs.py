"""Values of `/shoal/v1/jobs`: batches of requests that the engine works through, row by row.

Endpoints (the same header, errors and rules as in `engine.localapi.schema`):

| call | body → answer |
|---|---|
| `POST /shoal/v1/jobs/preview` | `JobPreviewRequest` → `JobPreview`: the first rows as they would be asked |
| `POST /shoal/v1/jobs` | `JobCreateRequest` → `JobInfo`, at first `validating`. With the output file of a job that has not ended, that job goes on, if it is of the same input |
| `GET /shoal/v1/jobs` | → `JobList`, newest first |
| `GET /shoal/v1/jobs/events` | → server-sent events; each `data:` line is one `JobEvent`. The first has all jobs, later ones those that changed, at most twice a second |
| `GET /shoal/v1/jobs/{id}` | → `JobInfo` |
| `POST /shoal/v1/jobs/{id}` | `JobChangeRequest` → `JobInfo` |
| `DELETE /shoal/v1/jobs/{id}` | → `{}`; its rows and answers with it, not its output file. It lies in the trash for a day |
| `POST /shoal/v1/jobs/{id}/restore` | → `JobInfo`; out of the trash |
| `POST /shoal/v1/jobs/{id}/start` | → `JobInfo`; from `review`: the bad rows become error rows |
| `POST /shoal/v1/jobs/{id}/pause` | → `JobInfo`; rows that are being answered are finished |
| `POST /shoal/v1/jobs/{id}/resume` | → `JobInfo` |
| `POST /shoal/v1/jobs/{id}/cancel` | → `JobInfo`; answers so far stay |
| `POST /shoal/v1/jobs/{id}/uncancel` | → `JobInfo`; a cancelled one goes on where it was |
| `POST /shoal/v1/jobs/{id}/retry` | → `JobInfo`; failed rows are asked again |
| `POST /shoal/v1/jobs/{id}/unretry` | → `JobInfo`; those that are not answered yet keep their errors |
| `GET /shoal/v1/jobs/{id}/rows?after=-1&limit=100&state=failed&chars=200` | → `JobRows`: a page in input order; all of the query is optional |
| `GET /shoal/v1/jobs/{id}/results?format=jsonl` | → the results so far (`jsonl`, `csv`), in input order |

OpenAI's `/v1/files` and `/v1/batches` work on the same jobs: a batch's id is its job's id.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from engine.localapi.said import Said, said

JobFormat = Literal["jsonl", "csv", "txt"]
ResultFormat = Literal["jsonl", "csv"]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class JobState(StrEnum):
    """A job in one word."""

    VALIDATING = "validating"
    """Its input is being read and checked."""
    REVIEW = "review"
    """Some rows cannot be asked; `start` goes ahead without them, `cancel` does not."""
    QUEUED = "queued"
    """No row has been asked yet."""
    RUNNING = "running"
    """See `reason` for what it waits for, if it waits."""
    PAUSED = "paused"
    COMPLETED = "completed"
    """Every row has its answer or its error."""
    FAILED = "failed"
    """The input cannot be used at all; see `problems`."""
    CANCELLED = "cancelled"


PAUSED_BY_PERSON = "Paused until you resume."
"""The reason of a job that no trouble has paused."""
ENDED_STATES = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class RowState(StrEnum):
    """A row in one word."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class JobProblem(_Answer):
    """Why a row, or the whole input, cannot be used."""

    line: int | None = None
    """Counted from 1; None: about the whole."""
    column: str | None = None
    message: str
    """One sentence: what is wrong, what to do."""
    said: tuple[Said, ...] = ()
    """The same for other languages; empty: there is only English."""

    @classmethod
    def of(cls, message: str, *, line: int | None = None, column: str | None = None) -> Self:
        """A problem that is said in every language, if `message` is a `Sentence`."""
        return cls(line=line, column=column, message=message, said=said(message))


class JobInput(_Request):
    """Where rows come from and how they become requests."""

    input_path: str | None = Field(default=None, min_length=1, max_length=4096)
    """Absolute, on the engine's machine. Either this or `input_file_id`."""
    input_file_id: str | None = Field(default=None, min_length=1, max_length=64)
    """Of `POST /v1/files`."""
    format: JobFormat | None = None
    """None: by the file's ending, else its contents."""
    template: str | None = Field(default=None, max_length=1 << 20)
    """The prompt, with `{column}` where a row's values go; `{{` and `}}` for braces. Text files have
    one column, `line`. Without a template a table needs a column `prompt`."""
    system: str | None = Field(default=None, max_length=1 << 20)
    """Instructions for the model, before each prompt."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Fields of every request, such as `temperature` or `max_tokens`; a row's own come first."""


class JobPreviewRequest(JobInput):
    """See the first rows."""

    rows: int = Field(default=20, ge=1, le=200)


class JobCreateRequest(JobInput):
    """Begin a job."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    """None: the input's name."""
    output_path: str | None = Field(default=None, min_length=1, max_length=4096)
    """Results go there, in input order, while the job runs. None: they are only kept."""
    output_format: ResultFormat | None = None
    """None: by the file's ending."""
    overwrite: bool = False
    """Replace a file that is there."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Rows of jobs with a higher one come first."""
    skip_bad_rows: bool = False
    """Rows that cannot be asked become error rows at once, instead of the job waiting in `review`."""


class JobChangeRequest(_Request):
    """Change a job."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    priority: int | None = Field(default=None, ge=-100, le=100)


class PreviewRow(_Answer):
    """One row as it would be asked."""

    line: int
    values: tuple[str, ...] = ()
    """In the order of the columns; empty for rows that are whole requests."""
    request: dict[str, Any] | None = None
    """Body of the request; None when there is a problem, of the row or of the whole."""
    problem: JobProblem | None = None


class JobPreview(_Answer):
    """The first rows."""

    format: JobFormat
    encoding: str
    delimiter: str | None = None
    """Of a table."""
    columns: tuple[str, ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    problem: JobProblem | None = None
    """Why nothing can be asked yet: what is wrong with the template, or that there is none."""


class JobInfo(_Answer):
    """One job."""

    id: str
    name: str
    state: JobState
    reason: str = ""
    """Why it waits, has paused or has failed, as a sentence; often empty."""
    priority: int = 0
    input_name: str
    output_path: str | None = None
    created_at: float
    """Unix seconds, as all times here."""
    started_at: float | None = None
    ended_at: float | None = None
    total_rows: int = 0
    """While validating: those read so far."""
    done_rows: int = 0
    failed_rows: int = 0
    running_rows: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens_per_s: float = 0.0
    """Over the last seconds; 0 when it does not run."""
    eta_low_s: float | None = None
    """It will take at least about this long yet; None while unknown."""
    eta_high_s: float | None = None
    num_problems: int = 0
    problems: tuple[JobProblem, ...] = ()
    """The first hundred."""


class JobList(_Answer):
    """All jobs."""

    jobs: tuple[JobInfo, ...]


class JobEvent(_Answer):
    """One message of the jobs' event stream."""

    kind: Literal["jobs", "ping"]
    jobs: tuple[JobInfo, ...] = ()
    deleted: tuple[str, ...] = ()
    """Ids of jobs that are gone."""


class JobRow(_Answer):
    """One row; long texts are cut."""

    number: int
    """Counted from 0, in input order."""
    line: int
    custom_id: str
    state: RowState
    prompt: str
    answer: str | None = None
    error: str | None = None


class JobRows(_Answer):
    """A page of rows."""

    rows: tuple[JobRow, ...]
    next_after: int | None = None
    """For the next page; None: there is none."""
