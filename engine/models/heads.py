"""The model's two ends: token embeddings, and final norm with LM head."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding
from transformers import PretrainedConfig

from engine.core.errors import ModelCorrupt
from engine.models.block import fill
from engine.models.families import family_of
from engine.models.layout import EMBEDDING, LM_HEAD
from engine.models.linear import Linear, fast_linear
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
        self._head: Linear | None = None
        self._norm: nn.Module | None = None
        if last:
            with torch.device("meta"):
                norm: nn.Module = family_of(config.model_type).part("RMSNorm")(
                    config.hidden_size, eps=config.rms_norm_eps
                )
            fill(norm, {"weight": tensors[_NORM_PREFIX + "weight"]}, _NORM_PREFIX)
            self._norm = norm.eval()
            # Tied embeddings are looked up too, so they must stay as they are.
            shared = self._embedding is not None and config.tie_word_embeddings
            self._head = fast_linear(tensors[LM_HEAD], keep_layout=shared)

    @property
    def embedding(self) -> Tensor:
        """[V, D]; only where the embeddings are held."""
        assert self._embedding is not None
        return self._embedding

    def embed(self, ids: Tensor) -> Tensor:
        """[N] ids to [N, D] hidden states; only where the embeddings are held."""
        return embedding(ids, self.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """[R, D] hidden states to [R, V] logits; only where norm and head are held."""
        return self.read_out(self.normalised(hidden))

    def normalised(self, hidden: Tensor) -> Tensor:
        """[R, D] hidden states as the head reads them, [R, D]."""
        assert self._norm is not None
        normalised: Tensor = self._norm(hidden)
        return normalised

    def read_out(self, normalised: Tensor) -> Tensor:
        """The head alone: [R, D] normalised hidden states to [R, V] logits."""
        assert self._head is not None
        return self._head(normalised)
