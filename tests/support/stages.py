"""Stages in one process, chained as a route would chain them, and the reference beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine.core.ids import SessionId
from engine.core.kv_room import KvDtype
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import read_spec
from engine.protocol.rows import Row, RowFlags
from engine.server.stage import Sampled, Stage, StageOutput
from tests.support.tiny_models import FAMILIES, save_tiny

CPU = torch.device("cpu")
ENDLESS = SamplingParams(max_new_tokens=10_000)
"""Greedy, and stopped by nothing but the reserved room."""


def stage(
    directory: Path,
    start: int = 0,
    end: int | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
    kv_dtype: KvDtype = "auto",
) -> Stage:
    """Load blocks `[start, end)` of the model; all of them without bounds."""
    spec = read_spec(directory, "tiny@0")
    span = Span(start, spec.num_hidden_layers if end is None else end)
    return Stage(
        directory,
        spec,
        span,
        dtype=dtype,
        device=device,
        kv_dtype=kv_dtype,
        progress=lambda _done, _total: None,
    )


class Chain:
    """Stages that cover a model, driven like one.

    Args:
        directory: The model's files.
        cuts: Where stages begin, but for the first one.
        kv_offload: The share of each sequence's cache that lies in RAM.
        options: For `stage`.
    """

    def __init__(
        self,
        directory: Path,
        cuts: Sequence[int] = (),
        *,
        kv_offload: float = 0.0,
        **options: Any,
    ) -> None:
        self.kv_offload = kv_offload
        num_blocks = read_spec(directory, "tiny@0").num_hidden_layers
        bounds = [0, *cuts, num_blocks]
        self.spans = [Span(a, b) for a, b in pairwise(bounds)]
        self.stages = [stage(directory, span.start, span.end, **options) for span in self.spans]

    def open(
        self,
        session: int,
        prompt_tokens: int,
        capacity: int = 256,
        sampling: SamplingParams = ENDLESS,
    ) -> None:
        """Open a sequence in every stage."""
        for span, part in zip(self.spans, self.stages, strict=True):
            part.open(
                SessionId(session),
                span,
                capacity,
                prompt_tokens,
                sampling,
                kv_offload=self.kv_offload,
            )

    def step(self, *rows: tuple[int, int, Sequence[int]], sample: bool = True) -> list[Sampled]:
        """Run rows of (session, position, ids) through all stages in one pass."""
        flags = RowFlags.SAMPLE if sample else RowFlags.NONE
        table = [Row(SessionId(s), position, len(ids), 0, flags) for s, position, ids in rows]
        return self.run(table, [token for _, _, tokens in rows for token in tokens])

    def run(self, rows: Sequence[Row], ids: Sequence[int]) -> list[Sampled]:
        """Run rows through all stages in one pass."""
        output = StageOutput(None)
        for part in self.stages:
            output = part.forward(rows, np.array(ids, np.int32), output.hidden)
        assert output.hidden is None
        return list(output.sampled)

    def generate(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> list[list[int]]:
        """Continue all prompts as one batch; sessions 1, 2, …"""
        for index, prompt in enumerate(prompts, 1):
            self.open(index, len(prompt), len(prompt) + new_tokens)
        answers: list[list[int]] = [[] for _ in prompts]
        rows = [(index, 0, list(prompt)) for index, prompt in enumerate(prompts, 1)]
        for _ in range(new_tokens):
            for answer, token in zip(answers, self.step(*rows), strict=True):
                answer.append(token.id)
            rows = [
                (index, len(prompt) + len(answer) - 1, answer[-1:])
                for index, (prompt, answer) in enumerate(zip(prompts, answers, strict=True), 1)
            ]
        return answers


class Reference:
    """The same model in `transformers`."""

    def __init__(self, directory: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logits(self, ids: Sequence[int]) -> Tensor:
        """[T, V] for one sequence."""
        logits: Tensor = self._model(torch.tensor([list(ids)])).logits[0]
        return logits

    def generate(self, prompts: Sequence[Sequence[int]], new_tokens: int) -> list[list[int]]:
        """Greedy, each prompt by itself."""
        return [
            self._model.generate(
                torch.tensor([list(prompt)]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                max_new_tokens=new_tokens,
                min_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=None,
            )[0, len(prompt) :].tolist()
            for prompt in prompts
        ]


def agreement(chain: Chain, reference: Reference, several: Sequence[Sequence[int]]) -> float:
    """The share of prompts after which both find the same token best."""
    for session, prompt in enumerate(several):
        chain.open(session, len(prompt))
    sampled = chain.step(*[(session, 0, prompt) for session, prompt in enumerate(several)])
    agreed = [
        token.id == int(reference.logits(prompt)[-1].argmax())
        for token, prompt in zip(sampled, several, strict=True)
    ]
    return sum(agreed) / len(agreed)


def prompts(*lengths: int, seed: int = 0, vocab_size: int = 512) -> list[list[int]]:
    """Random prompts of these lengths."""
    rng = np.random.default_rng(seed)
    return [rng.integers(3, vocab_size, length).tolist() for length in lengths]


def edit_config(directory: Path, **changes: Any) -> Path:
    """Change fields of a model's config.json; None removes one."""
    path = directory / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return directory


def save_families(folder: Path) -> dict[str, Path]:
    """A tiny model of each family, and again with a narrow sliding window of those that have any."""
    made = {family: save_tiny(family, folder / family) for family in FAMILIES}
    made["mistral, window"] = edit_config(save_tiny("mistral", folder / "window"), sliding_window=7)
    for family in ("qwen2", "qwen3"):
        made[f"{family}, window"] = edit_config(
            save_tiny(family, folder / f"{family}-window"),
            use_sliding_window=True,
            sliding_window=7,
            max_window_layers=2,
            layer_types=None,
        )
    return made
