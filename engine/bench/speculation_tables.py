"""The papers' settings as one table each: [DC]'s client on a slow line, [BB]'s stages far apart."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from pydantic import BaseModel

from engine.bench.bed import say
from engine.bench.quantities import LinkShaping, Stretching
from engine.bench.request import SwarmBench
from engine.bench.speculation import SpeculationReport, Work, lines, link_name, measure
from engine.bench.speculation_presets import TableName
from engine.bench.speculation_rows import NEVER_SLOWER, Row
from engine.core.errors import ConfigError
from engine.speculation.message_sizes import disco_pays_below_bytes_per_s

DC_STRETCHING: Final = Stretching(target_s=0.040, draft_s=0.002, rows=16)
_DC_DELAY_S: Final = 0.010
"""One way: a round trip of 20 ms."""
_LINKS: Final[dict[TableName, tuple[str, ...]]] = {
    "dc": ("1", "5", "10", "100"),
    "bb": ("E2", "E3", "E4", "E5"),
}
_MBIT: Final = 1e6 / 8


class Crossing(BaseModel):
    """The client's line at which DISCO and another mode are equally fast ([DC]'s BW*)."""

    mode: Literal["dssd", "dsd"]
    """The other: on slower lines it is the slower one."""
    draft_tokens: int
    replica_ms: float
    """What the replica needed for a refused token."""
    refused_share: float
    """Of the rounds, those in which it was asked."""
    predicted_mbit_per_s: float
    """Of DSSD [DC]'s own; of DSD, whose chains take all their distributions along in every round, by the
    same reckoning. What a client needs to draw again, and both ends to handle a distribution, is not in
    it: where a replica takes but some milliseconds, DISCO pays on faster lines than that."""
    observed_mbit_per_s: float | None
    """Where the difference of their rounds, a line over seconds per byte, is zero; none where one of
    the two is faster on every line."""


class TableReport(SpeculationReport):
    """What `--table --json` prints."""

    table: TableName
    crossings: list[Crossing]
    may_be_as_fast: bool
    """Whether each row's interval reaches what a draft that is never slower must have."""


@dataclass(frozen=True, slots=True)
class Table:
    """One of them, as it was asked for."""

    name: TableName
    works: tuple[Work, ...]
    links: tuple[str, ...] = ()
    """Some of its links; none: all."""

    def benches(self, bench: SwarmBench) -> list[SwarmBench]:
        """A measurement for each link.

        Raises:
            ConfigError: A link is none of the table's.
        """
        known = _LINKS[self.name]
        for link in self.links:
            if link not in known and not (self.name == "dc" and link.isdecimal() and int(link)):
                raise ConfigError(
                    f"The table {self.name} has no link {link}; ask for some of {','.join(known)}."
                )
        chosen = self.links or known
        if self.name == "bb":
            return [replace(bench, env=link, link=None) for link in chosen]
        return [
            replace(bench, env=None, link=LinkShaping(int(link) * _MBIT, _DC_DELAY_S))
            for link in chosen
        ]


async def measure_table(bench: SwarmBench, table: Table) -> TableReport:
    """Measure all links, one swarm after the other.

    Raises:
        ConfigError: What was asked for cannot be.
        EngineError: The model cannot be prepared, or a process failed.
    """
    reports = []
    for one in table.benches(bench):
        say(f"Link {link_name(one)}")
        reports.append(await measure(one, table.works))
    rows = [row for report in reports for row in report.rows]
    first = reports[0]
    return TableReport(
        table=table.name,
        rows=rows,
        crossings=crossings(rows, first.vocab_size),
        may_be_as_fast=all(row.may_be_as_fast for row in rows),
        **first.model_dump(exclude={"rows"}),
    )


def crossings(rows: Sequence[Row], vocab_size: int) -> list[Crossing]:
    """BW* for each length of chains that DISCO and another mode were measured with on several links.

    Args:
        rows: Of any modes and links.
        vocab_size: V.
    """
    found = []
    others: tuple[Literal["dssd", "dsd"], ...] = ("dssd", "dsd")
    lengths = sorted({row.draft_tokens for row in rows if row.mode == "disco"})
    for mode, num_tokens in itertools.product(others, lengths):
        pairs = [
            (row, other)
            for row in rows
            for other in rows
            if (row.mode, other.mode) == ("disco", mode)
            and row.draft_tokens == other.draft_tokens == num_tokens
            and (row.link, row.batch) == (other.link, other.batch)
        ]
        replica_ms = statistics.median([row.replica_ms for row, _ in pairs]) if pairs else 0.0
        if len(pairs) < 2 or not replica_ms:
            continue
        refused_share = statistics.median([row.refused_share for row, _ in pairs])
        bytes_per_s = disco_pays_below_bytes_per_s(vocab_size, replica_ms / 1e3)
        if mode == "dsd":
            bytes_per_s *= num_tokens / refused_share
        found.append(
            Crossing(
                mode=mode,
                draft_tokens=num_tokens,
                replica_ms=replica_ms,
                refused_share=refused_share,
                predicted_mbit_per_s=bytes_per_s / _MBIT,
                observed_mbit_per_s=_equal_at_mbit_per_s(pairs),
            )
        )
    return found


def _equal_at_mbit_per_s(pairs: Sequence[tuple[Row, Row]]) -> float | None:
    """Where the other mode's rounds are as long as DISCO's.

    What a round takes varies by some share of it, so that those on slow lines count less.
    """
    s_per_mbit = [1 / row.rate_mbit_per_s for row, _ in pairs]
    longer_ms = [other.round_ms - row.round_ms for row, other in pairs]
    weights = [1 / (row.round_ms + other.round_ms) for row, other in pairs]
    slope, constant = np.polyfit(s_per_mbit, longer_ms, 1, w=weights)
    return float(-slope / constant) if slope > 0 > constant else None


def table_lines(report: TableReport, *, never_slower: bool) -> Iterator[str]:
    """The report for a person.

    Args:
        report: Of a whole table.
        never_slower: Say of each row whether it may be as fast as plain decoding.
    """
    yield from lines(report.rows)
    for crossing in report.crossings:
        observed = crossing.observed_mbit_per_s
        yield (
            f"BW* of DISCO and {crossing.mode.upper()} with chains of {crossing.draft_tokens}: predicted "
            f"{crossing.predicted_mbit_per_s:.0f} Mbit/s (a replica's pass takes "
            f"{crossing.replica_ms:.1f} ms), observed "
            + ("nowhere" if observed is None else f"{observed:.0f} Mbit/s")
        )
    if never_slower:
        as_fast = sum(row.may_be_as_fast for row in report.rows)
        yield (
            f"{as_fast} of {len(report.rows)} cells may be as fast as plain decoding: "
            f"{NEVER_SLOWER} is not above their interval."
        )
        for row in report.rows:
            if not row.may_be_as_fast:
                yield (
                    f"Slower: {row.link}, {row.batch} × {row.prompts}, {row.speedup:.2f}× "
                    f"({row.speedup_interval[0]:.2f}–{row.speedup_interval[1]:.2f})"
                )
