"""Setting a node up: what it would hold, measured and planned before anything is fetched.

| call | body → answer |
|---|---|
| `POST /shoal/v1/plan/preview` | `PreviewRequest` → `PlanPreview`: what the node would hold under other settings |
| `POST /shoal/v1/measurements/machine` | `MachineRequest` → `Measurements`: measured now; `EngineStatus.progress` tells how far it is, closing the connection ends it |
| `POST /shoal/v1/setup` | → `EngineStatus`: begin alone, with the settings as they are |
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from engine.localapi.said import Said


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MachineRequest(_Request):
    """Measure this machine."""

    quick: bool = True
    """In seconds, with wider spreads."""


class PreviewRequest(_Request):
    """Ask what other settings would lead to; nothing is changed by it."""

    values: dict[str, Any] = Field(default_factory=dict, max_length=50)
    """Settings by name, `branch.field`; None: the default."""
    invite: str = Field(default="", max_length=8192)
    """In the swarm of this invite (`shoal://…`); empty: where the node is now."""


class PlanPreview(_Answer):
    """What the node would hold."""

    model: str
    num_blocks: int | None
    """Of the whole model; None: its sizes are not known on this computer yet."""
    span: tuple[int, int] | None
    """Blocks `[start, end)`; None: nothing can be held, or nothing can be said yet."""
    reason: str
    """Why these, or why none, as a sentence."""
    reason_said: tuple[Said, ...] = ()
    """The same for other languages; empty: there is only English."""
    is_certain: bool
    """Whether it holds them from the start: a swarm that nobody has looked at yet decides itself."""
    on_gpu: bool
    device: str
    """The processor or GPU, by name."""
    memory_bytes: int
    """That blocks, KV caches and Shoal itself take there."""
    memory_free_bytes: int
    memory_total_bytes: int
    token_bytes: int
    """Of hidden states, which leave a node for each token that is passed on."""
    tokens_per_s: float | None = None
    """The planner's estimate for one chat on this machine alone; None: not measured, or not all
    blocks are here."""
