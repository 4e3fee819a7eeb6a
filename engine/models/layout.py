"""What a model directory holds, in the layout of a Hub repository: names, sizes, identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from engine.core.errors import ModelCorrupt, ModelError, ModelNotFound
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
SMALL_FILES = (
    CONFIG,
    TOKENIZER,
    WEIGHTS_INDEX,
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
)
"""Everything but weights that we read; all but the first two may be absent."""

HASHES = "hashes.json"
"""In the models directory: hashes of files that were hashed before."""

EMBEDDING = "model.embed_tokens.weight"
LM_HEAD = "lm_head.weight"
_BLOCK_PREFIX = "model.layers."

Dtype = Literal["float32", "bfloat16", "float16"]
"""What weights are computed in."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048},
    "mistral": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    "qwen2": {"num_key_value_heads": 32, "max_position_embeddings": 32768},
    "qwen3": {"num_key_value_heads": 32, "max_position_embeddings": 32768, "head_dim": 128},
}
"""Per family that we can run: what transformers assumes when config.json leaves it out.

Written down, because importing transformers takes longer than everything else done here.
"""
FAMILIES = tuple(_DEFAULTS)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that is ready to be loaded, or whose weights can be fetched."""

    spec: ModelSpec
    directory: Path
    """Holds config.json, the tokenizer's files, and the weights that have been fetched."""
    source: str
    """As the person wrote it."""
    revision: str | None = None
    """The Hub's commit; None for other sources."""


def block_index(name: str) -> int | None:
    """The block that a tensor belongs to; None for embedding, final norm and LM head."""
    if not name.startswith(_BLOCK_PREFIX):
        return None
    number = name.removeprefix(_BLOCK_PREFIX).partition(".")[0]
    return int(number) if number.isdecimal() else None


def in_span(name: str, span: Span, *, num_hidden_layers: int, tied: bool) -> bool:
    """Whether a stage with `span` needs the tensor.

    The first stage embeds ids; the last one holds norm and LM head, which is the embedding when
    the two are `tied`. Rotary tables that old checkpoints carry are computed, not loaded.
    """
    if name.endswith(".rotary_emb.inv_freq"):
        return False
    block = block_index(name)
    if block is not None:
        return span.start <= block < span.end
    if name == EMBEDDING:
        return span.start == 0 or (tied and span.end == num_hidden_layers)
    if name == LM_HEAD:
        return span.end == num_hidden_layers and not tied
    return span.end == num_hidden_layers


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelCorrupt: It cannot be read, or is something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelCorrupt(
            f"The model's file {path} cannot be read ({error}); fetch the model again."
        ) from error
    if not isinstance(value, dict):
        raise ModelCorrupt(f"The model's file {path} holds no JSON object; fetch the model again.")
    return value


def weight_map(directory: Path) -> dict[str, str] | None:
    """Which file holds which tensor, by the index; None when one file holds all.

    Raises:
        ModelCorrupt: The index makes no sense, or names files outside the directory.
    """
    path = directory / WEIGHTS_INDEX
    if not path.exists():
        return None
    entries = read_json(path).get("weight_map")
    if not isinstance(entries, dict) or not entries:
        raise ModelCorrupt(f"The index {path} lists no tensors; fetch the model again.")
    for file in entries.values():
        # The name comes from a stranger: it must not lead out of the directory.
        if not isinstance(file, str) or PurePosixPath(file).name != file or "\\" in file:
            raise ModelCorrupt(f"The index {path} names the file {file!r}, which is not allowed.")
        if not file.endswith(".safetensors"):
            raise ModelError(
                f"The index {path} names {file}, but only safetensors files are read, because "
                "other formats can run code; convert the model."
            )
    return entries


def weight_files(directory: Path, span: Span | None = None) -> tuple[str, ...]:
    """Names of the files with the weights of `span` (None: of the whole model), sorted."""
    entries = weight_map(directory)
    if entries is None:
        return (WEIGHTS,)
    if span is None:
        return tuple(sorted(set(entries.values())))
    config = read_json(directory / CONFIG)
    num_hidden_layers, tied = int(config["num_hidden_layers"]), is_tied(config)
    return tuple(
        sorted(
            {
                file
                for name, file in entries.items()
                if in_span(name, span, num_hidden_layers=num_hidden_layers, tied=tied)
            }
        )
    )


