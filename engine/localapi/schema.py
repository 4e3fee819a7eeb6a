"""Values of `/shoal/v1`: what the engine tells the tray, the commands and scripts.

Requests refuse unknown keys; answers may grow, so readers ignore what they do not know. The
OpenAI-compatible side (`/v1`) has its own rules and lives in `engine.http.openai_requests`.

Endpoints (all under `http://127.0.0.1:PORT`, header `Authorization: Bearer TOKEN`):

| call | body → answer |
|---|---|
| `GET /shoal/v1/status` | → `EngineStatus` |
| `GET /shoal/v1/events[?lease=1]` | → server-sent events; each `data:` line is one `EngineEvent`. The first is the present status. With `lease=1` an engine that was started `--leased` ends when the last such stream has closed. |
| `POST /shoal/v1/pause` | `PauseRequest` → `EngineStatus` |
| `POST /shoal/v1/resume` | → `EngineStatus` |
| `POST /shoal/v1/quit` | → `{}`; the engine ends, its children with it |
| `GET /shoal/v1/swarm` | → `SwarmInfo` |
| `POST /shoal/v1/swarm/create` | `SwarmCreateRequest` → `SwarmInfo` |
| `POST /shoal/v1/swarm/join` | `SwarmJoinRequest` → `SwarmInfo` |
| `POST /shoal/v1/swarm/leave` | → `SwarmInfo` |
| `GET /shoal/v1/measurements` | → `Measurements`: what was measured of this machine last |
| `POST /shoal/v1/measurements` | `MeasureRequest` → `NetworkMeasurement`: lines to other members, measured now |

Errors have OpenAI's shape on every endpoint: `{"error": {"message", "type", "param", "code"}}`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engine.core.reach import LinkPath, Reach
from engine.core.sentences import Sentence
from engine.localapi.measurements import MeasuredProfile
from engine.localapi.said import Said, said
from engine.localapi.updates import UpdateInfo


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EngineState(StrEnum):
    """The engine in one word; the tray has an icon for each."""

    STARTING = "starting"
    """Fetching, converting or loading the model, or joining the swarm; see `progress`."""
    SERVING = "serving"
    """The stage is announced and some session is running through it."""
    IDLE = "idle"
    """The stage is announced and waits for work."""
    DRAINING = "draining"
    """No new sessions; running ones finish, then the engine pauses."""
    PAUSED = "paused"
    """The person has paused it: the worker is gone and nothing is announced."""
    YIELDING = "yielding"
    """The same, for the machine's own user, by the rules in the settings; it ends by itself."""
    OFFLINE = "offline"
    """The swarm cannot be reached; the engine keeps trying."""
    ERROR = "error"
    """The stage cannot run; `reason` says what to do."""


PauseScope = Literal["stage", "everything"]
"""The stage alone, so that own requests and relaying go on, or all traffic."""


ProgressUnit = Literal["bytes", "tensors", "blocks", ""]


class Progress(_Answer):
    """Work that takes a while."""

    what: str
    """A short phrase: `Downloading SmolLM2-135M-Instruct`."""
    said: tuple[Said, ...] = ()
    """The same for other languages; empty: there is only English."""
    done: float
    total: float
    """0 when the end is not known."""
    unit: ProgressUnit = ""

    @classmethod
    def of(cls, what: Sentence, done: float, total: float, unit: ProgressUnit = "") -> Self:
        """Progress with a phrase for every language."""
        return cls(what=what, said=said(what), done=done, total=total, unit=unit)


class PipelineStage(_Answer):
    """Blocks of one node."""

    peer: str
    start: int
    end: int
    is_self: bool


class TokenPart(_Answer):
    """What a token spends time on: a stage's blocks, or the way from one stage to the next."""

    peer: str
    to: str | None = None
    """Where the way leads; None: the peer computes."""
    time_ms: float
    is_measured: bool = True
    """False: nobody has measured this way yet, and the time is assumed."""


class LinkStatus(_Answer):
    """A link to another node that works now."""

    peer: str
    path: LinkPath
    relay: str | None = None
    """The peer that relays it."""
    rtt_ms: float
    """Round trip, median of the last few."""
    bandwidth_bytes_per_s: float | None = None
    """As the other has measured it on what this node sends; None while unknown."""
    sent_bytes: int
    """Hidden states and tokens sent to it since the engine started."""


