"""The model's two ends: token embeddings, and final norm with LM head."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers import PretrainedConfig

from engine.core.errors import ModelCorrupt
from engine.models import packed_linear
from engine.models.block import fill
from engine.models.families import family_of
from engine.models.layout import EMBEDDING, LM_HEAD
from engine.models.packed_linear import can_pack
from engine.models.weights import load_tensors

_NORM_PREFIX = "model.norm."


class Ends:
    """Whatever of the two ends a stage holds; a tied head shares the embeddings' memory.

    Args:
        directory: The model's files.
        config: What `families.read_config` returned for them.
        first: Whether to hold the embeddings.
        last: Whether to hold norm and LM head.
        dtype: Of weights and arithmetic.
        device: Where to compute.

    Raises:
        ModelCorrupt: Weights are missing or of another shape.
    """

    def __init__(
        self,
        directory: Path,
        config: PretrainedConfig,
        *,
        first: bool,
        last: bool,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        wanted = ([EMBEDDING] if first else []) + (
            [LM_HEAD, _NORM_PREFIX + "weight"] if last else []
        )
        tensors = load_tensors(directory, wanted, device, dtype)
        shape = (config.vocab_size, config.hidden_size)
        for name in {EMBEDDING, LM_HEAD} & tensors.keys():
            if tensors[name].shape != shape:
                raise ModelCorrupt(
                    f"The model's {name} has another shape than {shape}; fetch the model again."
                )
        self._embedding = tensors.get(EMBEDDING)  # [V, D]
        self._head = tensors.get(LM_HEAD)  # [V, D]
        self._linear: Callable[[Tensor, Tensor], Tensor] = linear
        if self._head is not None and can_pack(self._head):
            self._linear = packed_linear.linear
            # oneDNN is faster even on the plain layout, which tied embeddings need for look-up.
            if self._embedding is None or not config.tie_word_embeddings:
                self._head = packed_linear.pack(self._head)
        self._norm: nn.Module | None = None
        if last:
            with torch.device("meta"):
                norm: nn.Module = family_of(config.model_type).part("RMSNorm")(
                    config.hidden_size, eps=config.rms_norm_eps
                )
            fill(norm, {"weight": tensors[_NORM_PREFIX + "weight"]}, _NORM_PREFIX)
            self._norm = norm.eval()

    def embed(self, ids: Tensor) -> Tensor:
        """[N] ids to [N, D] hidden states; only where the embeddings are held."""
        assert self._embedding is not None
        return embedding(ids, self._embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, D] hidden states to [R, V] logits; only where norm and head are held."""
        assert self._head is not None
        assert self._norm is not None
        return self._linear(self._norm(hidden), self._head)
