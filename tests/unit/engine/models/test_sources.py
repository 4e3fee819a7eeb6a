from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from engine.core.errors import DiskFull, ModelCorrupt, ModelError, ModelNotFound
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.whole_file import write_whole
from engine.localapi.schema import Progress
from engine.models.layout import FAMILIES, ModelFiles, read_spec
from engine.models.sources import fetch_weights, resolve
from engine.models.storage import require_free, writing
from tests.support.tiny_models import Family, save_tiny


def resolved(tmp_path: Path, source: Path | str) -> ModelFiles:
    return resolve(str(source), tmp_path / "models", "float32", lambda _: None)


def edit_config(directory: Path, **fields: Any) -> None:
    path = directory / "config.json"
    config = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


@pytest.mark.parametrize("family", FAMILIES)
def test_directory_gives_sizes_and_identity(tmp_path: Path, family: Family) -> None:
    directory = save_tiny(family, tmp_path / "fish", tie=family == "qwen2")
    files = resolved(tmp_path, directory)
    assert files.directory == directory
    assert files.spec == ModelSpec(
        model_id=files.spec.model_id,
        family=family,
        num_hidden_layers=4,
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=128,
        vocab_size=512,
        max_position_embeddings=512,
        tie_word_embeddings=family == "qwen2",
        eos_token_ids=(2,),
    )
    assert files.spec.name == "fish"
    fetch_weights(files, Span(0, 4), lambda _: None, models_dir=tmp_path / "models")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_config_leaves_out_is_what_transformers_assumes(
    tmp_path: Path, family: Family
) -> None:
    sizes = {
        "hidden_size": 1024,
        "num_attention_heads": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "vocab_size": 100,
    }
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family} | sizes))
    spec = read_spec(tmp_path, "m@0")
    config = CONFIG_MAPPING[family](**sizes)
    assert spec.num_key_value_heads == config.num_key_value_heads
    assert spec.head_dim == (getattr(config, "head_dim", None) or 1024 // 32)
    assert spec.tie_word_embeddings == config.tie_word_embeddings
    window = getattr(config, "sliding_window", None) or config.max_position_embeddings
    assert spec.max_position_embeddings == min(window, config.max_position_embeddings)


def test_same_files_have_the_same_id_and_other_weights_another(tmp_path: Path) -> None:
    first = resolved(tmp_path, save_tiny("llama", tmp_path / "a" / "fish"))
    same = resolved(tmp_path, save_tiny("llama", tmp_path / "b" / "fish"))
    other = resolved(tmp_path, save_tiny("llama", tmp_path / "c" / "fish", seed=1))
    assert first.spec.model_id == same.spec.model_id
    assert first.spec.model_id != other.spec.model_id


def test_weights_that_change_in_place_change_the_id(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "fish")
    before = resolved(tmp_path, directory).spec.model_id
    path = directory / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert resolved(tmp_path, directory).spec.model_id != before


def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "fish")
    first: list[Progress] = []
    again: list[Progress] = []
    resolve(str(directory), tmp_path / "models", "float32", first.append)
    resolve(str(directory), tmp_path / "models", "float32", again.append)
    assert first[-1].done == first[-1].total
    assert again == []


def test_damaged_notes_only_cost_hashing_again(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "fish")
    before = resolved(tmp_path, directory)
    (tmp_path / "models" / "hashes.json").write_bytes(b'{"x": [1')
    assert resolved(tmp_path, directory) == before


def test_context_of_a_sliding_window_is_one_window(tmp_path: Path) -> None:
    directory = save_tiny("mistral", tmp_path / "m")
    edit_config(directory, sliding_window=128)
    assert resolved(tmp_path, directory).spec.max_position_embeddings == 128


@pytest.mark.parametrize(
    ("source", "says"),
    [("/no/such/folder", "no folder"), ("./nowhere", "no folder"), ("a/b/c", "no folder")],
)
def test_path_that_leads_nowhere_is_said_so(tmp_path: Path, source: str, says: str) -> None:
    with pytest.raises(ModelNotFound, match=says):
        resolved(tmp_path, source)


def test_file_instead_of_a_folder_is_explained(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    with pytest.raises(ModelNotFound, match="is a file"):
        resolved(tmp_path, directory / "model.safetensors")


def test_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no config\.json"):
        resolved(tmp_path, tmp_path)


def test_pickled_weights_are_refused_with_the_reason(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(ModelError, match="can run code"):
        resolved(tmp_path, directory)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    (directory / name).unlink()
    with pytest.raises(ModelNotFound, match=name.replace(".", r"\.")):
        resolved(tmp_path, directory)


def test_missing_shard_is_named(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m", sharded=True)
    (directory / "model-00002-of-00005.safetensors").unlink()
    with pytest.raises(ModelCorrupt, match="00002-of-00005"):
        resolved(tmp_path, directory)


@pytest.mark.parametrize("keep_bytes", [0, 4, 1000, -1])
def test_weights_that_are_cut_short_are_corrupt(tmp_path: Path, keep_bytes: int) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep_bytes])
    with pytest.raises(ModelCorrupt, match="damaged"):
        resolved(tmp_path, directory)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"model_type": "gpt2"}, "family gpt2"),
        ({"model_type": None}, "family unknown"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "rotary"),
    ],
)
def test_kinds_that_we_cannot_run_are_refused(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    edit_config(directory, **fields)
    with pytest.raises(ModelError, match=says):
        resolved(tmp_path, directory)


@pytest.mark.parametrize(
    "fields", [{"hidden_size": None}, {"num_hidden_layers": "many"}, {"vocab_size": 0}]
)
def test_config_without_sense_is_corrupt(tmp_path: Path, fields: dict[str, Any]) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    edit_config(directory, **fields)
    with pytest.raises(ModelCorrupt, match=r"config\.json"):
        resolved(tmp_path, directory)


def test_config_that_is_no_json_is_corrupt(tmp_path: Path) -> None:
    directory = save_tiny("llama", tmp_path / "m")
    (directory / "config.json").write_text('{"model_type": "lla')
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        resolved(tmp_path, directory)


def test_too_little_space_is_said_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match="1,000,000,000 MB"):
        require_free(tmp_path, 10**15)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_translated(tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match="is full"), writing(tmp_path):
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(b"x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_is_not_ours_is_explained(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ModelError, match="may not write"), writing(tmp_path):
        write_whole(tmp_path / "x", b"")
