"""A sequence as the worker has it: its ids, its place in the cache, and the draft behind it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.core.generation import DraftMode
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.kv.cache import SequenceCache
from engine.models.tree_shape import Gap
from engine.protocol.rows import Row
from engine.sampling.rejection import read_weights
from engine.sampling.sample import SampleRequest
from engine.server.drafts import PendingDraft
from engine.server.replica import Replica


@dataclass(slots=True)
class CachedSequence:
    """One session at a stage: its room in the cache, and what lies there."""

    span: Span
    cache: SequenceCache
    capacity_tokens: int
    """Of prompt and answer; the cache has room for a draft besides."""
    prompt_tokens: int
    sampling: SamplingParams
    ids: npt.NDArray[np.int32] = field(repr=False)
    """[room]: ids of the tokens in the cache, which the penalties need."""
    draft_sha256: str = ""
    """The draft that its chains are drawn from, in DISCO."""
    reach: int = 0
    """A row may begin up to here, whatever becomes of a chain that was drafted."""
    tree: PendingDraft | None = None
    """A draft that is no chain, of which one path may be the sequence's own."""

    scattered: list[int] = field(default_factory=list)
    """Places of tokens that are the sequence's own and shall lie one behind another …"""
    gathered_at: int = 0
    """… from here on."""

    def settle(self, row: Row) -> Gap | None:
        """Keep of the tree before a row what has become of it, and forget the rest.

        Returns:
            Where it lies, if that is no part of the sequence as it stands.
        """
        tree, self.tree = self.tree, None
        if tree is None or row.position <= self.reach:
            return None
        path = tree.path(row)
        places = [tree.position + node for node in path]
        self.ids[tree.position : row.position] = self.ids[places]
        if path == tuple(range(len(path))):
            return None
        self.scattered, self.gathered_at = places, tree.position
        return Gap(len(tree.parents), path)

    def gather(self) -> None:
        """Bring together what is scattered: [BB] §7.3's compaction."""
        if self.scattered:
            self.cache.move(self.scattered, self.gathered_at)
            self.scattered = []

    def request(self, row: Row, replica: Replica | None) -> SampleRequest:
        """What is asked of the sampler for a row with SAMPLE, once its ids are here.

        Args:
            row: The row.
            replica: The draft that DISCO may need; None: there is none here.
        """
        # The first token of a row that is all draft was the target's own if any of it counts.
        length, prompt = row.position + max(1, row.committed), self.prompt_tokens
        parents = row.parents[: row.position + row.count - length]
        # The token at the end of the room is given, but not computed any more.
        last_position = min(prompt + self.sampling.max_new_tokens - 1, self.capacity_tokens)
        request = SampleRequest(
            self.sampling,
            length,
            self.ids[: min(prompt, length)],
            self.ids[prompt:length],
            last_position,
            self.ids[length : length + len(parents)],
            parents,
        )
        if row.mode is DraftMode.SHARED:
            return request
        weights = read_weights(row.weights)  # [N], or [N, V]
        if row.mode is DraftMode.DSD:
            weights = weights.reshape(len(row.parents), -1)
        request = replace(request, mode=row.mode, weights=weights)
        if row.mode is DraftMode.DISCO and replica is not None and replica.holds(self.draft_sha256):
            ask = partial(
                replica.weights_after,
                row.session,
                self.ids[:length].tolist(),
                self.sampling,
                prompt,
                len(self.ids),
            )
            request = replace(request, ask_replica=ask)
        return request
