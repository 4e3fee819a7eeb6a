"""The settings of the engine: one frozen tree, read once, each part given its own branch.

Precedence: command-line arguments, then environment, then `settings.toml`, then the defaults here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from engine.core.errors import ConfigError
from engine.core.generation import MAX_DRAFT_TOKENS, DraftKind, Lossy
from engine.core.kv_room import KvDtype
from engine.core.schedule import WeeklySchedule


class _Branch(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ModelConfig(_Branch):
    """Which model, and how it is computed."""

    source: str = "starter"
    """`starter`, a local directory, or a Hub id."""
    folder: str = ""
    """Where models are kept; empty: the usual place. `SHOAL_MODELS` comes first."""
    proxy: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """For downloads, such as `http://proxy:3128`; empty: what the environment says, else the desktop.
    What goes between peers passes no proxy."""
    ca_file: str = ""
    """Certificates (PEM) that downloads trust beside the system's, such as those of a proxy that looks
    into them."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """`auto`: float32 on a CPU, bfloat16 on CUDA."""
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:[0-9]+)?|GPU-[0-9a-fA-F-]+)$")
    """`auto`, `cpu`, `cuda`, `cuda:1`, or a GPU's UUID as `nvidia-smi -L` shows it."""


class StageEmulation(_Branch):
    """Pretend to hold a large model (see `engine.server.emulation`) or to be slow, for benchmarks."""

    stage_s: float = Field(gt=0)
    """What a pass through the whole stage takes."""
    rows: int = Field(ge=1)
    """Tokens that a pass takes along in that time; more take proportionally longer."""
    computes: bool = False
    """Hold the real model and compute, and wait for what is left of that time."""


class StageConfig(_Branch):
    """What this node gives."""

    enabled: bool = True
    """False: a client only, which holds no blocks."""
    blocks: tuple[int, int] | None = None
    """A fixed span `[start, end)`; None lets the engine choose."""
    max_blocks: int = Field(default=0, ge=0)
    """Hold at most so many; 0: as many as fit."""
    rebalance: bool = True
    """Move to other blocks, where the engine has chosen ours, when the swarm needs them more."""
    kv_budget_bytes: int = Field(default=1 << 30, ge=1 << 20)
    """Room for KV caches where the blocks compute. A GPU's is taken when the stage starts."""
    kv_ram_budget_bytes: int = Field(default=1 << 30, ge=0)
    """Room in RAM for the share of their KV caches that callers want there."""
    kv_dtype: KvDtype = "auto"
    """`auto`: KV caches in the model's dtype; `8bit`: half of bfloat16's room, not lossless."""
    prefix_budget_share: float = Field(default=0.25, ge=0, le=1)
    """How much of `kv_budget_bytes` may keep what has been computed, for prompts that begin alike;
    it is given up as soon as a request needs it."""
    prefix_idle_s: float = Field(default=600.0, gt=0)
    """What nobody has used for so long is forgotten."""
    max_batch_tokens: int = Field(default=512, ge=1, le=65536)
    """Tokens in one forward pass: prefill is cut into chunks of at most this."""
    max_batch_rows: int = Field(default=64, ge=1, le=4096)
    lease_s: float = Field(default=30.0, gt=0)
    """A session dies when its client is silent for this long."""
    replica_budget_bytes: int = Field(default=512 << 20, ge=0)
    """Room for a replica of the draft, where clients verify by probabilities and this is the last
    stage (`draft_mode` disco); taken when one asks for it."""
    kept_budget_bytes: int = Field(default=256 << 20, ge=0)
    """Room for outputs that are kept for a replay, should a later stage be lost."""
    drain_limit_s: float = Field(default=120.0, gt=0)
    """Finish-then-pause waits at most this long."""
    threads: int = Field(default=0, ge=0)
    """Compute threads of the worker; 0: all cores we may use."""
    emulate: StageEmulation | None = None


MIN_RATE_BYTES_PER_S = 16_000
"""Below it, links would seem dead."""

CodecMode = Literal["auto", "raw", "lossless"]


class LinkShape(_Branch):
    """An artificial link, for benchmarks: applied to everything sent to other peers."""

    rate_bytes_per_s: float = Field(default=0.0, ge=0)
    """0: unlimited."""
    delay_s: float = Field(default=0.0, ge=0)
    """One way."""
    ideal_peers: tuple[str, ...] = ()
    """Peers to whom the link stays as it is."""


class LinkFaults(_Branch):
    """Transfers that fail on purpose, for benchmarks: frames of rows that we send to others."""

    fail_rate: float = Field(default=0.0, ge=0, lt=1)
    """Chance of each frame to be lost, and its link to break at that moment."""
    seed: int = 0


