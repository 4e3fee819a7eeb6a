"""From samples to values with spreads, and from tables to sums of terms with residuals. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.localapi.measurements import Quantity

_SIGMAS_PER_MAD: Final = 1.4826
"""Of a normal distribution: makes the median absolute deviation comparable with its standard one."""
_DIGITS: Final = 6
_MIN_SPREAD: Final = 1e-3
"""Relative: no clock and no machine is steadier than that."""

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of a table."""

    terms: tuple[float, ...]
    """How often each term occurs in it: 1 for a base, rows, rows × tokens …"""
    samples_s: Sequence[float]
    """Times; at least one, all above zero."""

    @property
    def time_s(self) -> float:
        """The samples' median, which a moment's disturbance does not move."""
        return statistics.median(self.samples_s)

    def without(self, seconds: float) -> Point:
        """The same, less what another term has been found to take; never less than a tenth."""
        return Point(self.terms, [max(0.1 * s, s - seconds) for s in self.samples_s])


@dataclass(frozen=True, slots=True)
class Fit:
    """time = Σ coefficient · term."""

    coefficients_s: tuple[float, ...]
    """Per term, none below zero."""
    errors_s: tuple[float, ...]
    """Their standard errors."""
    residuals: tuple[float, ...]
    """Per point, relative to the fit: how much longer it took."""

    @property
    def residual(self) -> Quantity:
        """Root mean square of all."""
        return exactly(math.sqrt(statistics.fmean(r * r for r in self.residuals)), "1")

    def quantity(self, term: int, unit: str) -> Quantity:
        """One coefficient."""
        return exactly(self.coefficients_s[term], unit, spread=self.errors_s[term])


def quantity(samples: Sequence[float], unit: str) -> Quantity:
    """The median of repeated samples (at least one), with their spread."""
    middle = statistics.median(samples)
    deviation = statistics.median(abs(sample - middle) for sample in samples)
    return exactly(middle, unit, spread=deviation * _SIGMAS_PER_MAD)


def exactly(value: float, unit: str, *, spread: float = 0.0) -> Quantity:
    """A value whose spread is known; 0 for what is counted rather than measured."""
    return Quantity(value=_rounded(value), spread=_rounded(spread), unit=unit)


def fit(points: Sequence[Point]) -> Fit:
    """Find the coefficients, none below zero, by least squares of the relative errors.

    Relative ones, because a plan uses them for one row as for many. Terms whose coefficient would
    be below zero are left out; which ones, is tried out: there are three at most.

    Args:
        points: At least one, all with as many terms.
    """
    times = np.array([point.time_s for point in points])
    terms = np.array([point.terms for point in points], float) / times[:, None]
    count = terms.shape[1]
    best: tuple[float, _Array, tuple[int, ...]] | None = None
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            part, _, rank, _ = np.linalg.lstsq(terms[:, chosen], np.ones(len(points)), rcond=None)
            if rank < size or (part < 0).any():
                continue
            square = float(((terms[:, chosen] @ part - 1) ** 2).sum())
            if best is None or square < best[0] * (1 - 1e-9):
                best = square, part, chosen
    assert best is not None, "a single term of times above zero always fits"
    square, part, chosen = best
    coefficients, errors = np.zeros(count), np.zeros(count)
    coefficients[list(chosen)] = part
    variance = _variance(points, square, len(points) - len(chosen))
    covariance = np.linalg.inv(terms[:, chosen].T @ terms[:, chosen]) * variance
    errors[list(chosen)] = np.sqrt(np.diag(covariance))
    residuals = 1 / (terms @ coefficients) - 1
    return Fit(
        tuple(coefficients.tolist()),
        tuple(errors.tolist()),
        tuple(round(residual, 4) for residual in residuals.tolist()),
    )


def _variance(points: Sequence[Point], square: float, to_spare: int) -> float:
    """Relative, of one point: from the table where it has points to spare, else from the samples."""
    if to_spare > 0:
        return square / to_spare
    return statistics.fmean(
        max(_MIN_SPREAD, quantity(p.samples_s, "s").spread / p.time_s) ** 2 / len(p.samples_s)
        for p in points
    )


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
