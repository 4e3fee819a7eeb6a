"""The promise of the product: what the swarm answers is what the model answers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from engine.core.sampling_params import SamplingParams
from tests.support.local_swarm import collect
from tests.support.real_engine import real_engine, swarm_client
from tests.support.starter import starter_directory

pytestmark = [pytest.mark.end2end, pytest.mark.slow]

NEW_TOKENS = 64
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a village by the sea,",
    "def fibonacci(n):\n",
    "1, 1, 2, 3, 5, 8,",
    "Dear Sir or Madam,",
    "Water boils at",
    "Q: Why is the sky blue?\nA:",
    "SELECT name FROM users WHERE",
    "The three laws of thermodynamics are",
    "Der schnelle braune Fuchs",
    "日本の首都は",
    "🐟🐟🐟 means",
    "Roses are red,",
    "To be, or not to be,",
    "In 1969,",
    "import numpy as np\n\ndef softmax(x):",
    "A",
    "<p>Hello",
    "List five animals: cat, dog,",
    "It was a bright cold day in April, and the clocks were striking thirteen. " * 6,
]


@pytest.fixture(scope="module")
def expected() -> dict[str, list[int]]:
    """Greedy answers of plain `transformers`, computed once, as one left-padded batch."""
    directory = starter_directory()
    tokenizer = AutoTokenizer.from_pretrained(directory, padding_side="left", pad_token_id=0)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    batch = tokenizer(PROMPTS, return_tensors="pt", padding=True)
    output = model.generate(
        **batch, max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    return dict(zip(PROMPTS, output[:, -NEW_TOKENS:].tolist(), strict=True))


SAMPLED = [
    SamplingParams(temperature=0.9, top_p=0.95, seed=42, choice=choice, max_new_tokens=24)
    for choice in range(2)
]


@pytest.fixture(scope="module")
def sampled() -> dict[int, list[list[int]]]:
    """Sampled ids by number of stages."""
    return {}


@pytest.mark.parametrize("stages", [1, 3])
async def test_greedy_equals_local_and_a_seed_gives_the_same_sample(
    stages: int,
    expected: dict[str, list[int]],
    sampled: dict[int, list[list[int]]],
    tmp_path: Path,
) -> None:
    arguments = ["--stages", str(stages)] if stages > 1 else []
    with real_engine(tmp_path / "engine", *arguments) as engine:
        if stages == 1:
            engine.wait_state("idle")
            engine.api.call("POST", "/shoal/v1/swarm/create", {"name": "one", "private": True})
        status = engine.wait(lambda s: len(s["plan"]) == stages)
        assert [stage["is_self"] for stage in status["plan"]] == [True] + [False] * (stages - 1)
        invite = engine.api.call("GET", "/shoal/v1/swarm")["invite"]
        async with swarm_client(tmp_path / "client", invite) as (client, tokenizer):
            prompts = [tokenizer.encode(prompt) for prompt in PROMPTS]
            greedy = SamplingParams(max_new_tokens=NEW_TOKENS)
            events = await collect(client, prompts, [greedy] * len(prompts))
            alone = await collect(client, prompts[-1:], [greedy])
            drawn = await collect(client, [prompts[1]] * 2, SAMPLED)
    for prompt, got in zip(PROMPTS, events, strict=True):
        assert [event.id for event in got] == expected[prompt], prompt
    assert [event.id for event in alone[0]] == expected[PROMPTS[-1]]
    sampled[stages] = [[event.id for event in events] for events in drawn]
    assert sampled[stages] == next(iter(sampled.values()))
    assert sampled[stages][0] != sampled[stages][1]
