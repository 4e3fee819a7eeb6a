"""A GGUF file of the Llama family, written anew as a model directory of safetensors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.core.whole_file import write_whole
from engine.models.layout import CONFIG, WEIGHTS
from engine.models.storage import sha256_of_file

_HF_NAMES_OF_BLOCK = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
_TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_SAFETENSORS_DTYPES = {"float32": "F32", "bfloat16": "BF16"}


def convert(
    gguf_file: Path,
    directories: Mapping[str, Path],
    on_tensor: Callable[[int, int], None],
) -> dict[Path, dict[str, str]]:
    """Dequantize the file once, and write one complete model directory per dtype.

    The float32 values are the ones that `transformers` computes from the same file, bit for bit;
    bfloat16 is these rounded.

    Args:
        gguf_file: Llama architecture, tied or untied head.
        directories: Existing, empty directories by dtype (float32, bfloat16).
        on_tensor: Called with (tensors done, all tensors).

    Returns:
        Per directory, file name → SHA-256.

    Raises:
        OSError: A file could not be written.
    """
    reader = gguf.GGUFReader(gguf_file)
    config = _config(reader)
    shapes = {
        name: tuple(int(size) for size in reversed(tensor.shape))
        for name, tensor in _tensors(reader, config)
    }
    with contextlib.ExitStack() as open_files:
        writers = {
            dtype: _SafetensorsWriter(
                open_files.enter_context((directory / WEIGHTS).open("wb")), shapes, dtype
            )
            for dtype, directory in directories.items()
        }
        for done, (name, tensor) in enumerate(_tensors(reader, config), start=1):
            values = _unpermuted(name, gguf.dequantize(tensor.data, tensor.tensor_type), config)
            for writer in writers.values():
                writer.write(torch.from_numpy(np.array(values, dtype=np.float32, order="C")))
            on_tensor(done, len(shapes))
        sha256_of_weights = {dtype: writer.finish() for dtype, writer in writers.items()}
    _write_tokenizer(gguf_file, list(directories.values()))
    hashes: dict[Path, dict[str, str]] = {}
    for dtype, directory in directories.items():
        _write_json(directory / CONFIG, {**config, "dtype": dtype})
        ends = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
        _write_json(directory / "generation_config.json", {**ends, **_RECOMMENDED})
        small = {path.name: path for path in directory.iterdir() if path.name != WEIGHTS}
        hashes[directory] = {name: sha256_of_file(path) for name, path in small.items()}
        hashes[directory][WEIGHTS] = sha256_of_weights[dtype]
    return hashes


_RECOMMENDED = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}
"""Of SmolLM2's makers; at temperature 1 so small a model babbles."""


def _config(reader: Any) -> dict[str, Any]:
    """What config.json must say, in Hugging Face's words."""

    def field(name: str) -> Any:
        return reader.fields[name].contents()

    hidden_size, heads = field("llama.embedding_length"), field("llama.attention.head_count")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": field("tokenizer.ggml.padding_token_id"),
        "head_dim": hidden_size // heads,
        "hidden_act": "silu",
        "hidden_size": hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": field("llama.feed_forward_length"),
        "max_position_embeddings": field("llama.context_length"),
        "mlp_bias": False,
        "num_attention_heads": heads,
        "num_hidden_layers": field("llama.block_count"),
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "rms_norm_eps": field("llama.attention.layer_norm_rms_epsilon"),
        "rope_parameters": {"rope_theta": field("llama.rope.freq_base"), "rope_type": "default"},
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "use_cache": True,
        "vocab_size": field("llama.vocab_size"),
    }


def _tensors(reader: Any, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(Hugging Face name, GGUF tensor) of every tensor of the model."""
    num_hidden_layers = config["num_hidden_layers"]
    names = ["model.embed_tokens", "model.norm", "lm_head"][
        : 2 if config["tie_word_embeddings"] else 3
    ]
    names += [
        f"model.layers.{block}.{rest}"
        for block in range(num_hidden_layers)
        for rest in _HF_NAMES_OF_BLOCK
    ]
    gguf_names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, num_hidden_layers)
    by_name = {tensor.name: tensor for tensor in reader.tensors}
    for name in names:
        yield f"{name}.weight", by_name[f"{gguf_names.get_name(name)}.weight"]


def _unpermuted(
    name: str, values: NDArray[np.float32], config: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Undo the row order that llama.cpp gives the query and key projections.

    It interleaves the two halves of each head, because it rotates neighbouring rows; Hugging
    Face's rotary embedding wants the halves one after the other.
    """
    if name.endswith("q_proj.weight"):
        heads = config["num_attention_heads"]
    elif name.endswith("k_proj.weight"):
        heads = config["num_key_value_heads"]
    else:
        return values
    pairs = values.reshape(heads, values.shape[0] // heads // 2, 2, values.shape[1])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def _write_tokenizer(gguf_file: Path, directories: Sequence[Path]) -> None:
    """Let `transformers` convert the tokenizer, which takes seconds, and copy the result."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf_file.parent, gguf_file=gguf_file.name)
    with tempfile.TemporaryDirectory(dir=directories[0].parent, prefix=".starter-") as scratch:
        tokenizer.save_pretrained(scratch)
        for path in sorted(Path(scratch).iterdir()):
            for directory in directories:
                write_whole(directory / path.name, path.read_bytes())


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    text = json.dumps(value, indent=2, sort_keys=True) + "\n"
    write_whole(path, text.encode())


class _SafetensorsWriter:
    """Writes tensors one by one, so that the whole model is never in memory, and hashes them."""

    def __init__(self, file: BinaryIO, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> None:
        self._dtype = _TORCH_DTYPES[dtype]
        self._digest = hashlib.sha256()
        self._file = file
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        offset = 0
        for name, shape in shapes.items():
            end = offset + int(np.prod(shape)) * self._dtype.itemsize
            header[name] = {
                "dtype": _SAFETENSORS_DTYPES[dtype],
                "shape": list(shape),
                "data_offsets": [offset, end],
            }
            offset = end
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        self._put(struct.pack("<Q", len(text)) + text)

    def write(self, values: Tensor) -> None:
        """Append the next tensor, in the order of the shapes given."""
        self._put(values.to(self._dtype).contiguous().view(torch.uint8).numpy().data)

    def finish(self) -> str:
        """Make the file durable; returns its SHA-256."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def _put(self, content: bytes | memoryview) -> None:
        self._digest.update(content)
        self._file.write(content)
