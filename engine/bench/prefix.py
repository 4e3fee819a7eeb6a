"""`shoal bench prefix`: what prefix reuse saves, beside the same requests without it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.bed import Bed, say, started
from engine.bench.measured import Measured
from engine.bench.ready_model import ready_model
from engine.bench.report import ttft_s
from engine.bench.request import SwarmBench
from engine.bench.specs import Question
from engine.core.generation import PrefixUse

Prompts = list[list[int]]


@dataclass(frozen=True, slots=True)
class Work:
    """What is asked, in tokens."""

    chat_tokens: int
    """Of the first turn's prompt."""
    rows: int
    common_tokens: int
    own_tokens: int
    """Of each row after what is common, and of the chat after its first answer."""

    def longest_prompt(self, new_tokens: int) -> int:
        """Of all prompts."""
        return max(self.chat_tokens + new_tokens, self.common_tokens) + self.own_tokens

    def kv_tokens(self, new_tokens: int) -> int:
        """The most that run at once."""
        rows = self.rows * (self.common_tokens + self.own_tokens + new_tokens)
        return max(rows, self.longest_prompt(new_tokens) + new_tokens)


class Side(BaseModel):
    """One case with or without reuse: medians over the repeats, of whole requests."""

    first_ttft_s: float
    """Until the first sequence has its first token."""
    ttft_s: float
    """Until every sequence has its first token."""
    total_s: float
    client_bytes: int
    """Frames of rows over the client's links, both directions. What asks for reuse comes on top, 35
    bytes for 32 tokens of prompt."""
    link_bytes: list[int]
    """Frames of rows from each stage to the next, the last to the first; empty for one stage."""
    computed_tokens: list[int]
    """By each stage."""


class Case(BaseModel):
    """The same requests on both sides."""

    case: str
    """`next_turn` of a chat, or `common_prefix` of rows."""
    sequences: int
    prompt_tokens: int
    """Of each."""
    without: Side
    reused: Side
    ttft_ratio: float
    """Without reuse over with it; so also:"""
    link_bytes_ratio: float | None
    """None for a single stage."""
    ids_equal: bool


class PrefixReport(BaseModel):
    """What `--json` prints."""

    cases: list[Case]
    model_id: str
    spans: list[tuple[int, int]]
    new_tokens: int
    dtype: str
    repeat: int

    @property
    def ids_equal(self) -> bool:
        """Whether reuse changed no token."""
        return all(case.ids_equal for case in self.cases)