class SwarmConfig(_Branch):
    """Links, announcements and time-outs."""

    listen: tuple[str, ...] = ()
    """Multiaddrs to listen on; empty: every IPv4 interface in a swarm, loopback when solo."""
    announce_refresh_s: float = Field(default=20.0, gt=0)
    announce_expiry_s: float = Field(default=60.0, gt=0)
    snapshot_refresh_s: float = Field(default=5.0, gt=0)
    heartbeat_s: float = Field(default=2.0, gt=0)
    dead_after_s: float = Field(default=7.0, gt=0)
    """A link without any sign of life for this long is dead."""
    open_timeout_s: float = Field(default=10.0, gt=0)
    max_clock_offset_s: float = Field(default=2.5, gt=0)
    codec: CodecMode = "auto"
    """How hidden states travel: `auto` encodes them where that is faster; never a bit is lost."""
    reachability: Literal["auto", "direct", "outbound_only"] = "auto"
    """Whether others can connect to this node; `auto`: peers are asked to try."""
    relay_for_others: bool = True
    """Relay for nodes that accept no connections, where we do."""
    metered: Literal["auto", "yes", "no"] = "auto"
    """Whether the connection costs by the byte; then nothing is sent only to measure it. `auto`:
    NetworkManager is asked, where it runs."""
    shape: LinkShape = LinkShape()
    faults: LinkFaults = LinkFaults()


