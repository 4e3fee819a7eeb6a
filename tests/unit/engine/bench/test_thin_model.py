"""Models that the bench makes are the same wherever they are made, and real enough to run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

from engine.bench.prompts import make_prompts
from engine.bench.thin_model import Sizes, ensure_made, write_llama
from engine.models.layout import CONFIG, TOKENIZER, WEIGHTS
from engine.models.tokenizer import ChatTokenizer

SMALL = Sizes(64, 4, 1, 16, 8, 2, 300, 512)
PINNED = "24f470f5c8be3a694c193465b8f48bd7092984533e15136a31b7d5641aac9ffd"


def digest(directory: Path) -> str:
    tensors = load_file(directory / WEIGHTS)
    content = hashlib.sha256()
    for name in sorted(tensors):
        content.update(name.encode())
        content.update(tensors[name].tobytes())
    for name in (CONFIG, TOKENIZER):
        content.update((directory / name).read_bytes())
    return content.hexdigest()


def test_the_same_seed_makes_the_same_model_everywhere(tmp_path):
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        write_llama(tmp_path / str(seed), SMALL, seed=seed)
    assert digest(tmp_path / "0") == PINNED
    assert digest(tmp_path / "1") != PINNED


def test_a_made_model_speaks_bytes_and_does_not_repeat_itself(tmp_path):
    write_llama(tmp_path, SMALL)
    tokenizer = ChatTokenizer.load(tmp_path)
    text = "A naïve ferry, 日本 🐟"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    prompts = make_prompts(
        tokenizer.encode, SMALL.vocab_size, batch_size=2, prompt_tokens=16, seed=0
    )
    model = AutoModelForCausalLM.from_pretrained(tmp_path, local_files_only=True)
    with torch.inference_mode():
        ids = model.generate(
            torch.tensor(prompts), max_new_tokens=24, do_sample=False, eos_token_id=None
        )
    assert len(set(ids[0, 16:].tolist())) > 8


def test_a_model_is_made_once_and_whole_or_not_at_all(tmp_path):
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        if len(made) == 1:
            raise KeyboardInterrupt
        (folder / "file").touch()

    for _ in range(3):
        try:
            directory = ensure_made(tmp_path, "name", 1, make)
        except KeyboardInterrupt:
            assert not (tmp_path / "name").exists()
    assert len(made) == 2
    assert (directory / "file").exists()
