"""What the routes need of the engine; `engine.node.Node` is it, tests have a small one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from engine.core.generation import Lossy, PrefixUse, SpeculationWish, TokenEvent
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.localapi.measurements import NetworkMeasurement
from engine.localapi.schema import (
    EngineStatus,
    Measurements,
    MeasureRequest,
    PauseRequest,
    SwarmCreateRequest,
    SwarmInfo,
    SwarmJoinRequest,
)
from engine.models.tokenizer import ChatTokenizer


class Backend(Protocol):
    """The engine as the API sees it. All errors are `EngineError`s."""

    def status(self) -> EngineStatus:
        """The present state."""
        ...

    def watch(self) -> AsyncIterator[EngineStatus]:
        """The present state, then each change (coalesced), until closed."""
        ...

    def lease_opened(self) -> None:
        """A client that owns this engine's life has connected its event stream."""
        ...

    def lease_closed(self) -> None:
        """It is gone; a `--leased` engine ends when none is left."""
        ...

    async def pause(self, request: PauseRequest) -> None:
        """Pause the stage; returns when the worker is gone or draining has begun."""
        ...

    async def resume(self) -> None:
        """Start serving again; returns at once, the status tells how it goes."""
        ...

    def quit(self) -> None:
        """Begin to end the engine."""
        ...

    def swarm_info(self) -> SwarmInfo:
        """The swarm we belong to."""
        ...

    async def swarm_create(self, request: SwarmCreateRequest) -> SwarmInfo:
        """Found a swarm; returns once it can be joined."""
        ...

    async def swarm_join(self, request: SwarmJoinRequest) -> SwarmInfo:
        """Join a swarm. An invite that cannot be used changes nothing."""
        ...

    async def swarm_leave(self) -> SwarmInfo:
        """Go back to solo."""
        ...

    async def measurements(self) -> Measurements:
        """What was measured of this machine last."""
        ...

    async def measure_network(self, request: MeasureRequest) -> NetworkMeasurement:
        """Measure the lines to other members; closing the connection ends it."""
        ...

    def model(self) -> tuple[ModelSpec, ChatTokenizer]:
        """The model that requests run on.

        Raises:
            EngineError: It is not ready; the text says what is going on.
        """
        ...

    def free_kv_tokens(self) -> int | None:
        """KV room that is free along the way a request would take now; None: there is no way."""
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        params: Sequence[SamplingParams],
        prefixes: PrefixUse | None = None,
        lossy: Lossy | None = None,
        speculation: SpeculationWish | None = None,
    ) -> AsyncIterator[tuple[int, TokenEvent]]:
        """Continue the prompts as one batch: (index of the sequence, its next token).

        `prefixes` says what may be taken over and left behind, `lossy` how hidden states may be
        rounded, `speculation` what drafts; None leaves it to the settings.
        Ends when every sequence has finished; closing the iterator frees their sessions at once.

        Raises:
            EngineError: No route, no room, or every attempt failed.
        """
        ...
