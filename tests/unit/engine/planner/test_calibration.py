from __future__ import annotations

import pytest

from engine.core.profiles import Calibration
from engine.planner.calibration import MeasuredStep, fit
from engine.planner.flow import Form, StageTimes, step_s

STAGES = (StageTimes(0.03, line_s=0.01, delay_s=0.02), StageTimes(0.04))


def measured(num_microbatches: int, calibration: Calibration, form: Form) -> MeasuredStep:
    time_s = step_s(STAGES, num_microbatches, calibration, form=form)
    return MeasuredStep(STAGES, num_microbatches, time_s)


@pytest.mark.parametrize("form", [Form.RING, Form.CHAIN])
def test_overheads_that_made_the_measurements_are_found_again(form):
    true = Calibration(0.17, 0.012)
    found = fit([measured(number, true, form) for number in (1, 2, 4)], form)
    assert found.step_overhead_s == pytest.approx(true.step_overhead_s)
    assert found.micro_batch_overhead_s == pytest.approx(true.micro_batch_overhead_s)


def test_one_step_is_enough_for_the_overhead_of_a_step():
    found = fit([measured(4, Calibration(0.17), Form.CHAIN)], Form.CHAIN)
    assert found.step_overhead_s == pytest.approx(0.17)
    assert found.micro_batch_overhead_s == 0


def test_without_a_step_there_is_nothing_to_fit_to():
    with pytest.raises(ValueError, match="nothing to fit"):
        fit([])


def test_parts_that_count_something_twice_give_an_overhead_below_nothing():
    step = MeasuredStep(STAGES, 1, step_s(STAGES, 1) - 0.02)
    found = fit([step])
    assert found.step_overhead_s == pytest.approx(-0.02)
    assert step_s(STAGES, 1, found) == pytest.approx(step.step_s)


def test_no_overhead_makes_a_step_shorter_than_half_of_its_parts():
    assert step_s(STAGES, 1, Calibration(-9.0)) == pytest.approx(step_s(STAGES, 1) / 2)


def test_cutting_finer_is_never_found_to_cost_less_than_nothing():
    faster = [
        MeasuredStep(STAGES, number, step_s(STAGES, number) * (1 - 0.02 * number))
        for number in (1, 2, 4)
    ]
    found = fit(faster)
    assert found.micro_batch_overhead_s == 0
    assert found.step_overhead_s < 0
