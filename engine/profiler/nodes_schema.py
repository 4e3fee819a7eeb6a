"""The fields of `NODES.json`, each with its limits: what is absurd never reaches the planner."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)

from engine.core.ids import PeerId
from engine.core.profiles import (
    BlockTimes,
    Calibration,
    Drafting,
    Goal,
    LinearTime,
    ModelSize,
    NodeProfile,
    Objective,
)
from engine.localapi.measurements import Limits, MeasuredProfile

MAX_NODES: Final = 1000
TAGS: Final = frozenset({"plain", "measured", "number", "matrix", "text", "named", "numbers"})
"""What pydantic adds to a field's place, and no person has written."""
_LONGEST_S: Final = 100.0
_MOST_BYTES: Final = 1 << 50
_FASTEST_BYTES_PER_S: Final = 1e15
_MOST_ROWS: Final = 1 << 16


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


def _plain(*units: str) -> BeforeValidator:
    """Takes a measured value for a plain number of the same unit, the first unless it says another."""

    def unwrap(value: object) -> object:
        if not isinstance(value, dict):
            return value
        unknown = set(value) - {"value", "spread", "unit"}
        if unknown or "value" not in value:
            raise ValueError('it must be a number or {"value", "spread", "unit"}')
        if value.get("unit", units[0]) not in units:
            raise ValueError(f"its unit must be {' or '.join(units)}, not {value['unit']}")
        return value["value"]

    return BeforeValidator(unwrap)


_Seconds = Annotated[float, Field(ge=0, le=_LONGEST_S, allow_inf_nan=False), _plain("s")]
_SignedSeconds = Annotated[
    float, Field(ge=-_LONGEST_S, le=_LONGEST_S, allow_inf_nan=False), _plain("s")
]
_SecondsPerUnit = Annotated[
    float,
    Field(ge=0, le=_LONGEST_S, allow_inf_nan=False),
    _plain("s", "s/row", "s/row/token", "s/B"),
]
_Bytes = Annotated[float, Field(ge=0, le=_MOST_BYTES, allow_inf_nan=False), _plain("B")]
_Rate = Annotated[float, Field(gt=0, le=_FASTEST_BYTES_PER_S, allow_inf_nan=False), _plain("B/s")]
_Speed = Annotated[float, Field(ge=0, le=_FASTEST_BYTES_PER_S, allow_inf_nan=False), _plain("B/s")]
_Watts = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), _plain("W")]
_Euros = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), _plain("EUR/h")]


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("it must be one line without control characters")
    return name


_Name = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
_Tokens = Annotated[int, Field(ge=0, le=10**8)]


class _Linear(_Strict):
    base_s: _Seconds
    unit_s: _SecondsPerUnit

    def value(self) -> LinearTime:
        return LinearTime(self.base_s, self.unit_s)


class _Block(_Strict):
    mlp: _Linear
    attention: _Linear
    ram_attention: _Linear | None = None
    prefill_row_s: _SecondsPerUnit


def _rate(bytes_per_s: float | None) -> float:
    return math.inf if bytes_per_s is None else bytes_per_s


class PlainNode(_Strict):
    """`core.profiles.NodeProfile`, in numbers."""

    peer: _Name
    block: _Block
    head: _Linear
    pass_overhead_s: _Seconds
    memory_bytes: _Bytes
    ram_bytes: _Bytes = 0.0
    uplink_bytes_per_s: _Rate | None
    downlink_bytes_per_s: _Rate | None
    encode_bytes_per_s: _Speed = 0.0
    decode_bytes_per_s: _Speed = 0.0
    power_w: _Watts = 0.0
    euro_per_hour: _Euros = 0.0
    frame: _Linear = _Linear(base_s=0.0, unit_s=0.0)
    frame_shares_cores: bool = True

    def profile(self, peer: PeerId, model: ModelSize) -> NodeProfile:
        """For one model, under the name that it has in the plan."""
        del model  # these numbers were given for it
        block = self.block
        return NodeProfile(
            peer,
            BlockTimes(
                block.mlp.value(),
                block.attention.value(),
                None if block.ram_attention is None else block.ram_attention.value(),
                block.prefill_row_s,
            ),
            self.head.value(),
            self.pass_overhead_s,
            int(self.memory_bytes),
            int(self.ram_bytes),
            _rate(self.uplink_bytes_per_s),
            _rate(self.downlink_bytes_per_s),
            self.encode_bytes_per_s,
            self.decode_bytes_per_s,
            self.power_w,
            self.euro_per_hour,
            self.frame.value(),
            self.frame_shares_cores,
        )


class _NodeLimits(_Strict):
    """What the volunteer gives of a measured machine."""

    memory_bytes: _Bytes | None = None
    ram_bytes: _Bytes | None = None
    uplink_bytes_per_s: _Rate | None = None
    downlink_bytes_per_s: _Rate | None = None
    euro_per_hour: _Euros = 0.0


