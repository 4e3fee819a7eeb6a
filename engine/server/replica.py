"""The last stage's replica of the draft that clients draw from, for DISCO ([DC]).

One model serves all sessions; each that has had a token refused has room in it for its sequence, while
the budget allows. It computes in float32 on the CPU whatever the stage computes in, as the clients do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from engine.core.errors import EngineError
from engine.core.generation import ReplicaUse
from engine.core.ids import SessionId
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.rejection import TwoBytes, replica_agrees
from engine.server.replica_order import ReplicaOrder, weights_bytes_of
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_model import DraftModel
from engine.speculation.sampled_chain import ChainSampler

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sequence:
    sampler: ChainSampler
    room_bytes: int


@dataclass(slots=True)
class Replica:
    """Loaded when it is first needed; then it stays.

    Args:
        order: Which draft, and how much memory it may take.
        directory: The target's files, which have its embedding and head.
        spec: The target.
    """

    order: ReplicaOrder
    directory: Path
    spec: ModelSpec
    use: ReplicaUse = field(default_factory=ReplicaUse)
    """Since somebody has looked."""
    _model: DraftModel | None = None
    _has_failed: bool = False
    _used_bytes: int = 0
    _sequences: dict[SessionId, _Sequence] = field(default_factory=dict)

    def holds(self, sha256: str) -> bool:
        """Whether this is a replica of that draft."""
        return bool(sha256) and not self.order.refusal(sha256)

    def weights_after(
        self,
        session: SessionId,
        ids: Sequence[int],
        params: SamplingParams,
        prompt_tokens: int,
        capacity_tokens: int,
        path: Sequence[int],
        refused: int,
        sent: float,
    ) -> TwoBytes | None:
        """What a refused token was drawn from, [V].

        Args:
            session: Whose.
            ids: All that is committed.
            params: How the target picks.
            prompt_tokens: Where the answer begins.
            capacity_tokens: Of prompt, answer and draft.
            path: Accepted tokens of the chain.
            refused: The one after them.
            sent: Its weight as the client sent it.

        Returns:
            None: The draft cannot be held, there is no room for the sequence, or the client has drawn
            from something else.
        """
        sequence = self._sequence(session, params, prompt_tokens, capacity_tokens)
        if sequence is None:
            return None
        started_s = time.perf_counter()
        if not sequence.sampler.has_room(len(ids) + len(path)):
            return None
        weights = sequence.sampler.weights_after(ids, path)
        own = float(weights[refused])
        agrees = replica_agrees(sent, own)
        took_s = time.perf_counter() - started_s
        self.use += ReplicaUse(1, int(not agrees), abs(sent - own), took_s)
        return weights if agrees else None

    def close(self, session: SessionId) -> None:
        """Forget a sequence; unknown ones are fine."""
        closed = self._sequences.pop(session, None)
        if closed is not None:
            self._used_bytes -= closed.room_bytes

    def take_use(self) -> ReplicaUse:
        """What was done since the last time."""
        use, self.use = self.use, ReplicaUse()
        return use

    def _sequence(
        self, session: SessionId, params: SamplingParams, prompt_tokens: int, capacity_tokens: int
    ) -> _Sequence | None:
        if (known := self._sequences.get(session)) is not None:
            return known
        model = self._loaded()
        if model is None:
            return None
        spec = model.spec
        head_bytes = 2 * spec.num_key_value_heads * spec.head_dim * model.embedding.itemsize
        room_bytes = len(model.blocks) * head_bytes * capacity_tokens
        if self._used_bytes + room_bytes > self.order.budget_bytes:
            return None
        self._used_bytes += room_bytes
        sampler = ChainSampler(model, params, prompt_tokens, capacity_tokens)
        self._sequences[session] = _Sequence(sampler, room_bytes)
        return self._sequences[session]

    def _loaded(self) -> DraftModel | None:
        if self._model is None and not self._has_failed and self.order.directory is not None:
            files = ModelFiles(self.spec, self.directory, "")
            try:
                self._model = load_distilled(
                    self.order.directory, files, dtype=torch.float32, device=torch.device("cpu")
                )
                self._used_bytes += weights_bytes_of(self.order.directory, self.spec)
            except EngineError as error:
                self._has_failed = True
                logger.warning("the draft's replica cannot be held: %s", error)
        return self._model
