"""What the swarm must know about a model without loading it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.kv_room import KvDtype, kv_head_bytes


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Sizes and identity of one model; Hugging Face's names.

    `model_id` is what all stages must agree on: `<source name>@<first 12 hex digits of the content
    hash>`. Two nodes with equal ids hold the same weights and tokenizer.
    """

    model_id: str
    family: str
    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    eos_token_ids: tuple[int, ...]
    default_temperature: float = 1.0
    """What its makers recommend, for requests that do not say."""
    default_top_p: float = 1.0
    default_top_k: int = 0

    @property
    def name(self) -> str:
        """The id without its hash, as people write it."""
        return self.model_id.partition("@")[0]

    @property
    def block_parameters(self) -> int:
        """Weights of one block (projections, gated MLP, norms; biases are noise beside them)."""
        attention = (
            self.hidden_size
            * self.head_dim
            * (2 * self.num_attention_heads + 2 * self.num_key_value_heads)
        )
        return attention + 3 * self.hidden_size * self.intermediate_size + 2 * self.hidden_size

    def kv_bytes_per_token(
        self, num_blocks: int, element_bytes: int, kv_dtype: KvDtype = "auto"
    ) -> int:
        """KV cache that one token takes in `num_blocks` blocks, in bytes.

        `element_bytes` is that of the arithmetic.
        """
        head_bytes = kv_head_bytes(self.head_dim, element_bytes, kv_dtype)
        return 2 * self.num_key_value_heads * head_bytes * num_blocks
