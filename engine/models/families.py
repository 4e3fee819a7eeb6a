"""The model families that we compute, as a table; what is not in it is refused, never guessed.

A family is served when its decoder layer is pre-norm attention and gated MLP as `transformers`
writes it, called with rotary tables from outside. What a checkpoint may vary within that (biases,
rope scaling, sliding windows, tied heads) is checked here too.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformers import AutoConfig, PretrainedConfig

from engine.core.errors import ModelError
from engine.core.model_spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Family:
    """Where `transformers` keeps a family's parts, and how its blocks differ."""

    module: str
    class_prefix: str
    window: Literal["none", "every block", "by layer type"] = "none"
    """Which blocks attend only to the last `config.sliding_window` tokens, when it is set."""

    def part(self, name: Literal["DecoderLayer", "RMSNorm", "RotaryEmbedding"]) -> Any:
        """The family's class for one part."""
        return getattr(importlib.import_module(self.module), self.class_prefix + name)


FAMILIES = {
    "llama": Family("transformers.models.llama.modeling_llama", "Llama"),
    "mistral": Family("transformers.models.mistral.modeling_mistral", "Mistral", "every block"),
    "qwen2": Family("transformers.models.qwen2.modeling_qwen2", "Qwen2", "by layer type"),
    "qwen3": Family("transformers.models.qwen3.modeling_qwen3", "Qwen3", "by layer type"),
}

# "dynamic" and "longrope" change every token's frequencies with the length of the longest
# sequence in the batch, so a cached key would no longer fit and neighbours would matter.
_ROPE_TYPES = frozenset({"default", "linear", "llama3", "yarn"})
_LAYER_TYPES = frozenset({"full_attention", "sliding_attention"})


def family_of(name: str) -> Family:
    """The family called `name` (Hugging Face's `model_type`).

    Raises:
        ModelError: We do not compute it.
    """
    try:
        return FAMILIES[name]
    except KeyError:
        raise ModelError(
            f"Models of the kind '{name}' are not supported; choose one of {', '.join(FAMILIES)}."
        ) from None


def read_config(directory: Path, spec: ModelSpec) -> PretrainedConfig:
    """Read `config.json` and make sure that we compute everything it asks for.

    Raises:
        ModelError: The family or one of its features is not supported, or the file is not the
            model that `spec` describes.
    """
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(
            f"The description of {spec.name} in {directory / 'config.json'} cannot be used: {error}"
        ) from error
    family = family_of(config.model_type)
    _check_matches(config, spec)
    rope = config.rope_parameters
    refusals = {
        "quantized weights": getattr(config, "quantization_config", None) is not None,
        f"the rope type '{rope.get('rope_type')}'": rope.get("rope_type") not in _ROPE_TYPES,
        "rotary embeddings on part of each head": rope.get("partial_rotary_factor", 1.0) != 1.0,
        f"the activation '{config.hidden_act}'": config.hidden_act not in ("silu", "swish"),
        "attention to later tokens": not getattr(config, "is_causal", True),
        "its kinds of layers": bool(_layer_types(config) - _LAYER_TYPES)
        or (family.window == "none" and "sliding_attention" in _layer_types(config)),
    }
    for feature, present in refusals.items():
        if present:
            raise ModelError(f"{spec.name} needs {feature}, which Shoal cannot compute.")
    return config


def _layer_types(config: PretrainedConfig) -> set[str]:
    return set(getattr(config, "layer_types", None) or ())


def _check_matches(config: PretrainedConfig, spec: ModelSpec) -> None:
    for name in (
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "num_key_value_heads",
        "vocab_size",
        "tie_word_embeddings",
    ):
        if getattr(config, name) != getattr(spec, name):
            raise ModelError(
                f"The files of {spec.name} do not belong to it: {name} is {getattr(config, name)}"
                f" where {getattr(spec, name)} was announced. Fetch the model again."
            )


def window_tokens(config: PretrainedConfig, block: int) -> int | None:
    """How many tokens back, itself included, a token of `block` sees; None: all of them."""
    window: int | None = getattr(config, "sliding_window", None)
    match family_of(config.model_type).window:
        case "none":
            return None
        case "every block":
            return window
        case "by layer type":
            return window if config.layer_types[block] == "sliding_attention" else None