def is_tied(config: Mapping[str, Any]) -> bool:
    """Whether the LM head is the embedding; every family's default is that it is not."""
    return bool(config.get("tie_word_embeddings", False))


def check_family(directory: Path) -> str:
    """The model's family, if we can run it.

    Raises:
        ModelError: We cannot; the text says why.
        ModelNotFound: There is no config.json.
    """
    path = directory / CONFIG
    if not path.exists():
        raise ModelNotFound(f"{directory} is not a model: it has no config.json.")
    config = read_json(path)
    family = config.get("model_type")
    if family not in FAMILIES:
        raise ModelError(
            f"Models of the family {family or 'unknown'} cannot be run yet; "
            f"choose one of {', '.join(FAMILIES)}."
        )
    if config.get("quantization_config"):
        raise ModelError(
            "This model's weights are quantized, which cannot be run yet; choose the plain one."
        )
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type")) if isinstance(rope, dict) else None
    if kind in ("dynamic", "longrope"):
        # Their tables depend on how long the sequence is, which stages would not agree on.
        raise ModelError(f"Models with {kind} rotary positions cannot be run yet; choose another.")
    return str(family)


def read_spec(directory: Path, model_id: str) -> ModelSpec:
    """Read the sizes of the model in `directory`.

    Raises:
        ModelError: A family or kind that we cannot run.
        ModelCorrupt: config.json makes no sense.
    """
    family = check_family(directory)
    config = {**_DEFAULTS[family], **read_json(directory / CONFIG)}
    try:
        hidden_size, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        context = int(config["max_position_embeddings"])
        sliding = family == "mistral" or config.get("use_sliding_window", False)
        if sliding and config.get("sliding_window"):
            # Up to one window, sliding attention is plain attention.
            context = min(context, int(config["sliding_window"]))
        spec = ModelSpec(
            model_id=model_id,
            family=family,
            num_hidden_layers=int(config["num_hidden_layers"]),
            hidden_size=hidden_size,
            num_attention_heads=heads,
            num_key_value_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden_size // heads),
            intermediate_size=int(config["intermediate_size"]),
            vocab_size=int(config["vocab_size"]),
            max_position_embeddings=context,
            tie_word_embeddings=is_tied(config),
            eos_token_ids=read_eos_token_ids(directory),
            **_recommended_sampling(directory),
        )
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ModelCorrupt(
            f"The model's {CONFIG} in {directory} makes no sense ({error!r}); fetch the model "
            "again."
        ) from error
    sizes = (spec.num_hidden_layers, spec.hidden_size, spec.num_key_value_heads, spec.vocab_size)
    if min(*sizes, spec.max_position_embeddings, spec.head_dim) < 1:
        raise ModelCorrupt(
            f"The model's {CONFIG} in {directory} has a size of 0; fetch the model again."
        )
    return spec


def _recommended_sampling(directory: Path) -> dict[str, Any]:
    """Fields of `ModelSpec` from generation_config.json; none when it recommends greedy or nothing."""
    path = directory / "generation_config.json"
    config = read_json(path) if path.exists() else {}
    if not config.get("do_sample"):
        return {}
    fields: dict[str, Any] = {}
    if config.get("temperature") is not None:
        fields["default_temperature"] = min(max(float(config["temperature"]), 0.0), 2.0)
    if config.get("top_p") is not None and 0 < float(config["top_p"]) <= 1:
        fields["default_top_p"] = float(config["top_p"])
    if config.get("top_k") is not None:
        fields["default_top_k"] = max(0, int(config["top_k"]))
    return fields


def read_eos_token_ids(directory: Path) -> tuple[int, ...]:
    """Ids that end an answer: those of generation_config.json, else of config.json."""
    for name in ("generation_config.json", CONFIG):
        if (directory / name).exists():
            value = read_json(directory / name).get("eos_token_id")
            if value is not None:
                return tuple(int(id_) for id_ in (value if isinstance(value, list) else [value]))
    return ()


def content_hash(sha256_of: Mapping[str, str]) -> str:
    """First 12 hex digits of the hash over the sorted (file name, SHA-256) pairs."""
    lines = "".join(f"{name}\0{digest}\n" for name, digest in sorted(sha256_of.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]
