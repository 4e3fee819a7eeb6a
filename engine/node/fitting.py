"""What this machine holds of a model: how many blocks fit, and the orders to load them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from engine.config import StageConfig
from engine.core.plans import Span
from engine.core.profiles import ModelSize
from engine.models.layout import ModelFiles
from engine.node.compute import Compute
from engine.protocol.frames import ELEMENT_BYTES, Dtype
from engine.server.replica_order import ReplicaOrder
from engine.server.worker_process import LoadOrder


@dataclass(frozen=True, slots=True)
class Fitting:
    """One model on this machine."""

    files: ModelFiles
    config: StageConfig
    compute: Compute

    @property
    def fixed_span(self) -> Span | None:
        """The blocks that the settings name; None: we choose."""
        if self.config.blocks is None:
            return None
        start, end = self.config.blocks
        return Span(start, min(end, self.files.spec.num_hidden_layers))

    @property
    def max_blocks(self) -> int:
        """Blocks that fit."""
        return self.compute.max_blocks(self.files.spec, self.config)

    @property
    def size(self) -> ModelSize:
        """The model's, in the elements that it is computed in."""
        return ModelSize.of(self.files.spec, ELEMENT_BYTES[self.compute.dtype])

    async def has_room(self, num_blocks: int) -> bool:
        """Whether so many more fit now."""
        return await asyncio.to_thread(
            self.compute.has_room, self.files.spec, self.config, num_blocks
        )

    def order(self, span: Span) -> LoadOrder:
        """How to load these blocks."""
        spec, config = self.files.spec, self.config
        # The sender of hidden states may compute in float32 though we do not.
        widest = ELEMENT_BYTES[Dtype.FLOAT32]
        return LoadOrder(
            directory=self.files.directory,
            spec=spec,
            span=span,
            dtype=self.compute.dtype,
            device=self.compute.device,
            gpu_uuid=self.compute.gpu_uuid,
            threads=config.threads,
            region_bytes=config.max_batch_tokens * spec.hidden_size * widest,
            kv_dtype=config.kv_dtype,
            kv_budget_bytes=config.kv_budget_bytes,
            emulate=config.emulate,
            replica=ReplicaOrder.find(spec, config.replica_budget_bytes),
        )
