"""A stage: the forward pass through its blocks, for packed rows of many sessions.

Knows no network, process or clock. `open` reserves a session's room, `forward` moves its sequence
on, `close` gives the room back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.config import StageEmulation
from engine.core.errors import CacheFull, LocalProtocolError, RemoteProtocolError, RequestError
from engine.core.generation import CompactionUse, ReplicaUse, Sampled
from engine.core.ids import SessionId
from engine.core.kv_room import KvDtype, KvRoom
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.kv.cache import KvPool
from engine.models.attention import PackedRow
from engine.models.block_stack import BlockStack
from engine.models.families import read_config
from engine.models.heads import Ends
from engine.protocol.rows import Row, RowFlags, is_chain
from engine.sampling.sample import sample
from engine.server.cached_sequence import CachedSequence
from engine.server.compaction import Compaction
from engine.server.drafts import PendingDraft
from engine.server.emulation import EmulatedBlocks, EmulatedEnds
from engine.server.judging import judging_for
from engine.server.replica import Replica
from engine.server.replica_order import ReplicaOrder
from engine.speculation.pruner import Pruner


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a forward pass gives."""

    hidden: Tensor | None
    """[N, D] in the stage's dtype, contiguous; None when the session's span ends the model."""
    sampled: tuple[Sampled, ...] = ()
    """One per row with SAMPLE, in order, when the session's span ends the model."""
    kept: tuple[tuple[bool, ...], ...] = ()
    """Of each row's draft what may be sent on, see `Row.kept`; empty when nothing was judged."""
    judged_s: float = 0.0
    """What judging took."""


