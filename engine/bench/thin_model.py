"""`synthetic-thin`: a seeded Llama whose hidden states are large for what they cost to compute.

Its links are the bottleneck on slow lines even where two cores compute all the stages. The weights
are a function of the seed, made of raw random bits, which numpy promises never to change.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from engine.core.whole_file import write_whole
from engine.models.layout import CONFIG, TOKENIZER, WEIGHTS
from engine.models.storage import locked, require_free, writing

NAME = "synthetic-thin"
_GAIN = 1.6
"""Wide enough that greedy decoding does not settle on one token."""
_END = "<|endoftext|>"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a Llama."""

    hidden_size: int = 2048
    num_attention_heads: int = 16
    num_key_value_heads: int = 1
    head_dim: int = 128
    intermediate_size: int = 64
    num_hidden_layers: int = 6
    vocab_size: int = 2048
    max_position_embeddings: int = 32768
    """Room for the long prompt of `--long-prompt`."""


THIN = Sizes()


def ensure_thin(models_dir: Path) -> Path:
    """The folder of `synthetic-thin`; made if it is not there.

    Raises:
        DiskFull: There is no room for it.
        ModelError: The folder for models is not ours to write to.
    """
    tensors_bytes = 4 * sum(int(np.prod(shape)) for _, shape in _shapes(THIN))
    return ensure_made(models_dir, NAME, tensors_bytes, lambda folder: write_llama(folder, THIN))


def ensure_made(
    models_dir: Path, name: str, needed_bytes: int, make: Callable[[Path], None]
) -> Path:
    """The folder `name` among the models, filled by `make` if it is not there; whole or absent.

    Raises:
        DiskFull: There is no room for it.
        ModelError: The folder for models is not ours to write to.
    """
    directory = models_dir / name
    with writing(models_dir), locked(models_dir / f".{name}.lock"):
        if not directory.is_dir():
            require_free(models_dir, needed_bytes)
            partial = models_dir / f".{name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(directory)
    return directory


def write_llama(directory: Path, sizes: Sizes, *, seed: int = 0) -> None:
    """Write a float32 model with its tokenizer; the same arguments always give the same weights."""
    write_config(directory, sizes)
    save_file(
        {name: _tensor(name, shape, seed) for name, shape in _shapes(sizes)}, directory / WEIGHTS
    )


def write_config(directory: Path, sizes: Sizes) -> None:
    """Write what belongs to a model besides weights: its sizes, and a tokenizer of single bytes."""
    _write_json(
        directory / CONFIG,
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": sizes.hidden_size,
            "num_attention_heads": sizes.num_attention_heads,
            "num_key_value_heads": sizes.num_key_value_heads,
            "head_dim": sizes.head_dim,
            "intermediate_size": sizes.intermediate_size,
            "num_hidden_layers": sizes.num_hidden_layers,
            "vocab_size": sizes.vocab_size,
            "max_position_embeddings": sizes.max_position_embeddings,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
            "tie_word_embeddings": False,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "dtype": "float32",
        },
    )
    _write_json(directory / TOKENIZER, _byte_tokenizer())
    _write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": _END,
            "clean_up_tokenization_spaces": False,
        },
    )


def _shapes(sizes: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    D, inner = sizes.hidden_size, sizes.intermediate_size
    heads, kv = (
        count * sizes.head_dim for count in (sizes.num_attention_heads, sizes.num_key_value_heads)
    )
    yield "model.embed_tokens.weight", (sizes.vocab_size, D)
    for block in range(sizes.num_hidden_layers):
        prefix = f"model.layers.{block}."
        yield prefix + "input_layernorm.weight", (D,)
        yield prefix + "self_attn.q_proj.weight", (heads, D)
        yield prefix + "self_attn.k_proj.weight", (kv, D)
        yield prefix + "self_attn.v_proj.weight", (kv, D)
        yield prefix + "self_attn.o_proj.weight", (D, heads)
        yield prefix + "post_attention_layernorm.weight", (D,)
        yield prefix + "mlp.gate_proj.weight", (inner, D)
        yield prefix + "mlp.up_proj.weight", (inner, D)
        yield prefix + "mlp.down_proj.weight", (D, inner)
    yield "model.norm.weight", (D,)
    yield "lm_head.weight", (sizes.vocab_size, D)


def _tensor(name: str, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float32]:
    """Uniform numbers around 0, or around 1 for a norm, of a width that keeps the variance."""
    count = int(np.prod(shape))
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    raw = np.random.PCG64(int.from_bytes(digest[:16], "little")).random_raw((count + 1) // 2)
    uniform = (raw.view(np.uint32)[:count] >> 8).astype(np.float32) / np.float32(1 << 23) - 1
    middle, width = (1.0, 0.1) if len(shape) == 1 else (0.0, _GAIN * (3 / shape[1]) ** 0.5)
    return np.asarray(middle + np.float32(width) * uniform, np.float32).reshape(shape)


def _byte_tokenizer() -> dict[str, Any]:
    """In the format of the tokenizers library: one token for each byte, and one that ends."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    # As in every byte-level vocabulary: bytes that cannot be printed are shown as others that can.
    others = [chr(0x100 + index) for index in range(256 - len(printable))]
    symbols = [*map(chr, printable), *others]
    vocabulary = {_END: 0, **{symbol: id_ for id_, symbol in enumerate(symbols, start=1)}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 0,
                "content": _END,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": False},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": False},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [],
        },
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_whole(path, json.dumps(value, indent=1, sort_keys=True).encode())
