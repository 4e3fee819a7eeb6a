from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from engine.core.errors import ModelCorrupt
from engine.core.plans import Span
from engine.models.weights import load_tensors
from tests.support.tiny_models import FAMILIES, Family, save_tiny


def reference(directory: Path) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    return dict(model.state_dict())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("tie", [False, True])
def test_whole_span_equals_what_transformers_loads(
    tmp_path: Path, family: Family, sharded: bool, tie: bool
) -> None:
    directory = save_tiny(family, tmp_path / "m", sharded=sharded, tie=tie)
    tensors = load_tensors(directory, Span(0, 4))
    expected = reference(directory)
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


def test_first_stage_gets_embedding_and_last_stage_norm_and_head(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    first, middle, last = (load_tensors(directory, Span(*s)) for s in ((0, 1), (1, 3), (3, 4)))
    ends = [
        {name for name in tensors if not name.startswith("model.layers.")}
        for tensors in (first, middle, last)
    ]
    assert ends == [
        {"model.embed_tokens.weight"},
        set(),
        {"model.norm.weight", "lm_head.weight"},
    ]
    assert {name.split(".")[2] for name in middle} == {"1", "2"}


def test_tied_head_is_the_embedding_even_for_the_last_stage_alone(tmp_path: Path) -> None:
    directory = save_tiny("qwen2", tmp_path / "m", tie=True)
    last = load_tensors(directory, Span(3, 4))
    first = load_tensors(directory, Span(0, 1))
    assert "model.embed_tokens.weight" not in last
    assert torch.equal(last["lm_head.weight"], first["model.embed_tokens.weight"])


def test_tensors_are_converted_to_the_wanted_dtype(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    full = load_tensors(directory, Span(0, 4))
    half = load_tensors(directory, Span(0, 4), "cpu", torch.bfloat16)
    assert all(torch.equal(half[name], full[name].bfloat16()) for name in full)


def test_names_and_predicate_choose_tensors(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    assert list(load_tensors(directory, ["model.norm.weight"])) == ["model.norm.weight"]
    by_predicate = load_tensors(directory, lambda name: ".q_proj." in name)
    assert len(by_predicate) == 4


def test_shards_that_are_not_needed_may_be_absent(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    expected = load_tensors(directory, Span(1, 2))
    index = json.loads((directory / "model.safetensors.index.json").read_text())["weight_map"]
    needed = {index[name] for name in expected}
    for file in set(index.values()) - needed:
        (directory / file).unlink()
    again = load_tensors(directory, Span(1, 2))
    assert all(torch.equal(again[name], expected[name]) for name in expected)
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        load_tensors(directory, Span(0, 4))


@pytest.mark.parametrize(
    "name",
    ["model.layers.2.mlp.up_proj.weight", "model.norm.weight", "model.embed_tokens.weight"],
)
def test_missing_tensor_is_named_and_never_made_up(tmp_path: Path, name: str) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    path = directory / "model.safetensors"
    tensors = load_file(path)
    del tensors[name]
    save_file(tensors, path)
    with pytest.raises(ModelCorrupt, match=name):
        load_tensors(directory, Span(0, 4))


def test_tensor_that_the_index_promises_but_the_file_lacks_is_named(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    index = json.loads((directory / "model.safetensors.index.json").read_text())["weight_map"]
    name = "model.layers.0.mlp.up_proj.weight"
    tensors = load_file(directory / index[name])
    del tensors[name]
    save_file(tensors, directory / index[name])
    with pytest.raises(ModelCorrupt, match=name):
        load_tensors(directory, Span(0, 1))


def test_truncated_file_is_reported_as_corrupt(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        load_tensors(directory, Span(0, 4))


def test_index_that_points_outside_the_directory_is_refused(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    path = directory / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.norm.weight"] = "../elsewhere.safetensors"
    path.write_text(json.dumps(index))
    with pytest.raises(ModelCorrupt, match="not allowed"):
        load_tensors(directory, Span(0, 4))
