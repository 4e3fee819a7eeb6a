"""`shoal bench acceptance`: how often a draft's token is accepted by each rule, over the temperature.

The target answers prompts by itself. At every token of its answers the draft says what it would have
drafted there, once with the target's own noise and once drawn from its distribution, so that both
rules see the same places. Beside what happened stands what must be expected there: `agreement` of the
two distributions for shared noise, their overlap Σ min(p, q) for acceptance by min(1, p/q), which is
the most that any rule can accept ([DC]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel

from engine.core.errors import ConfigError
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.sampling.noise import gumbel_noise
from engine.sampling.rejection import Draws, Probabilities
from engine.sampling.sample import SampleRequest, probabilities
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_files import SHIPPED, find_draft
from engine.speculation.draft_model import DraftModel, DraftSequence
from engine.speculation.model_draft import over_whole_vocabulary
from engine.speculation.shared_noise import agreement, overlap

_EMPTY = np.empty(0, np.int32)


class AcceptanceRow(BaseModel):
    """One temperature."""

    temperature: float
    places: int
    shared_noise: float
    """Share of the places at which the draft's pick was the target's."""
    shared_noise_expected: float
    probabilities: float
    """Share at which a token drawn from the draft was accepted with min(1, p/q)."""
    probabilities_expected: float


class AcceptanceReport(BaseModel):
    """What `--json` prints."""

    model_id: str
    draft: str
    prompts: int
    new_tokens: int
    rows: list[AcceptanceRow]


@dataclass(frozen=True, slots=True)
class AcceptanceBench:
    """What to measure.

    Args:
        target: The model, all of it.
        draft: Folder of a distilled draft; None: the one that comes along.
        prompts: Ids.
        new_tokens: Of each answer.
        temperatures: Above 0; at 0 the rules are the same.
        top_p: Of both models' distributions.
    """

    target: ModelFiles
    draft: Path | None
    prompts: Sequence[Sequence[int]]
    new_tokens: int
    temperatures: Sequence[float]
    top_p: float = 1.0


def measure(bench: AcceptanceBench, say: Callable[[str], None]) -> AcceptanceReport:
    """Answer all prompts at every temperature.

    Raises:
        ConfigError: There is no draft for the model.
        ModelError: A model cannot be used.
    """
    folder = bench.draft or find_draft(bench.target.spec.model_id, (SHIPPED,))
    if folder is None:
        raise ConfigError("There is no draft for this model; train one with `shoal draft train`.")
    dtype, device = torch.float32, torch.device("cpu")
    target = DraftModel.sibling(bench.target, bench.target, dtype=dtype, device=device)
    draft = load_distilled(folder, bench.target, dtype=dtype, device=device)
    rows = []
    for temperature in bench.temperatures:
        say(f"Temperature {temperature:g}")
        params = SamplingParams(temperature=temperature, top_p=bench.top_p)
        places = [
            place
            for seed, prompt in enumerate(bench.prompts)
            for place in _places(target, draft, prompt, params, seed, bench.new_tokens)
        ]
        shared, shared_expected, drawn, drawn_expected = np.array(places).mean(0).tolist()
        rows.append(
            AcceptanceRow(
                temperature=temperature,
                places=len(places),
                shared_noise=shared,
                shared_noise_expected=shared_expected,
                probabilities=drawn,
                probabilities_expected=drawn_expected,
            )
        )
    return AcceptanceReport(
        model_id=bench.target.spec.model_id,
        draft=folder.name,
        prompts=len(bench.prompts),
        new_tokens=bench.new_tokens,
        rows=rows,
    )


def _places(
    target: DraftModel,
    draft: DraftModel,
    prompt: Sequence[int],
    params: SamplingParams,
    seed: int,
    new_tokens: int,
) -> Iterator[tuple[float, float, float, float]]:
    """By shared noise what happened and what must be expected, by probabilities the same."""
    capacity = len(prompt) + new_tokens
    ours, theirs = draft.sequence(capacity), target.sequence(capacity)
    # The tokens drafted by probabilities are drawn apart from the target's own.
    draws = Draws(seed, choice=1)
    ids = list(prompt)
    for position in range(len(prompt), capacity):
        p = _next(target, theirs, ids, params)
        q = _next(draft, ours, ids, params)
        noise = gumbel_noise(seed, 0, position, len(p))
        with np.errstate(divide="ignore"):
            picked, drafted = (int((np.log(each) + noise).argmax()) for each in (p, q))
        drawn = draws.token(q, position)
        accepted = draws.accepts(float(p[drawn]), float(q[drawn]), position)
        yield picked == drafted, agreement(p, q), accepted, overlap(p, q)
        if picked in target.spec.eos_token_ids:
            return
        ids.append(picked)


def _next(
    model: DraftModel, sequence: DraftSequence, ids: Sequence[int], params: SamplingParams
) -> Probabilities:
    """What a model says after some tokens, [V]."""
    logits = sequence.extend(ids[sequence.length :], sequence.length)
    scores = over_whole_vocabulary(model, logits[0])
    return probabilities(scores, SampleRequest(params, len(ids), _EMPTY, _EMPTY))


def lines(report: AcceptanceReport) -> Iterator[str]:
    """The report for a person."""
    yield f"{report.model_id}, draft {report.draft}, {report.prompts} prompts"
    yield (
        f"{'temperature':>11}{'places':>8}{'shared noise':>24}{'min(1, p/q)':>24}"
        f"{'of the most':>13}"
    )
    for row in report.rows:
        shared = f"{row.shared_noise:.3f} (expected {row.shared_noise_expected:.3f})"
        drawn = f"{row.probabilities:.3f} (expected {row.probabilities_expected:.3f})"
        share = row.shared_noise_expected / row.probabilities_expected
        yield f"{row.temperature:>11g}{row.places:>8}{shared:>24}{drawn:>24}{share:>13.0%}"
