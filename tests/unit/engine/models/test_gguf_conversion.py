from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.core.plans import Span
from engine.models.gguf_conversion import convert
from engine.models.weights import load_tensors
from tests.support.tiny_models import save_tiny


def interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """Rows as llama.cpp orders them: the two halves of each head, one row from each in turn."""
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, weights.shape[1])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def write_gguf(model: Path, path: Path, *, quantized: bool) -> dict[str, torch.Tensor]:
    """Write a Llama as llama.cpp would; returns the values that the file stands for."""
    config = json.loads((model / "config.json").read_text())
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token.startswith("<|") else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template((model / "chat_template.jinja").read_text())
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    stored = {}
    for name, tensor in load_tensors(model, Span(0, config["num_hidden_layers"])).items():
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        values = tensor.numpy()
        kind = gguf.GGMLQuantizationType.F32
        if quantized and values.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q4_1
        packed = gguf.quantize(values, kind)
        stored[name] = torch.from_numpy(np.array(gguf.dequantize(packed, kind)))
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
        if key := heads.get(name.split(".")[-2]):
            packed = interleaved(packed, config[key])
        writer.add_tensor(
            f"{names.get_name(name.removesuffix('.weight'))}.weight", packed, raw_dtype=kind
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return stored


@pytest.mark.parametrize("tie", [False, True])
@pytest.mark.parametrize("quantized", [False, True])
def test_converted_tensors_are_what_the_file_stands_for(
    tmp_path: Path, tie: bool, quantized: bool
) -> None:
    model = save_tiny("llama", tmp_path / "m", tie=tie)
    expected = write_gguf(model, tmp_path / "m.gguf", quantized=quantized)
    places = {"float32": tmp_path / "fp32", "bfloat16": tmp_path / "bf16"}
    for place in places.values():
        place.mkdir()
    seen: list[tuple[int, int]] = []
    hashes = convert(tmp_path / "m.gguf", places, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(expected), len(expected))
    assert hashes.keys() == set(places.values())
    full = load_tensors(places["float32"], Span(0, 4))
    half = load_tensors(places["bfloat16"], Span(0, 4))
    assert full.keys() == expected.keys() | {"lm_head.weight"}
    for name, tensor in expected.items():
        assert torch.equal(full[name], tensor)
        assert torch.equal(half[name], tensor.bfloat16())


def test_transformers_loads_the_result_and_computes_the_same(tmp_path: Path) -> None:
    model = save_tiny("llama", tmp_path / "m")
    write_gguf(model, tmp_path / "m.gguf", quantized=False)
    (tmp_path / "out").mkdir()
    convert(tmp_path / "m.gguf", {"float32": tmp_path / "out"}, lambda done, total: None)
    messages = [{"role": "user", "content": "a shoal of 🐟"}]
    logits = []
    for directory in (model, tmp_path / "out"):
        tokenizer = AutoTokenizer.from_pretrained(directory)
        ids = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False, return_tensors="pt"
        )
        with torch.no_grad():
            logits.append(AutoModelForCausalLM.from_pretrained(directory)(ids).logits)
    assert torch.equal(*logits)
