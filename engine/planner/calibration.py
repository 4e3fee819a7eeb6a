"""Fitting the two overheads that profiles do not explain to steps that were measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.profiles import Calibration
from engine.planner.flow import Form, StageTimes, step_s


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A pipeline whose parts are known, and how long its step really takes."""

    stages: tuple[StageTimes, ...]
    """One micro-batch's times."""
    num_microbatches: int
    """M."""
    step_s: float


def fit(steps: Sequence[MeasuredStep], form: Form = Form.RING) -> Calibration:
    """C, and o where the steps differ in M: least squares of the relative errors.

    One step is enough: then C is what its parts leave unexplained, which may be less than nothing
    where the parts count something twice. o may not: a plan could then promise more and more for
    nothing but cutting finer. Where it came out so, C is fitted alone.

    Args:
        steps: At least one.
        form: Of the pipeline.

    Raises:
        ValueError: There are none.
    """
    if not steps:
        raise ValueError("without a measured step there is nothing to fit to")
    measured_s = np.array([step.step_s for step in steps])
    explained_s = np.array(
        [step_s(step.stages, step.num_microbatches, form=form) for step in steps]
    )
    further = np.array([step.num_microbatches - 1.0 for step in steps])
    columns = [1 / measured_s]
    if len(set(further)) > 1:
        columns.append(further / measured_s)
    unexplained = 1 - explained_s / measured_s
    found = np.linalg.lstsq(np.stack(columns, axis=1), unexplained, rcond=None)[0]
    if len(found) > 1 and found[1] < 0:
        found = np.linalg.lstsq(columns[0][:, None], unexplained, rcond=None)[0]
    return Calibration(float(found[0]), float(found[1]) if len(found) > 1 else 0.0)