class MeasuredNode(MeasuredProfile):
    """What `shoal measure --json` prints, with a name and what its volunteer gives."""

    peer: _Name = ""
    limits: _NodeLimits = _NodeLimits()

    def profile(self, peer: PeerId, model: ModelSize) -> NodeProfile:
        """For one model, under the name that it has in the plan."""
        limits = self.limits
        return self.node_profile(
            peer,
            model,
            Limits(
                None if limits.memory_bytes is None else int(limits.memory_bytes),
                None if limits.ram_bytes is None else int(limits.ram_bytes),
                _rate(limits.uplink_bytes_per_s),
                _rate(limits.downlink_bytes_per_s),
                limits.euro_per_hour,
            ),
        )


def _kind(node: object) -> str:
    return "measured" if isinstance(node, dict) and node.get("kind") == "measured" else "plain"


_Node: TypeAlias = Annotated[
    Annotated[PlainNode, Tag("plain")] | Annotated[MeasuredNode, Tag("measured")],
    Discriminator(_kind),
]
_Delay = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]


def _shape(value: object) -> str:
    return "matrix" if isinstance(value, list | tuple) else "number"


class Network(_Strict):
    """Lines between machines, per direction: one value for all of them, or rows and columns."""

    peers: tuple[_Name, ...] | None = None
    """What the rows and columns stand for; None: the nodes in their order."""
    delay_s: Annotated[
        Annotated[_Delay, Tag("number")]
        | Annotated[tuple[tuple[_Delay | None, ...], ...], Tag("matrix")],
        Discriminator(_shape),
    ]
    bytes_per_s: Annotated[
        Annotated[_Rate | None, Tag("number")]
        | Annotated[tuple[tuple[_Rate | None, ...], ...], Tag("matrix")],
        Discriminator(_shape),
    ] = None


class ModelNumbers(_Strict):
    """`core.profiles.ModelSize`."""

    num_blocks: int = Field(ge=1, le=1000)
    hidden_size: int = Field(ge=1, le=1 << 20)
    element_bytes: Literal[1, 2, 4, 8]
    block_bytes: _Bytes
    embedding_bytes: _Bytes
    head_bytes: _Bytes
    kv_bytes_per_token: _Bytes
    ties_ends: bool = False

    def size(self) -> ModelSize:
        """As the planner takes it."""
        return ModelSize(
            self.num_blocks,
            self.hidden_size,
            self.element_bytes,
            int(self.block_bytes),
            int(self.embedding_bytes),
            int(self.head_bytes),
            int(self.kv_bytes_per_token),
            self.ties_ends,
        )


class NamedModel(_Strict):
    """A model whose files are here, and how wide it is computed."""

    name: _Name
    element_bytes: Literal[1, 2, 4, 8] | None = None


class _Drafting(_Strict):
    draft_s: _Seconds
    committed_tokens: tuple[
        tuple[Annotated[int, Field(ge=1, le=1024)], Annotated[float, Field(ge=1, le=1025)]], ...
    ] = Field(min_length=1, max_length=16)
    pruned: tuple[
        tuple[
            Annotated[float, Field(gt=0, lt=1)],
            Annotated[float, Field(ge=0, le=1)],
            Annotated[float, Field(ge=0, le=1)],
        ],
        ...,
    ] = Field(default=(), max_length=16)


class ObjectiveFields(_Strict):
    """`core.profiles.Objective`."""

    goal: Goal = Goal.THROUGHPUT
    batch_size: int = Field(default=0, ge=0, le=_MOST_ROWS)
    max_batch_size: int = Field(default=512, ge=1, le=_MOST_ROWS)
    num_microbatches: int = Field(default=0, ge=0, le=_MOST_ROWS)
    prompt_tokens: _Tokens = 128
    new_tokens: Annotated[int, Field(ge=1, le=10**8)] = 128
    context_tokens: _Tokens = 2048
    codec_ratio: Annotated[float, Field(gt=0, le=2, allow_inf_nan=False)] = 1.0
    counts_prompts: bool = True
    drafting: _Drafting | None = None

    def value(self) -> Objective:
        """As the planner takes it."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        if self.drafting is not None:
            drafting = self.drafting
            fields["drafting"] = Drafting(
                drafting.draft_s, tuple(sorted(drafting.committed_tokens)), drafting.pruned
            )
        return Objective(**fields)


class CalibrationFields(_Strict):
    """`core.profiles.Calibration`."""

    step_overhead_s: _SignedSeconds = 0.0
    micro_batch_overhead_s: _Seconds = 0.0

    def value(self) -> Calibration:
        """As the planner takes it."""
        return Calibration(self.step_overhead_s, self.micro_batch_overhead_s)


def _model_kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    return "named" if isinstance(value, dict) and "name" in value else "numbers"


class NodesDocument(_Strict):
    """The whole file."""

    model: Annotated[
        Annotated[_Name, Tag("text")]
        | Annotated[NamedModel, Tag("named")]
        | Annotated[ModelNumbers, Tag("numbers")],
        Discriminator(_model_kind),
    ]
    nodes: tuple[_Node, ...] = Field(min_length=1, max_length=MAX_NODES)
    network: Network | None = None
    objective: ObjectiveFields = ObjectiveFields()
    calibration: CalibrationFields = CalibrationFields()
    me: _Name | None = None
