"""Blocks: the weights and the arithmetic of `transformers` decoder layers, over our own cache.

Rows of different sequences lie packed in one [N, D] tensor. Everything but attention treats tokens
alike and runs on the whole; attention keeps the sequences apart (`engine.models.attention`, or
whatever else is handed in as `Attention`).

The layer is built by `transformers` and takes the weights; the pass through it is written out here,
because that halves the operations of a decode step and packs rows without padding. Parts that it
would not visit are refused, and tests hold it to the reference in every family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import rms_norm

from engine.core.errors import ModelCorrupt, ModelError
from engine.models.linear import fast_linear

_PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_ATTENTION_PARTS = {"q_proj", "k_proj", "v_proj", "o_proj"}
_HEAD_NORMS = {"q_norm", "k_norm"}
_MLP_PARTS = {"gate_proj", "up_proj", "down_proj", "act_fn"}


class Attention(Protocol):
    """How the tokens of one forward pass see each other and what is cached; for all blocks.

    `engine.models.attention.PackedRows` says what each method does.
    """

    def rotate_(self, heads: Tensor) -> None:
        """Turn queries or keys, [N, heads, d], to their positions."""
        ...

    def attend(
        self, query: Tensor, new: Tensor, index: int, *, window: int | None, scaling: float
    ) -> Tensor:
        """Store the new keys and values of a block, then attend: [N, H * d]."""
        ...


class Block:
    """One decoder layer.

    Args:
        layer: With its weights, which this takes over.
        window: Tokens that each token sees, itself included; None: all before it.

    Raises:
        ModelError: The layer has parts that this would not compute.
    """

    def __init__(self, layer: Any, window: int | None) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        attention_parts = _names(attention)
        if (
            _names(layer) != _PARTS
            or attention_parts - _HEAD_NORMS != _ATTENTION_PARTS
            or _names(mlp) != _MLP_PARTS
        ):
            raise ModelError("The model's blocks have parts that Shoal cannot compute.")
        self.window = window
        self._scaling: float = attention.scaling
        self._head_dim: int = attention.head_dim
        self._group: int = attention.num_key_value_groups
        self._norm_attention = _norm(layer.input_layernorm)
        self._norm_mlp = _norm(layer.post_attention_layernorm)
        self._norm_heads = (
            (_norm(attention.q_norm), _norm(attention.k_norm))
            if attention_parts & _HEAD_NORMS
            else None
        )
        inputs = (attention.q_proj, attention.k_proj, attention.v_proj)
        self._kv_heads: int = attention.k_proj.out_features // self._head_dim
        biases = [part.bias for part in inputs if part.bias is not None]
        if len(biases) not in (0, len(inputs)):
            raise ModelError("The model has biases in a place where Shoal cannot compute them.")
        self._qkv = fast_linear(
            torch.cat([part.weight for part in inputs]), torch.cat(biases) if biases else None
        )
        self._out = fast_linear(attention.o_proj.weight, attention.o_proj.bias)
        self._gate = fast_linear(mlp.gate_proj.weight, mlp.gate_proj.bias)
        self._up = fast_linear(mlp.up_proj.weight, mlp.up_proj.bias)
        self._down = fast_linear(mlp.down_proj.weight, mlp.down_proj.bias)

    def forward(self, x: Tensor, packed: Attention, index: int) -> Tensor:
        """Run the block on packed rows.

        Args:
            x: [N, D].
            packed: Cover the N tokens in order.
            index: The block's place in the rows' caches, where their keys and values go.

        Returns:
            [N, D].
        """
        x = self._out.plus(self._attend(self._norm_attention(x), packed, index), x)
        y = self._norm_mlp(x)
        return self._down.plus(self._up.times(y, self._gate.silu(y)), x)

    def _attend(self, x: Tensor, packed: Attention, index: int) -> Tensor:
        N = x.shape[0]
        K = self._kv_heads
        H = K * self._group
        qkv = self._qkv(x).view(N, H + 2 * K, self._head_dim)
        if self._norm_heads is not None:
            norm_q, norm_k = self._norm_heads
            qkv[:, :H] = norm_q(qkv[:, :H])
            qkv[:, H : H + K] = norm_k(qkv[:, H : H + K])
        packed.rotate_(qkv[:, : H + K])
        return packed.attend(
            qkv[:, :H], qkv[:, H:], index, window=self.window, scaling=self._scaling
        )


def _names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def _norm(module: Any) -> Callable[[Tensor], Tensor]:
    weight: Tensor = module.weight
    if weight.dtype != torch.float32:
        # The reference rounds before it multiplies by the weight; only its own code does the same.
        return module  # type: ignore[no-any-return]
    epsilon: float = module.variance_epsilon
    return lambda x: rms_norm(x, weight.shape, weight, epsilon)


def fill(module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    """Give a module made on the meta device its weights.

    Raises:
        ModelCorrupt: Some are missing, unknown or of another shape; the text names them.
    """
    # Old checkpoints store the rotary frequencies, which follow from the config.
    tensors = {name: t for name, t in tensors.items() if not name.endswith("rotary_emb.inv_freq")}
    expected = module.state_dict()
    missing = sorted(prefix + name for name in expected.keys() - tensors.keys())
    unknown = sorted(prefix + name for name in tensors.keys() - expected.keys())
    misshapen = sorted(
        prefix + name
        for name in expected.keys() & tensors.keys()
        if expected[name].shape != tensors[name].shape
    )
    for what, names in (("missing", missing), ("unknown", unknown), ("misshapen", misshapen)):
        if names:
            raise ModelCorrupt(
                f"The model's files have {what} weights: {', '.join(names)}. Fetch it again."
            )
    module.load_state_dict(tensors, assign=True)
    module.requires_grad_(requires_grad=False)
