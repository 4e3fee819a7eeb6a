"""A draft model on this machine: a smaller sibling whole, or the few blocks of a distilled draft."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding

from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.models.block import Block
from engine.models.block_stack import make_block
from engine.models.families import family_of, read_config
from engine.models.heads import Ends
from engine.models.layout import EMBEDDING, ModelFiles, block_index
from engine.models.weights import load_tensors
from engine.speculation.same_tokenizer import check_same_tokenizer
from engine.speculation.sequence_cache import DraftCells, DraftPart, DraftRows
from engine.speculation.tree import ROOT


@dataclass(frozen=True, slots=True)
class DraftModel:
    """Weights that any number of sequences share."""

    spec: ModelSpec
    """Sizes of a block, context and vocabulary."""
    blocks: tuple[Block, ...]
    rotary: Any
    """Positions [1, T] to tables, as the family's RotaryEmbedding."""
    embedding: Tensor
    """[V, D]."""
    read_out: Callable[[Tensor], Tensor]
    """Hidden states [R, D] to logits [R, V'] over `vocabulary`."""
    target_vocab_size: int
    """V of the target, whose noise ranks the proposals."""
    vocabulary: Tensor | None = None
    """The ids that logits stand for, [V'] int64; None: all of the target's, in order."""

    @classmethod
    def sibling(
        cls, files: ModelFiles, target: ModelFiles, *, dtype: torch.dtype, device: torch.device
    ) -> DraftModel:
        """A whole model, to draft for a larger one with the same tokenizer.

        Raises:
            ModelError: Its family is not supported, or its tokenizer is another.
            ModelCorrupt: Weights are missing or of another shape.
        """
        check_same_tokenizer(files.directory, target.directory)
        config = read_config(files.directory, files.spec)
        blocks = []
        for index in range(files.spec.num_hidden_layers):
            tensors = load_tensors(files.directory, Span(index, index + 1), device, dtype)
            blocks.append(make_block(config, index, tensors))
        ends = Ends(files.directory, config, first=True, last=True, dtype=dtype, device=device)
        rotary = family_of(config.model_type).part("RotaryEmbedding")(config).to(device)
        ours, theirs = files.spec.vocab_size, target.spec.vocab_size
        if ours == theirs:
            return cls(files.spec, tuple(blocks), rotary, ends.embedding, ends.logits, theirs)
        # Makers fill tables up to different sizes; beyond the common tokens there is nothing.
        common = min(ours, theirs)
        return cls(
            files.spec,
            tuple(blocks),
            rotary,
            ends.embedding,
            lambda hidden: ends.logits(hidden)[:, :common],
            theirs,
            torch.arange(common, device=device),
        )

    @classmethod
    def first_blocks(cls, files: ModelFiles, num_blocks: int) -> DraftModel:
        """The target's own first blocks, in float32 on the CPU; what they read out is hidden states."""
        config = read_config(files.directory, files.spec)
        wanted = {None, *range(num_blocks)}  # None: the ends
        tensors = load_tensors(
            files.directory, lambda name: block_index(name) in wanted, dtype=torch.float32
        )
        blocks = tuple(make_block(config, block, tensors) for block in range(num_blocks))
        rotary = family_of(config.model_type).part("RotaryEmbedding")(config)
        return cls(
            files.spec, blocks, rotary, tensors[EMBEDDING], lambda x: x, files.spec.vocab_size
        )

    @torch.inference_mode()
    def forward(self, passes: Sequence[Pass]) -> list[Tensor]:
        """Let tokens of several sequences go through the model together.

        Returns:
            Logits after the tokens of each that want them, [n, V'].
        """
        device = self.embedding.device
        ids = [id_ for one in passes for id_ in one.ids]
        x = embedding(torch.tensor(ids, device=device), self.embedding)  # [T, D]
        positions = [position for one in passes for position in one.positions]
        cos, sin = self.rotary(x, torch.tensor([positions], device=device))  # each [1, T, d]
        rows = DraftRows(
            [DraftPart(one.cells, one.start, len(one.ids), one.visible) for one in passes],
            cos[0, :, None],
            sin[0, :, None],
        )
        for index, block in enumerate(self.blocks):
            x = block.forward(x, rows, index)
        ends = list(itertools.accumulate(len(one.ids) for one in passes))
        wanted = [x[end - one.wanted : end] for one, end in zip(passes, ends, strict=True)]
        return list(torch.split(self.read_out(torch.cat(wanted)), [one.wanted for one in passes]))

    def sequence(self, capacity_tokens: int) -> DraftSequence:
        """Room for one sequence of so many tokens, a tree included."""
        return DraftSequence(self, capacity_tokens)


@dataclass(frozen=True, slots=True)
class Pass:
    """Tokens of one sequence that go through the model next."""

    cells: DraftCells
    ids: Sequence[int]
    positions: Sequence[int]
    start: int
    """Slot of the first of them."""
    visible: Tensor | None
    """As in `DraftPart`."""
    wanted: int
    """So many of the last of them want logits."""


class DraftSequence:
    """One sequence in a draft model: what is committed, then nodes that may come next."""

    def __init__(self, model: DraftModel, capacity_tokens: int) -> None:
        self._model = model
        weight = model.embedding
        self._cells = DraftCells(
            len(model.blocks),
            model.spec.num_key_value_heads,
            model.spec.head_dim,
            capacity_tokens,
            dtype=weight.dtype,
            device=weight.device,
        )
        self.length = 0
        """Committed tokens that are held."""
        self._seen: list[tuple[int, ...]] = []
        """Of each node: its path from the root, itself last."""

    def extend(self, ids: Sequence[int], position: int) -> Tensor:
        """Take committed tokens, and forget whatever was held from the first of them on.

        Args:
            ids: At least one.
            position: Of the first, at most `length`.

        Returns:
            Logits after the last of them, [1, V'].
        """
        return self._model.forward([self.reading(ids, position)])[0]

    def grow(self, ids: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Look what comes after nodes that may come next.

        Args:
            ids: Of n new nodes.
            parents: Each among the nodes before it, counted from the last `extend`, or `ROOT`.

        Returns:
            Logits after each of them, [n, V'].
        """
        return self._model.forward([self.growing(ids, parents)])[0]

    def reading(self, ids: Sequence[int], position: int) -> Pass:
        """What `extend` computes, to be computed next."""
        self._seen.clear()
        end = position + len(ids)
        self.length = end
        return Pass(self._cells, ids, list(range(position, end)), position, None, 1)

    def growing(self, ids: Sequence[int], parents: Sequence[int]) -> Pass:
        """What `grow` computes, to be computed next."""
        first = len(self._seen)
        for node, parent in enumerate(parents, start=first):
            self._seen.append((node,) if parent == ROOT else (*self._seen[parent], node))
        paths = self._seen[first:]
        start = self.length + first
        visible = None
        if len(ids) > 1 or len(paths[0]) <= first:  # else a chain, which sees everything
            visible = torch.zeros(len(ids), start + len(ids), dtype=torch.bool)
            visible[:, : self.length] = True
            for row, path in enumerate(paths):
                visible[row, [self.length + node for node in path]] = True
            visible = visible.to(self._cells.blocks.device)
        positions = [self.length + len(path) - 1 for path in paths]
        return Pass(self._cells, ids, positions, start, visible, len(ids))
