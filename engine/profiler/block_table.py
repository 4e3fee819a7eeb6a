"""From the times of single passes to what a block costs: the table, and what is fitted to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from engine.localapi.measurements import BlockMeasurement, FittedTime, TableRow
from engine.profiler.compute import CellSamples, ComputeSamples
from engine.profiler.fit import Fit, Point, exactly, fit, quantity


@dataclass(frozen=True, slots=True)
class BlockTable:
    """Cells, and the sums of terms that they follow.

    Attention is a base, something per row and something per row and cached token. What it costs
    per row belongs to the rest of the block in [BB] eq. 2, which knows two kinds of cost alone.
    """

    cells: tuple[CellSamples, ...]
    mlp: Fit
    """1, rows."""
    attention: Fit
    """1, rows, rows × tokens; of caches beside the blocks."""
    ram_attention: Fit | None
    """1, rows × tokens; without what `attention` has per row."""

    @classmethod
    def of(cls, samples: ComputeSamples) -> BlockTable:
        """Fit the samples; at least one cell has its caches beside the blocks."""
        near = [cell for cell in samples.cells if cell.where == "device"]
        far = [cell for cell in samples.cells if cell.where == "ram"]
        attention = fit([Point((1, c.batch, c.batch * c.context), c.attention_s) for c in near])
        row_s = attention.coefficients_s[1]
        return cls(
            (*near, *far),
            fit([Point((1, c.batch), c.mlp_s) for c in (*near, *far)]),
            attention,
            fit(
                [
                    Point((1, c.batch * c.context), c.attention_s).without(row_s * c.batch)
                    for c in far
                ]
            )
            if far
            else None,
        )

    def block(self, samples: ComputeSamples) -> BlockMeasurement:
        """What a block costs."""
        row = self.attention.quantity(1, "s/row")
        unit = self.mlp.quantity(1, "s/row")
        ram = self.ram_attention
        return BlockMeasurement(
            mlp=FittedTime(
                base_s=self.mlp.quantity(0, "s"),
                unit_s=exactly(unit.value + row.value, "s/row", spread=unit.spread + row.spread),
                residual=self.mlp.residual,
            ),
            attention=_over_cache(self.attention, 2),
            ram_attention=None if ram is None else _over_cache(ram, 1),
            attention_row_s=row,
            prefill_row_s=quantity(samples.prefill_row_s, "s/row"),
            fixed_s=quantity(samples.fixed_s, "s"),
        )

    def rows(self) -> tuple[TableRow, ...]:
        """The cells with their residuals, ordered for people."""
        ram_residuals = () if self.ram_attention is None else self.ram_attention.residuals
        attention_residuals = (*self.attention.residuals, *ram_residuals)
        found = [
            TableRow(
                where=cell.where,
                batch=cell.batch,
                context=cell.context,
                mlp_s=quantity(cell.mlp_s, "s"),
                attention_s=quantity(cell.attention_s, "s"),
                mlp_residual=mlp,
                attention_residual=attention,
            )
            for cell, mlp, attention in zip(
                self.cells, self.mlp.residuals, attention_residuals, strict=True
            )
        ]
        return tuple(sorted(found, key=lambda row: (row.where, row.batch, row.context)))


def head_time(samples: ComputeSamples) -> FittedTime:
    """Norm, LM head and sampling, per row."""
    found = fit([Point((1, head.rows), head.head_s) for head in samples.heads])
    return FittedTime(
        base_s=found.quantity(0, "s"),
        unit_s=found.quantity(1, "s/row"),
        residual=found.residual,
    )


def _over_cache(found: Fit, term: int) -> FittedTime:
    return FittedTime(
        base_s=found.quantity(0, "s"),
        unit_s=found.quantity(term, "s/row/token"),
        residual=found.residual,
    )
