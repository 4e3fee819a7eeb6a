"""The target as a teacher: its own answers, and the hidden states from which it chose each token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.core.plans import Span
from engine.kv.cache import KvPool, SequenceCache
from engine.models.attention import PackedRow
from engine.models.block_stack import BlockStack
from engine.models.families import read_config
from engine.models.heads import Ends
from engine.models.layout import ModelFiles

_TOP_K = 50
"""Of answers that are sampled: beyond it come the tokens that lead a small model astray."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A prompt with the target's answer."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    """A token, with the one that ends the answer."""
    hidden: Tensor
    """What the head chose them from, [A, D] float16."""


class Teacher:
    """The whole target in this process.

    Args:
        files: Its files.
        dtype: Of weights and arithmetic.

    Raises:
        ModelError: Its family is not supported.
        ModelCorrupt: Weights are missing or of another shape.
    """

    def __init__(self, files: ModelFiles, dtype: torch.dtype) -> None:
        spec = files.spec
        device = torch.device("cpu")
        config = read_config(files.directory, spec)
        self._span = Span(0, spec.num_hidden_layers)
        self._blocks = BlockStack(
            files.directory,
            config,
            self._span,
            dtype=dtype,
            device=device,
            progress=lambda done, total: None,
        )
        self._ends = Ends(
            files.directory, config, first=True, last=True, dtype=dtype, device=device
        )
        self._pool = KvPool(spec.num_key_value_heads, spec.head_dim, dtype=dtype, device=device)
        self._eos_ids = frozenset(spec.eos_token_ids)

    @torch.inference_mode()
    def answer(
        self,
        prompts: Sequence[Sequence[int]],
        max_answer_tokens: int,
        temperatures: Sequence[float],
        seed: int,
    ) -> list[Answer]:
        """Answer some prompts together.

        Args:
            prompts: Ids of R prompts.
            max_answer_tokens: Longest answer.
            temperatures: Of each; 0 is greedy.
            seed: Of those that are sampled.
        """
        generator = torch.Generator().manual_seed(seed)
        caches = [
            self._pool.reserve(len(self._span), len(prompt) + max_answer_tokens)
            for prompt in prompts
        ]
        tokens: list[list[int]] = [[] for _ in prompts]
        hidden: list[list[Tensor]] = [[] for _ in prompts]
        open_rows = list(range(len(prompts)))
        fed = [list(prompt) for prompt in prompts]
        while open_rows:
            last = self._advance([caches[row] for row in open_rows], fed)
            picked = self._pick(last, [temperatures[row] for row in open_rows], generator)
            kept = last.to(torch.float16)
            still_open = []
            for place, (row, token) in enumerate(zip(open_rows, picked, strict=True)):
                tokens[row].append(token)
                hidden[row].append(kept[place])
                if token not in self._eos_ids and len(tokens[row]) < max_answer_tokens:
                    still_open.append(row)
            open_rows = still_open
            fed = [tokens[row][-1:] for row in open_rows]
        for cache in caches:
            self._pool.release(cache)
        return [
            Answer(tuple(prompt), tuple(answered), torch.stack(states))
            for prompt, answered, states in zip(prompts, tokens, hidden, strict=True)
        ]

    def _advance(self, caches: Sequence[SequenceCache], ids: Sequence[Sequence[int]]) -> Tensor:
        """Feed some tokens to each sequence: what the head reads after the last ones, [R, D]."""
        rows, last, start = [], [], 0
        for cache, row in zip(caches, ids, strict=True):
            rows.append(PackedRow(cache, start, len(row), cache.length))
            cache.written = cache.length + len(row)
            start += len(row)
            last.append(start - 1)
        flat = torch.tensor([id_ for row in ids for id_ in row])
        x = self._blocks.forward(self._ends.embed(flat), rows, self._span)
        for cache in caches:
            cache.length = cache.written
        return self._ends.normalised(x[last])

    def _pick(
        self, last: Tensor, temperatures: Sequence[float], generator: torch.Generator
    ) -> list[int]:
        logits = self._ends.read_out(last).float()  # [R, V]
        picked: list[int] = logits.argmax(dim=1).tolist()
        sampled = [row for row, temperature in enumerate(temperatures) if temperature > 0]
        if sampled:
            scores, ids = logits[sampled].topk(min(_TOP_K, logits.shape[1]), dim=1)
            heat = torch.tensor([temperatures[row] for row in sampled])[:, None]
            places = torch.multinomial((scores / heat).softmax(1), 1, generator=generator)
            for row, id_ in zip(sampled, ids.gather(1, places)[:, 0].tolist(), strict=True):
                picked[row] = id_
        return picked