class EngineStatus(_Answer):
    """All that the tray, the dashboard and `shoal status` show."""

    state: EngineState
    reason: str = ""
    """One sentence for a person; empty while serving or idle."""
    reason_said: tuple[Said, ...] = ()
    """The same for other languages; empty: there is only English."""
    until: float | None = None
    """Unix time at which the state ends by itself, as far as that is known."""
    paused: PauseScope | None = None
    """What the person has paused, also while it drains."""
    yielding_to: str | None = None
    """Why the engine yields, in one word (`engine.policy.causes.Kind`)."""
    notices: tuple[str, ...] = ()
    """What the person should know of this start, a sentence each: a damaged file was put aside."""
    span: tuple[int, int] | None = None
    """Blocks `[start, end)` that this node holds."""
    model: str | None = None
    num_blocks: int | None = None
    peers: int = 0
    """Other nodes of the swarm seen alive."""
    sessions: int = 0
    """Sequences that pass through this stage now."""
    tokens_served: int = 0
    """Tokens that this stage has computed since the engine started."""
    tokens_used: int = 0
    """Tokens that local requests have received since the engine started."""
    plan: tuple[PipelineStage, ...] = ()
    """Who holds what of the pipeline that a request would take now, in order."""
    spares: tuple[PipelineStage, ...] = ()
    """Stages beside it, with all that they hold."""
    token_parts: tuple[TokenPart, ...] = ()
    """What a token of that pipeline takes, in order, back to the first stage; empty while unknown."""
    bottleneck: str = ""
    """What a token of that pipeline spends most of its time on, as a sentence; empty while unknown."""
    bottleneck_measured: bool | None = None
    """False: that sentence counts a way between two stages with an assumed time, because nobody has
    measured it yet; None while there is no sentence."""
    span_reason: str = ""
    """Why this node holds the blocks that it holds, as a sentence."""
    span_reason_said: tuple[Said, ...] = ()
    links: tuple[LinkStatus, ...] = ()
    reachability: Reach | None = None
    """Whether others can connect to this node; None while it belongs to no swarm."""
    relays: int = 0
    """Relays that hold a slot for this node."""
    relays_for_others: bool = False
    """Whether nodes that accept no connections may count on this one as a relay."""
    swarm: str | None = None
    """The swarm's name; None when solo."""
    private: bool = False
    peer_id: str | None = None
    progress: Progress | None = None
    version: str
    api_url: str
    update: UpdateInfo | None = None
    """New versions of Shoal; None: an engine that knows nothing of them."""
    worker_pid: int | None = None
    worker_rss_bytes: int = 0
    kv_total_tokens: int = 0
    kv_free_tokens: int = 0
    kv_ram_total_tokens: int = 0
    kv_ram_free_tokens: int = 0
    dropped_records: int = 0
    clock_offset_s: float | None = None
    """Our clock minus the swarm's median; None when no peer has told."""
    leased: bool = False
    """Whether the engine ends when its last lease closes; a service does not."""
    awaits_setup: bool = False
    """Nothing is fetched, held or announced before a person has said how Shoal shall begin: with
    `POST /shoal/v1/setup`, or by joining or founding a swarm."""
    can_chat: bool = False
    """Whether the known stages cover the whole model, so that a request would find a route."""


class EngineEvent(_Answer):
    """One message of the event stream."""

    kind: Literal["status", "ping"]
    status: EngineStatus | None = None


class PauseRequest(_Request):
    """Pause. Without `seconds` and `until_tomorrow` only the person resumes."""

    scope: PauseScope = "stage"
    finish_first: bool = False
    """Let running sessions end (up to the engine's limit) before the worker goes."""
    seconds: float | None = Field(default=None, gt=0, le=366 * 86400)
    """Resume by itself after this long."""
    until_tomorrow: bool = False
    """Resume by itself at 6 in the morning."""

    @model_validator(mode="after")
    def _check_end(self) -> Self:
        if self.seconds is not None and self.until_tomorrow:
            raise ValueError("seconds and until_tomorrow contradict each other")
        return self


class SwarmCreateRequest(_Request):
    """Found a swarm with this engine as its first bootstrap."""

    name: str = Field(min_length=1, max_length=64)
    private: bool = False


class SwarmJoinRequest(_Request):
    """Join the swarm of an invite."""

    invite: str = Field(min_length=1, max_length=8192)
    """`shoal://…` text; the caller reads `.shoal` files."""


class SwarmInfo(_Answer):
    """The swarm this engine belongs to."""

    name: str | None
    private: bool = False
    model: str | None = None
    invite: str | None = None
    """For handing on; None when solo."""
    bootstrap: tuple[str, ...] = ()


class MeasureRequest(_Request):
    """Measure the lines to some other members."""

    quick: bool = False
    on_metered: bool = False
    """Even where the connection costs by the byte."""


class Measurements(_Answer):
    """What is known of this machine."""

    profile: MeasuredProfile | None
    """None: nothing, or it was measured on other hardware."""


class ApiErrorBody(_Answer):
    """OpenAI's error object."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ApiError(_Answer):
    """OpenAI's error envelope."""

    error: ApiErrorBody


class ReadyFile(_Answer):
    """What `--ready-fd`/`--ready-file` and `SHOAL_HOME/state/engine.json` say of a running engine."""

    url: str
    token_file: str
    token: str | None = Field(default=None, repr=False)
    """What stands in that file; said over `--ready-fd` alone, to a parent that may not be able to read
    it: on Windows the engine's files are inside WSL."""
    pid: int
    process_start: int | None = None
    """When the process began, as the system counts; tells it from a later one of the same number."""
