"""History, log and diagnostics of the small engine, behind the real routes."""

from __future__ import annotations

from engine.localapi.diagnostics import archive
from engine.localapi.statistics import (
    DiagnosticsEntry,
    DiagnosticsPreview,
    LogTail,
    Range,
    Statistics,
    StatisticsSample,
    StatisticsTotals,
)

STEP_S = {Range.HOUR: 10, Range.DAY: 300, Range.WEEK: 1800}
ENTRIES = (
    DiagnosticsEntry(name="machine.json", about="The system and versions", text='{"cores": 4}'),
    DiagnosticsEntry(name="engine.log", about="The log", text="Shoal begins"),
)


class FakePast:
    """See `engine.http.past_routes.PastBackend`; `asked` is what the test reads."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    async def statistics(self, span: Range) -> Statistics:
        self.asked.append(span.value)
        step_s = STEP_S[span]
        samples = tuple(
            StatisticsSample(
                unix_s=1_000_000 + at * step_s, seconds=step_s, tokens_served=at * step_s,
                tokens_used=0, sent_bytes=125 * step_s, received_bytes=0, ram_bytes=10**9,
            )
            for at in range(3)
        )  # fmt: skip
        today = StatisticsTotals(tokens_served=7)
        return Statistics(range=span, step_s=step_s, samples=samples, today=today, all=today)

    async def log_tail(self, lines: int) -> LogTail:
        self.asked.append("log")
        return LogTail(lines=("Shoal begins", "Shoal serves")[-lines:])

    async def diagnostics(self) -> DiagnosticsPreview:
        self.asked.append("diagnostics")
        return DiagnosticsPreview(entries=ENTRIES)

    async def diagnostics_archive(self) -> bytes:
        return archive(ENTRIES)