async def measure(bench: SwarmBench, work: Work) -> PrefixReport:
    """Run the whole measurement; nothing that it starts outlives it.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    bench.check()
    model = await ready_model(bench, say)
    async with started(bench, model, work.kv_tokens(bench.new_tokens)) as bed:
        pairs = _Pairs(bed)
        await pairs.start()
        for number in range(bench.repeat):
            say(f"Measuring, {number + 1} of {bench.repeat}")
            await pairs.next_turn(work, number)
            await pairs.common_prefix(work, number)
    return PrefixReport(
        cases=[_case(name, sides) for name, sides in pairs.found.items()],
        model_id=model.files.spec.model_id,
        spans=[(span.start, span.end) for span in model.spans],
        new_tokens=bench.new_tokens,
        dtype=model.machine.dtype_name,
        repeat=bench.repeat,
    )


class _Run(BaseModel):
    """One request, with all that was done for it."""

    measured: Measured
    prompt_tokens: int
    client_bytes: int
    link_bytes: list[int]
    computed_tokens: list[int]


class _Pairs:
    """Asks the same with and without reuse, now one, now the other first."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._last: Measured | None = None
        self.found: dict[str, list[tuple[_Run, _Run]]] = {}
        """Case → pairs of (without, reused)."""

    async def start(self) -> None:
        """Let nothing that is measured be done for the first time."""
        self._last = await self._bed.warm_up([row[:100] for row in self._bed.model.prompts])

    async def next_turn(self, work: Work, number: int) -> None:
        """A chat's first turn, and then its second."""
        row = self._prompt(number)
        first = row[: work.chat_tokens]
        turn = await self._ask([first], PrefixUse.OWN)
        second = [*first, *turn.measured.ids[0], *row[work.chat_tokens :][: work.own_tokens]]
        await self._both("next_turn", [second], number)

    async def common_prefix(self, work: Work, number: int) -> None:
        """Rows that begin alike, as nothing before them did."""
        common = self._prompt(-1 - number)[: work.common_tokens]
        prompts = self._bed.model.prompts
        rows = [[*common, *row[len(common) :][: work.own_tokens]] for row in prompts]
        await self._both("common_prefix", rows, number)

    def _prompt(self, number: int) -> list[int]:
        prompts = self._bed.model.prompts
        row = prompts[number % len(prompts)]
        # Every repeat begins anew, even when there are more of them than rows.
        return row[number // len(prompts) :] + row[: number // len(prompts)]

    async def _both(self, case: str, prompts: Prompts, number: int) -> None:
        uses = [PrefixUse.NONE, PrefixUse.OWN]
        runs = {use: await self._ask(prompts, use) for use in uses[:: -1 if number % 2 else 1]}
        self.found.setdefault(case, []).append((runs[PrefixUse.NONE], runs[PrefixUse.OWN]))

    async def _ask(self, prompts: Prompts, use: PrefixUse) -> _Run:
        tokens = self._bed.bench.new_tokens
        measured = await self._bed.generate(
            Question(prompts=prompts, new_tokens=tokens, prefixes=use)
        )
        last, self._last = self._last, measured
        assert last is not None, "it begins with a warm-up"
        assert last.after is not None, "a swarm's run carries counters"
        assert measured.after is not None, "a swarm's run carries counters"
        # Nobody else uses these stages, so what was counted since the last request is this one's.
        sent: list[dict[str, int]] = [
            {peer: count - old.sent_bytes.get(peer, 0) for peer, count in new.sent_bytes.items()}
            for old, new in zip(last.after.stages, measured.after.stages, strict=True)
        ]
        up_bytes = sum(measured.after.client_sent_bytes.values())
        up_bytes -= sum(last.after.client_sent_bytes.values())
        hops = measured.hops
        return _Run(
            measured=measured,
            prompt_tokens=len(prompts[0]),
            client_bytes=up_bytes + sum(stage.get(measured.client, 0) for stage in sent),
            link_bytes=[
                stage.get(hops[(place + 1) % len(hops)], 0)
                for place, stage in enumerate(sent)
                if len(hops) > 1
            ],
            computed_tokens=[
                new.tokens - old.tokens
                for old, new in zip(last.after.stages, measured.after.stages, strict=True)
            ],
        )


def _case(name: str, pairs: Sequence[tuple[_Run, _Run]]) -> Case:
    without, reused = _side([pair[0] for pair in pairs]), _side([pair[1] for pair in pairs])
    run = pairs[0][0]
    linked = sum(reused.link_bytes)
    return Case(
        case=name,
        sequences=len(run.measured.arrivals_s),
        prompt_tokens=run.prompt_tokens,
        without=without,
        reused=reused,
        ttft_ratio=without.ttft_s / reused.ttft_s,
        link_bytes_ratio=sum(without.link_bytes) / linked if linked else None,
        ids_equal=all(a.measured.ids_sha256 == b.measured.ids_sha256 for a, b in pairs),
    )


def _side(runs: Sequence[_Run]) -> Side:
    measured = [run.measured for run in runs]
    return Side(
        first_ttft_s=statistics.median(
            min(times[0] for times in m.arrivals_s) - m.started_s for m in measured
        ),
        ttft_s=statistics.median(map(ttft_s, measured)),
        total_s=statistics.median(
            max(times[-1] for times in m.arrivals_s) - m.started_s for m in measured
        ),
        client_bytes=round(statistics.median(run.client_bytes for run in runs)),
        link_bytes=_medians([run.link_bytes for run in runs]),
        computed_tokens=_medians([run.computed_tokens for run in runs]),
    )


def _medians(rows: Sequence[Sequence[int]]) -> list[int]:
    return [round(statistics.median(column)) for column in zip(*rows, strict=True)]


def lines(report: PrefixReport) -> Iterator[str]:
    """The report for a person."""
    names = {"next_turn": "Next turn of a chat", "common_prefix": "Rows that begin alike"}
    heads = {"first token": 12, "all first": 12, "between stages": 16, "client": 12}
    yield " " * 48 + "".join(head.rjust(width) for head, width in heads.items())
    for case in report.cases:
        title = f"{names[case.case]}, {case.sequences} × {case.prompt_tokens} tokens"
        for what, side in (("without", case.without), ("reused", case.reused)):
            yield (
                f"{title:40}{what:>8}{side.first_ttft_s:>10.2f} s{side.ttft_s:>10.2f} s"
                f"{sum(side.link_bytes) / 1e6:>13.2f} MB{side.client_bytes / 1e3:>9.1f} kB"
            )
            title = "" if case.ids_equal else "  the token ids differ"