class GuestConfig(_Branch):
    """When the stage yields to the machine's own user; see `engine.policy`."""

    schedule: tuple[str, ...] = ()
    """Hours in which the node gives to its swarm, such as `mon-fri 18:00-08:00` and `sat,sun`;
    empty: always."""
    on_battery: bool = False
    """Give to the swarm while the computer runs on its battery."""
    on_metered: bool = False
    """Give to the swarm over a connection that costs by the byte."""
    user_idle_s: float = Field(default=0.0, ge=0, le=86400)
    """Give to the swarm only when nobody has touched the computer for so long; 0: always."""
    exclusive_programs: tuple[str, ...] = ()
    """The stage yields while one of these programs runs, such as `blender` or `game.exe`."""
    to_games: bool = True
    """The stage yields to GameMode, and to full-screen programs that use the GPU."""
    gpu_free_bytes: int = Field(default=256 << 20, ge=0)
    """The stage yields when less GPU memory than this is free; 0: never."""
    gpu_max_c: float = Field(default=90.0, ge=0, le=120)
    """The stage lets a GPU cool down that is hotter; 0: never."""
    gpu_max_w: float = Field(default=0.0, ge=0, le=10000)
    """The stage computes with pauses, so that the GPU draws no more watts than this on average; 0: as
    much as its driver lets it. The driver's own limit stays as it is."""
    quiet_s: float = Field(default=60.0, ge=0, le=86400)
    """How long a reason to yield must be gone before the stage runs again."""

    @field_validator("schedule")
    @classmethod
    def _check_schedule(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        WeeklySchedule.parse(lines)
        return lines


def _no_crumb(bytes_per_s: float) -> float:
    if 0 < bytes_per_s < MIN_RATE_BYTES_PER_S:
        raise ValueError(f"it must be 0 (unlimited) or at least {MIN_RATE_BYTES_PER_S}")
    return bytes_per_s


Rate = Annotated[float, Field(ge=0), AfterValidator(_no_crumb)]


class LimitsConfig(_Branch):
    """What the node may take of its machine at most; 0: what it finds free."""

    uplink_bytes_per_s: Rate = 0.0
    """For all links together; while it is set, the node does not relay for others."""
    downlink_bytes_per_s: Rate = 0.0
    """The same for what comes in, downloads of models included."""
    gpu_memory_bytes: int = Field(default=0, ge=0)
    """GPU memory for blocks, KV caches and all else."""
    ram_bytes: int = Field(default=0, ge=0)
    """RAM for blocks and KV caches (where a CPU computes), and all else."""
    models_bytes: int = Field(default=0, ge=0)
    """Disk space for models."""
    disk_free_bytes: int = Field(default=1 << 30, ge=0)
    """Downloads leave so much of the disk free."""


class ClientConfig(_Branch):
    """Generating through the swarm."""

    lossy: Lossy = ""
    """Rounding of hidden states to 8 bits that requests allow unless they say otherwise."""

    open_timeout_s: float = Field(default=10.0, gt=0)
    """The longest wait for a stage to let a session in."""
    hold_timeout_s: float = Field(default=2.0, gt=0)
    """A stage that does not answer for this long while a route is repaired counts as lost."""
    step_timeout_s: float = Field(default=60.0, gt=0)
    """The longest wait for the next token before the route is given up."""
    max_attempts: int = Field(default=4, ge=1)
    """Routes tried for one sequence before its error is final."""
    micro_batches: int = Field(default=0, ge=0, le=4096)
    """Into how many parts a batch is cut, to travel one behind the other; 0: as suits the route."""
    reuse_prefixes: bool = True
    """Let stages keep the beginnings of our prompts for a while, so that the next turn of a chat,
    or a batch whose prompts begin alike, computes only what is new."""
    share_prefixes: bool = False
    """Share them with other members. How soon an answer comes then tells what others have asked."""
    room_wait_s: float = Field(default=120.0, ge=0)
    """How long a request waits for KV room, or for somebody to take blocks that a stage has left:
    its announcement lives for a minute, and another one has to load them."""
    kv_offload: float = Field(default=0.0, ge=0, le=1)
    """Share of our sequences' KV caches that the stages shall hold in RAM: their oldest tokens."""
    speculation: DraftKind = "auto"
    """What proposes tokens that the stages verify several at a time: `ngram` looks in prompt and answer
    for what followed when the last tokens came before, `model` asks a small model on this computer, and
    `auto` does either where it pays. The answer is the same with any."""
    draft_tokens: int = Field(default=4, ge=1, le=MAX_DRAFT_TOKENS)
    """The most that are proposed for a round; `auto` decides that itself."""
    draft_place_s: float = Field(default=0.0, ge=0)
    """What each place of a draft model's proposals takes at least, for benchmarks."""
    draft_model: str = ""
    """The model that drafts: the folder of a smaller one of the same family, or of one that `shoal draft
    train` has made; empty: one that is at hand, if there is one."""


class ApiConfig(_Branch):
    """The local API."""

    port: int = Field(default=0, ge=0, le=65535)
    """0: a free one, kept in `engine.json`."""
    max_body_bytes: int = Field(default=32 << 20, ge=1024)
    max_concurrent: int = Field(default=256, ge=1)
    """Generation requests that may run at the same time."""
    ping_every_s: float = Field(default=10.0, gt=0)
    """Event streams say at least this often that they live."""


class UpdatesConfig(_Branch):
    """New versions of Shoal itself."""

    check: bool = True
    """Look once a day whether there is a new version, and say so; nothing is installed unasked."""
    url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """Where the signed list of versions lies; empty: where this build looks."""
    key: str = Field(default="", max_length=64)
    """The public key (base64) that must have signed that list; empty: this build's."""


class Config(_Branch):
    """The whole tree."""

    model: ModelConfig = ModelConfig()
    stage: StageConfig = StageConfig()
    swarm: SwarmConfig = SwarmConfig()
    limits: LimitsConfig = LimitsConfig()
    guest: GuestConfig = GuestConfig()
    client: ClientConfig = ClientConfig()
    api: ApiConfig = ApiConfig()
    updates: UpdatesConfig = UpdatesConfig()


Overrides = Mapping[str, Mapping[str, object]]
"""Branch → field → value, as the command line gives them."""


class SettingInvalid(ConfigError):
    """A setting that does not exist or is out of range.

    Attributes:
        field: Its name, `branch.field`.
    """

    code = "setting_invalid"

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


def load(settings_file: Path, overrides: Overrides | None = None) -> Config:
    """Read the settings file and lay `overrides` (branch → field → value) over it.

    Raises:
        ConfigError: The file is not TOML, or a field is unknown or out of range.
    """
    try:
        text = settings_file.read_text(encoding="utf-8") if settings_file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(settings_file, error) from error
    return parse(text, settings_file, overrides)


def parse(text: str, settings_file: Path, overrides: Overrides | None = None) -> Config:
    """The settings that `text`, the contents of `settings_file`, stands for; see `load`.

    Raises:
        ConfigError: It is not TOML.
        SettingInvalid: A field is unknown or out of range.
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(settings_file, error) from error
    for branch, fields in (overrides or {}).items():
        tree[branch] = {**tree.get(branch, {}), **fields}
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise SettingInvalid(
                f"There is no setting {field}; correct its name or remove it from {settings_file}.",
                field,
            ) from error
        raise SettingInvalid(f"The setting {field} is wrong: {first['msg']}.", field) from error


def _unreadable(settings_file: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"The settings in {settings_file} cannot be read: {error}. Correct or remove the file."
    )
