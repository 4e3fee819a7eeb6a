import pytest

from engine.profiler.block_table import BlockTable
from engine.profiler.compute import CellSamples, ComputeSamples
from engine.profiler.fit import Point, fit, quantity

CELLS = [(batch, context) for batch in (1, 4, 16, 64) for context in (128, 512, 1536)]


def test_a_line_is_found_again_with_no_residuals():
    found = fit([Point((1, units), [0.5 + 0.01 * units]) for units in (1, 4, 16, 64)])
    assert found.coefficients_s == pytest.approx((0.5, 0.01))
    assert found.errors_s == pytest.approx((0, 0), abs=1e-9)
    assert found.residual.value == pytest.approx(0, abs=1e-9)


def test_small_and_large_cells_count_alike():
    points = [
        Point((1, units), [0.001 * units * (1.1 if units == 1 else 1)]) for units in (1, 1000)
    ]
    assert all(abs(residual) < 0.06 for residual in fit(points).residuals)


def test_residuals_say_where_the_table_leaves_the_line_and_errors_how_sure_it_is():
    times = {1: 1.0, 4: 1.3, 16: 2.5, 64: 9.0}
    found = fit([Point((1, units), [time]) for units, time in times.items()])
    fitted = [found.coefficients_s[0] + units * found.coefficients_s[1] for units in times]
    expected = [time / line - 1 for time, line in zip(times.values(), fitted, strict=True)]
    assert found.residuals == pytest.approx(expected, abs=1e-4)
    assert 0.01 < found.residual.value < 0.2
    assert all(error > 0 for error in found.errors_s)


def test_no_time_is_below_zero():
    found = fit([Point((1, units), [0.01 * units**1.3]) for units in (1, 10, 100)])
    assert found.coefficients_s[0] == 0
    assert found.coefficients_s[1] > 0
    falling = fit([Point((1, units), [1 / units]) for units in (1, 2, 3)])
    assert falling.coefficients_s[1] == 0


def test_two_points_have_the_spread_of_their_samples():
    steady, shaky = (
        fit([Point((1, u), [(1 + u) * f for f in (1 - by, 1, 1 + by)]) for u in (1, 9)])
        for by in (0.01, 0.1)
    )
    assert steady.coefficients_s == pytest.approx((1, 1))
    assert shaky.errors_s[1] == pytest.approx(10 * steady.errors_s[1])


def test_one_disturbed_sample_moves_neither_value_nor_spread():
    quiet, disturbed = quantity([1, 1.1, 0.9, 1, 1], "s"), quantity([1, 1.1, 0.9, 1, 50], "s")
    assert disturbed.value == quiet.value
    assert disturbed.spread <= 0.15


def test_attention_is_split_into_what_rows_cost_and_what_their_caches_do():
    cells = [
        CellSamples(
            where=where,
            batch=batch,
            context=context,
            mlp_s=[0.001 + 0.0001 * batch],
            attention_s=[base + 0.00002 * batch + unit * batch * context],
        )
        for where, base, unit in (("device", 0.0003, 1e-8), ("ram", 0.002, 5e-8))
        for batch, context in CELLS
    ]
    samples = ComputeSamples.model_construct(cells=cells, prefill_row_s=[0.001], fixed_s=[0.0001])
    table = BlockTable.of(samples)
    block = table.block(samples)
    assert block.mlp.base_s.value == pytest.approx(0.001)
    assert block.mlp.unit_s.value == pytest.approx(0.00012)
    assert block.attention_row_s.value == pytest.approx(0.00002)
    assert block.attention.base_s.value == pytest.approx(0.0003)
    assert block.attention.unit_s.value == pytest.approx(1e-8)
    assert block.ram_attention.base_s.value == pytest.approx(0.002)
    assert block.ram_attention.unit_s.value == pytest.approx(5e-8)
    assert [row.batch for row in table.rows() if row.where == "ram"] == sorted(b for b, _ in CELLS)
    assert max(abs(row.attention_residual) for row in table.rows()) < 1e-3
