"""What a swarm is compared with: plain `transformers` on this machine, in a process of its own.

Its argument is a file that says which model; the ordinary `generate` with its KV cache and default
attention, greedy and without a stop token. Only a streamer notes when each token is there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.generation.streamers import BaseStreamer

from engine.bench.answering import Lines
from engine.bench.measured import Measured, hash_ids
from engine.bench.specs import LocalSpec, Question


class _Arrivals(BaseStreamer):
    """Notes when each step's tokens are there."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        """The prompt comes first, then [B] ids a step."""
        self.times_s.append(time.perf_counter())

    def end(self) -> None:
        """Nothing is held back."""


def load(spec: LocalSpec) -> Any:
    """The whole model, ready to generate."""
    torch.set_grad_enabled(False)
    if spec.device == "cpu":
        torch.set_num_threads(spec.threads)
    model: Any = AutoModelForCausalLM.from_pretrained(
        spec.directory, dtype=getattr(torch, spec.dtype), local_files_only=True
    )
    # Defaults that come with the model may sample or stop.
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        do_sample=False, pad_token_id=0
    )
    return model.to(spec.device).eval()


def generate(model: Any, question: Question) -> Measured:
    """Continue the prompts greedily."""
    prompt_ids = torch.tensor(question.prompts, device=model.device)  # [B, P]
    arrivals = _Arrivals()
    started_s = time.perf_counter()
    output = model.generate(
        prompt_ids,
        attention_mask=torch.ones_like(prompt_ids),
        max_new_tokens=question.new_tokens,
        streamer=arrivals,
    )
    new_ids = output[:, prompt_ids.shape[1] :].tolist()
    times_s = tuple(arrivals.times_s[1:])
    return Measured(
        started_s=started_s,
        arrivals_s=(times_s,) * len(question.prompts),
        ids_sha256=hash_ids(new_ids),
    )


def main() -> int:
    """See the module. Returns the exit code."""
    lines = Lines()
    model = load(LocalSpec.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8")))
    lines.say("ready", True)
    while (line := lines.read()) is not None:
        lines.say("result", generate(model, Question.model_validate(line)).model_dump())
    return 0
