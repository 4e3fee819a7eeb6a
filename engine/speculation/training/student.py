"""The draft while it learns: a few of the target's blocks, its norm, and an output projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, log_softmax
from transformers import PretrainedConfig

from engine.models.families import family_of
from engine.models.layout import EMBEDDING, LM_HEAD, ModelFiles
from engine.models.weights import load_tensors
from engine.speculation.training.teacher import Answer

_RIDGE: Final = 1e-3
"""Weight of the penalty, relative to the mean square of the inputs."""


class Student(nn.Module):
    """Trainable blocks between the target's frozen embedding and head.

    Args:
        config: The target's.
        num_blocks: Its first blocks, copied.
        files: Where they are copied from.
        vocabulary: The ids that it can propose, [V'].
    """

    def __init__(
        self, config: PretrainedConfig, num_blocks: int, files: ModelFiles, vocabulary: Tensor
    ) -> None:
        super().__init__()
        family = family_of(config.model_type)
        config._attn_implementation = "sdpa"
        names = (EMBEDDING, LM_HEAD, "model.norm.weight")
        prefixes = tuple(f"model.layers.{block}." for block in range(num_blocks))
        tensors = load_tensors(files.directory, names, dtype=torch.float32)
        tensors |= load_tensors(
            files.directory, lambda name: name.startswith(prefixes), dtype=torch.float32
        )
        self.layers = nn.ModuleList(
            family.part("DecoderLayer")(config, layer_idx=block) for block in range(num_blocks)
        )
        self.norm: nn.Module = family.part("RMSNorm")(config.hidden_size, eps=config.rms_norm_eps)
        self.output = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        for block, layer in enumerate(self.layers):
            prefix = prefixes[block]
            layer.load_state_dict(
                {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
            )
        self.norm.load_state_dict({"weight": tensors["model.norm.weight"]})
        self._rotary: Any = family.part("RotaryEmbedding")(config)
        self._embedding = tensors[EMBEDDING]
        self._head = tensors[LM_HEAD][vocabulary]  # [V', D]

    def features(self, ids: Tensor) -> Tensor:
        """[B, T] ids, padded at their ends, to what the projection reads, [B, T, D]."""
        x = embedding(ids, self._embedding)
        tables = self._rotary(x, torch.arange(ids.shape[1])[None])
        for layer in self.layers:
            x = layer(x, attention_mask=None, position_embeddings=tables)
        normalised: Tensor = self.norm(x)
        return normalised

    def log_probabilities(self, features: Tensor) -> Tensor:
        """[n, D] features to log q over the vocabulary, [n, V']."""
        return log_softmax(linear(self.output(features), self._head), dim=1)

    @torch.no_grad()
    def target_log_probabilities(self, hidden: Tensor) -> Tensor:
        """Log p over the vocabulary, [n, V'], from what the target's head reads, [n, D]."""
        return log_softmax(linear(hidden.float(), self._head), dim=1)

    @torch.no_grad()
    def fit_output(self, batches: Sequence[Sequence[Answer]]) -> None:
        """Let the projection begin as the best linear guess of the target's hidden states.

        Ridge regression; from a random one, training starts above 15 nats.
        """
        D = self.output.in_features
        squares, products = torch.zeros(D, D), torch.zeros(D, D)
        for batch in batches:
            x = self.features(padded(batch))[answer_places(batch)]
            y = torch.cat([answer.hidden for answer in batch]).float()
            squares += x.T @ x
            products += x.T @ y
        squares += _RIDGE * squares.diagonal().mean() * torch.eye(D)
        self.output.weight.copy_(torch.linalg.solve(squares, products).T)


def padded(batch: Sequence[Answer]) -> Tensor:
    """Ids that the student reads, [B, T]: all but each answer's last, 0 after their ends."""
    rows = [(*answer.prompt, *answer.tokens)[:-1] for answer in batch]
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


def answer_places(batch: Sequence[Answer]) -> tuple[Tensor, Tensor]:
    """Rows and columns of `padded` after which a token of an answer follows, [n] each."""
    rows: list[int] = []
    columns: list[int] = []
    for row, answer in enumerate(batch):
        first = len(answer.prompt) - 1
        rows += [row] * len(answer.tokens)
        columns += range(first, first + len(answer.tokens))
    return torch.tensor(rows), torch.tensor(columns)


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Mean KL(p ‖ q) in nats over [n, V'] each."""
    return (log_p.exp() * (log_p - log_q)).sum(1).mean()
