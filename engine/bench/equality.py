"""`shoal bench speculation --equality`: whether drafts change no token, answer by answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from engine.bench.bed import Bed, say, started
from engine.bench.measured import Measured
from engine.bench.ready_model import ready_model
from engine.bench.request import SwarmBench
from engine.bench.specs import Question
from engine.bench.speculation_prompts import PROMPT_KINDS
from engine.bench.speculation_rows import way_name
from engine.core.generation import MAX_DRAFT_TOKENS, Speculation

_TEMPERATURES = (0.0, 1.0)
"""Greedy, and drawn with a seed."""


class Equal(BaseModel):
    """One way to draft, beside plain decoding of the same prompts."""

    draft: str
    draft_tokens: int
    temperature: float
    answers: int
    equal: int
    """Of them: token for token plain decoding's."""
    tokens: int
    """Of all answers."""
    drafted_tokens: int
    accepted_tokens: int


class EqualityReport(BaseModel):
    """What `--equality --json` prints."""

    equality: list[Equal]
    model_id: str
    spans: list[tuple[int, int]]
    new_tokens: int
    dtype: str

    @property
    def are_equal(self) -> bool:
        """Whether all answers are."""
        return all(row.equal == row.answers for row in self.equality)


async def measure(
    bench: SwarmBench, ways: Sequence[Speculation], num_prompts: int
) -> EqualityReport:
    """Let every way answer the same prompts, questions and texts to copy in turn, as one batch.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.check()
    model = await ready_model(bench, say)
    kinds = await model.prompts_to_draft(PROMPT_KINDS, num_prompts, bench.seed)
    mixed = [prompt for some in zip(*kinds.values(), strict=True) for prompt in some]
    prompts = mixed[:num_prompts]
    most = max(map(len, prompts)) + bench.new_tokens + MAX_DRAFT_TOKENS
    rows = []
    async with started(bench, model, num_prompts * most) as bed:
        for temperature in _TEMPERATURES:
            plain = await _answer(bed, prompts, Speculation("off"), temperature)
            rows += [
                _equal(way, temperature, plain, await _answer(bed, prompts, way, temperature))
                for way in ways
            ]
    return EqualityReport(
        equality=rows,
        model_id=model.files.spec.model_id,
        spans=[(span.start, span.end) for span in model.spans],
        new_tokens=bench.new_tokens,
        dtype=model.machine.dtype_name,
    )


async def _answer(
    bed: Bed, prompts: list[list[int]], way: Speculation, temperature: float
) -> Measured:
    say(f"Answering {len(prompts)} prompts, {way_name(way)}, temperature {temperature:g}")
    return await bed.generate(
        Question(
            prompts=prompts,
            new_tokens=bed.bench.new_tokens,
            steady=False,
            speculation=way,
            temperature=temperature,
        )
    )


def _equal(way: Speculation, temperature: float, plain: Measured, drafted: Measured) -> Equal:
    return Equal(
        draft=way_name(way),
        draft_tokens=way.num_tokens,
        temperature=temperature,
        answers=len(plain.ids),
        equal=sum(a == b for a, b in zip(plain.ids, drafted.ids, strict=True)),
        tokens=sum(map(len, drafted.ids)),
        drafted_tokens=drafted.drafted_tokens,
        accepted_tokens=drafted.accepted_tokens,
    )


def lines(report: EqualityReport) -> Iterator[str]:
    """The report for a person."""
    yield f"{'draft':8}{'N':>3}{'temperature':>13}{'equal':>10}{'tokens':>9}{'accepted':>16}"
    for row in report.equality:
        yield (
            f"{row.draft:8}{row.draft_tokens:>3}{row.temperature:>13g}"
            f"{f'{row.equal}/{row.answers}':>10}{row.tokens:>9}"
            f"{f'{row.accepted_tokens} of {row.drafted_tokens}':>16}"
        )