class Stage:
    """Consecutive blocks of one model, with the sessions that pass through them.

    Args:
        directory: The model's files.
        spec: What the swarm knows of the model.
        span: Blocks to hold. The first stage embeds, the last one holds norm, head and sampler.
        dtype: Of weights and hidden states.
        device: Where to compute.
        kv_dtype: What keys and values are kept in.
        kv_budget_bytes: Their room on an accelerator, which is taken at once; on a CPU the caller
            alone keeps count.
        progress: Told (blocks loaded, blocks in all).
        emulate: Wait instead of computing, as if the blocks were those of a large model.
        replica: The draft that DISCO may need here; None: there is none.
        pruners: What may judge drafts, by the blocks after which it does.

    Raises:
        ModelError: The model's family or a feature of it is not supported, or its files are not
            what `spec` describes, or weights are missing.
    """

    def __init__(
        self,
        directory: Path,
        spec: ModelSpec,
        span: Span,
        *,
        dtype: torch.dtype,
        device: torch.device,
        kv_dtype: KvDtype = "auto",
        kv_budget_bytes: int = 1 << 30,
        progress: Callable[[int, int], None],
        emulate: StageEmulation | None = None,
        replica: ReplicaOrder | None = None,
        pruners: Mapping[int, Pruner] | None = None,
    ) -> None:
        self._pruners = pruners or {}
        self._spec = spec
        self._span = span
        self._dtype = dtype
        self._device = device
        self._blocks: BlockStack | EmulatedBlocks
        self._may_wait = emulate is not None
        """Whether rows can be computed before what is scattered before them was brought together."""
        self._ends: Ends | EmulatedEnds
        if emulate is None:
            config = read_config(directory, spec)
            self._blocks = BlockStack(
                directory, config, span, dtype=dtype, device=device, progress=progress
            )
            self._may_wait = not self._blocks.has_windows
            self._ends = Ends(
                directory,
                config,
                first=span.start == 0,
                last=span.end == spec.num_hidden_layers,
                dtype=dtype,
                device=device,
            )
        else:
            self._blocks = EmulatedBlocks(
                directory, spec, span, emulate, dtype=dtype, device=device
            )
            self._ends = EmulatedEnds(spec, dtype=dtype, device=device)
        token_bytes = spec.kv_bytes_per_token(len(span), dtype.itemsize, kv_dtype)
        self._pool = KvPool(
            spec.num_key_value_heads,
            spec.head_dim,
            dtype=dtype,
            device=device,
            kv_dtype=kv_dtype,
            arena=None if device.type == "cpu" else (len(span), kv_budget_bytes // token_bytes),
        )
        self._sessions: dict[SessionId, CachedSequence] = {}
        self._compaction = Compaction()
        self._replica = None if replica is None else Replica(replica, directory, spec)

    @property
    def kv_bytes(self) -> KvRoom:
        """Memory that the open sessions' KV caches take, in bytes."""
        return self._pool.num_bytes

    def take_compaction_use(self) -> CompactionUse:
        """What was done to bring together what is kept of trees since the last time."""
        return self._compaction.take_use()

    def take_replica_use(self) -> ReplicaUse:
        """What was done with the draft's replica since the last time."""
        return ReplicaUse() if self._replica is None else self._replica.take_use()

    def open(
        self,
        session: SessionId,
        span: Span,
        capacity_tokens: int,
        prompt_tokens: int,
        sampling: SamplingParams,
        *,
        kv_offload: float = 0.0,
        draft_tokens: int = 0,
        draft_sha256: str = "",
    ) -> None:
        """Reserve room for a sequence; one that is already open under this id is replaced.

        Args:
            session: Its name.
            span: The blocks it uses, within the stage's own.
            capacity_tokens: Room for prompt and answer.
            prompt_tokens: Where the answer begins.
            sampling: How the last stage picks its tokens.
            kv_offload: α, the share of the room that lies in RAM: the oldest positions.
            draft_tokens: Room for the largest draft, besides.
            draft_sha256: Names the draft that its chains are drawn from, in DISCO.

        Raises:
            RemoteProtocolError: The span is not ours.
            RequestError: A biased token is not in the vocabulary.
        """
        if not self._span.start <= span.start < span.end <= self._span.end:
            raise RemoteProtocolError(
                f"A peer asked for blocks {span} of a stage that holds {self._span}."
            )
        if any(not 0 <= token < self._spec.vocab_size for token, _ in sampling.logit_bias):
            raise RequestError(
                f"logit_bias names a token that the model does not have; its ids end at "
                f"{self._spec.vocab_size - 1}.",
                param="logit_bias",
            )
        self.close(session)
        self._sessions[session] = CachedSequence(
            span,
            self._pool.reserve(len(span), capacity_tokens + draft_tokens, kv_offload),
            capacity_tokens,
            prompt_tokens,
            sampling,
            np.zeros(capacity_tokens + draft_tokens, np.int32),
            draft_sha256,
        )

    def copy_prefix(self, session: SessionId, source: SessionId, tokens: int) -> None:
        """Let a sequence begin with the first tokens of another, as if it had computed them.

        Raises:
            LocalProtocolError: One is not open, they use different blocks, or the other has not
                come so far.
        """
        self.tidy()
        ours, theirs = self._sessions.get(session), self._sessions.get(source)
        if (
            ours is None
            or theirs is None
            or ours.span != theirs.span
            or not 0 <= tokens <= min(theirs.cache.length, ours.cache.capacity_tokens)
        ):
            raise LocalProtocolError(
                "What a sequence was to go on from is not there any more; it must be sent again."
            )
        ours.cache.copy_prefix_from(theirs.cache, tokens)
        ours.reach, ours.tree = tokens, None
        ours.ids[:tokens] = theirs.ids[:tokens]

    def keep_prefix(self, session: SessionId, tokens: int) -> None:
        """Hold on to the first tokens of a sequence that has ended, for others to begin with.

        Raises:
            LocalProtocolError: It is not open, or has not come so far.
        """
        self.tidy()
        ended = self._sessions.get(session)
        if ended is None or not 0 < tokens <= ended.cache.length:
            raise LocalProtocolError("A sequence that was to be kept is not there any more.")
        ended.cache = self._pool.keep_prefix(ended.cache, tokens)
        ended.ids = ended.ids[:tokens].copy()
        if self._replica is not None:
            self._replica.close(session)

    def close(self, session: SessionId) -> None:
        """Give a session's room back at once; unknown ones are fine."""
        self.tidy()
        closed = self._sessions.pop(session, None)
        if closed is not None:
            self._pool.release(closed.cache)
            if self._replica is not None:
                self._replica.close(session)

    def tidy(self) -> None:
        """Do what the last pass need not wait for; the next one does it first if nobody has."""
        self._compaction.catch_up()

    def check(self, row: Row) -> None:
        """Say whether `forward` would take this row, so that one bad row need not fail others.

        Raises:
            RemoteProtocolError: The session is not open, or tokens before the row are missing.
            CacheFull: The row goes beyond the room that was reserved.
        """
        session = self._sessions.get(row.session)
        if session is None:
            raise RemoteProtocolError("A peer sent tokens of a session that is not open here.")
        if row.position > session.reach:
            if session.tree is None:
                raise RemoteProtocolError(
                    f"A peer sent tokens from position {row.position} on, but only"
                    f" {session.reach} came before; the sequence must be replayed."
                )
            session.tree.path(row)
        room = (session.capacity_tokens, session.cache.capacity_tokens)
        if row.position + row.committed > room[0] or row.position + row.count > room[1]:
            raise CacheFull(
                f"A sequence has outgrown the {room[0]} tokens reserved for it, or a draft the "
                f"{room[1] - room[0]} besides; open it again with more room."
            )

    @torch.inference_mode()
    def forward(
        self,
        rows: Sequence[Row],
        ids: npt.NDArray[np.int32],
        hidden: Tensor | None,
        thresholds: Sequence[float] = (),
    ) -> StageOutput:
        """Run the rows through the blocks of their sessions' span.

        A row that begins before the end of what its session holds is a replay: the session forgets
        everything from there on first. One that follows a draft says what of it is the session's own.
        All rows are checked before anything changes.

        Args:
            rows: Of different sessions that use the same span, packed.
            ids: [N], the tokens of all rows.
            hidden: [N, D], any float type and device; None embeds the ids.
            thresholds: τ of each row, at a first stage that has a pruner; 0: all of its draft may be
                sent on. What may not stays in the cache until the row that follows says what became
                of the draft, and is never chosen then. Empty: 0 for all.

        Raises:
            RemoteProtocolError: See `check`; or an id is not in the vocabulary.
            CacheFull: See `check`.
            LocalProtocolError: Rows, ids, hidden states and spans do not fit together.
        """
        sessions = self._checked(rows, ids, hidden)
        self.tidy()
        span = sessions[0].span
        packed, start = [], 0
        for row, session in zip(rows, sessions, strict=True):
            packed.append(self._packed(session, row, start))
            # What follows is overwritten now.
            session.reach = session.cache.length = row.position
            end = packed[-1].place + row.count
            session.cache.written = max(session.cache.written, end)
            start += row.count
        if hidden is None:
            x = self._ends.embed(torch.from_numpy(ids.astype(np.int64)).to(self._device))
        else:
            x = hidden.to(device=self._device, dtype=self._dtype)
        judging = judging_for(
            self._pruners, span, self._spec.num_hidden_layers, rows, ids, thresholds
        )
        x = self._blocks.forward(x, packed, span, judging.observe if judging else None)
        for row, session, place in zip(rows, sessions, packed, strict=True):
            end = row.position + row.count
            session.ids[row.position : end] = ids[place.start : place.start + row.count]
            session.cache.length = row.position + row.committed
            session.reach = end if is_chain(row.parents) else session.cache.length
            session.tree = None if is_chain(row.parents) else PendingDraft.of(row)
            if place.gap is not None:
                session.scattered += range(place.place, place.place + row.count)
        if span.end < self._spec.num_hidden_layers:
            if judging is None:
                return StageOutput(x.contiguous())
            return StageOutput(x.contiguous(), (), tuple(judging.kept), judging.seconds)
        return StageOutput(None, self._sample(x, rows, sessions, packed))

    def _packed(self, session: CachedSequence, row: Row, start: int) -> PackedRow:
        """A row in its session's cache.

        What of the tree before it is scattered may stay so until the pass is over if the row's tokens
        are told apart anyway, being a tree's, and there is room behind all of the last one.
        """
        cache, gap = session.cache, session.settle(row)
        packed = PackedRow(cache, start, row.count, row.position, row.parents, gap)
        if gap is None:
            return packed
        fits = packed.place + row.count <= cache.capacity_tokens
        if self._may_wait and fits and cache.far is None and not is_chain(row.parents):
            self._compaction.put_off(session)
            return packed
        self._compaction.gather(session)
        return replace(packed, gap=None)

    def _checked(
        self, rows: Sequence[Row], ids: npt.NDArray[np.int32], hidden: Tensor | None
    ) -> list[CachedSequence]:
        if len({row.session for row in rows}) < len(rows) or not rows:
            raise LocalProtocolError("A forward pass needs one row of each of its sessions.")
        for row in rows:
            self.check(row)
        sessions = [self._sessions[row.session] for row in rows]
        if len({session.span for session in sessions}) > 1:
            raise LocalProtocolError("The rows of a forward pass must use the same blocks.")
        if sum(row.count for row in rows) != len(ids):
            raise LocalProtocolError("A forward pass has more or fewer ids than its rows say.")
        shape = (len(ids), self._spec.hidden_size)
        if hidden is None and sessions[0].span.start > 0:
            raise LocalProtocolError("Only the first block's stage can begin from ids.")
        if hidden is not None and hidden.shape != shape:
            raise LocalProtocolError(f"Hidden states must have the shape {shape}.")
        if ids.min() < 0 or ids.max() >= self._spec.vocab_size:
            raise RemoteProtocolError("A peer sent a token that the model does not have.")
        return sessions

    def _sample(
        self,
        x: Tensor,
        rows: Sequence[Row],
        sessions: Sequence[CachedSequence],
        packed: Sequence[PackedRow],
    ) -> tuple[Sampled, ...]:
        chosen = [i for i, row in enumerate(rows) if RowFlags.SAMPLE in row.flags]
        if not chosen:
            return ()
        places: list[int] = []  # of the last committed token, and of the draft's
        requests = []
        for i in chosen:
            end = packed[i].start + packed[i].count
            requests.append(sessions[i].request(rows[i], self._replica))
            places.extend(range(end - 1 - len(requests[-1].parents), end))
        logits = self._ends.logits(x if len(places) == len(x) else x[places])  # [R, V]
        return tuple(
            Sampled(
                rows[i].session,
                token.id,
                token.logprobs,
                token.finish,
                token.accepted + rows[i].goes_on,
                token.path_logprobs,
                b"" if token.refusal is None else token.refusal.tobytes(),
            )
            for i, token in zip(chosen, sample(logits, requests), strict=True)
        )
