"""Rows of measurements, the papers' or one's own, and what our cost model says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from engine.bench.papers import published
from engine.bench.papers.published import BREAKDOWNS, Breakdown
from engine.core.errors import ConfigError
from engine.core.profiles import Calibration
from engine.planner.calibration import MeasuredStep, fit
from engine.planner.flow import Form, StageTimes, step_s

MAX_FILE_BYTES: Final = 1 << 20
_MOST_MS: Final = 1e6


class Row(BaseModel):
    """A pipeline of equal stages in a row, with the client in the loop, and how fast it was."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str
    environment: str = ""
    stages: int = Field(ge=1, le=1000)
    hidden_size: int = Field(ge=1, le=1_000_000)
    batch_size: int = Field(default=32, ge=1, le=1_000_000)
    num_microbatches: int = Field(default=1, ge=1)
    element_bytes: int = Field(default=2, ge=1, le=8)
    compute_ms: float = Field(gt=0, le=_MOST_MS)
    """One micro-batch's pass through one stage."""
    mbit_per_s: float = Field(ge=1e-3, le=1e9)
    """Of each line between stages."""
    delay_ms: float | None = Field(default=None, ge=0, le=_MOST_MS)
    """λ, one way; or else `network_ms`."""
    network_ms: float | None = Field(default=None, ge=0, le=_MOST_MS)
    """One micro-batch from a stage to the next, delay included."""
    codec_ratio: float = Field(default=1.0, gt=0, le=1.0)
    codec_ms: float = Field(default=0.0, ge=0, le=_MOST_MS)
    """Encoding and decoding a micro-batch."""
    tokens_per_s: float = Field(ge=1e-6, le=1e9)
    """Measured."""
    calibrates: bool = False
    """The model's overheads are fitted to its rows that say so. Models without such a row share
    overheads that are fitted to all of their rows."""

    @model_validator(mode="after")
    def _says_how_far(self) -> Row:
        if (self.delay_ms is None) == (self.network_ms is None):
            raise ValueError("give either delay_ms or network_ms")
        if self.num_microbatches > self.batch_size:
            raise ValueError("num_microbatches is larger than batch_size")
        return self

    @property
    def line_s(self) -> float:
        """One micro-batch on one line."""
        rows = -(-self.batch_size // self.num_microbatches)
        raw_bytes = rows * self.hidden_size * self.element_bytes
        sent_bytes = self.codec_ratio * raw_bytes + published.HEADER_BYTES
        return sent_bytes / (self.mbit_per_s * 1e6 / 8)

    @property
    def delay_s(self) -> float:
        """λ."""
        if self.delay_ms is not None:
            return self.delay_ms / 1e3
        return max(0.0, (self.network_ms or 0.0) / 1e3 - self.line_s)

    @property
    def step_s(self) -> float:
        """As measured."""
        return self.batch_size / self.tokens_per_s

    def chain(self) -> tuple[StageTimes, ...]:
        """Stages push to one another; the client's part is in C."""
        hop = StageTimes(self.compute_ms / 1e3, self.codec_ms / 1e3, self.line_s, 0.0, self.delay_s)
        return (*(self.stages - 1) * (hop,), StageTimes(self.compute_ms / 1e3))

    def star(self) -> tuple[StageTimes, ...]:
        """As Petals' generation does it: every stage gets from the client and answers to it."""
        return self.stages * (
            StageTimes(
                self.compute_ms / 1e3,
                2 * self.codec_ms / 1e3,
                2 * self.line_s,
                0.0,
                2 * self.delay_s,
            ),
        )


class Prediction(BaseModel):
    """What our cost model says of a row."""

    model: str
    environment: str
    num_microbatches: int
    codec_ratio: float
    measured_tokens_per_s: float
    predicted_tokens_per_s: float
    error: float
    """Predicted over measured, less 1."""
    star_tokens_per_s: float
    """If the client passed on every stage's output."""
    calibrates: bool


def published_rows() -> list[Row]:
    """Falcon-7B and Mixtral-8x7B in E1 to E5: all numbers are published but the delays.

    The delay of an environment is what its network times, less the bytes' own time on the line,
    come to on average.
    """
    rows = []
    for environment, mbit_per_s in published.MBIT_PER_S.items():
        delay_s = mean(
            breakdown.network_s[environment] - _line_s(breakdown, mbit_per_s)
            for breakdown in BREAKDOWNS
        )
        rows += [
            Row(
                model=breakdown.model,
                environment=environment,
                stages=breakdown.num_stages,
                hidden_size=breakdown.hidden_size,
                batch_size=published.BATCH_SIZE,
                element_bytes=published.ELEMENT_BYTES,
                compute_ms=1e3 * breakdown.compute_s,
                mbit_per_s=mbit_per_s,
                delay_ms=1e3 * delay_s,
                tokens_per_s=breakdown.tokens_per_s[environment],
            )
            for breakdown in BREAKDOWNS
        ]
    return sorted(rows, key=lambda row: row.model)


def _line_s(breakdown: Breakdown, mbit_per_s: float) -> float:
    return 8 * published.hop_bytes(breakdown.hidden_size, published.BATCH_SIZE) / mbit_per_s / 1e6


def read_rows(path: Path) -> list[Row]:
    """Rows from a JSON file: a list of objects with the fields of `Row`.

    Raises:
        ConfigError: It cannot be read, or a field is wrong; says which.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_FILE_BYTES} bytes; give fewer rows.")
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        rows = TypeAdapter(list[Row]).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{path} has a wrong row: {where}: {first['msg']}.") from error
    if not rows:
        raise ConfigError(f"{path} holds no rows; give a list with at least one.")
    return rows


def calibrate(rows: Sequence[Row]) -> dict[str, Calibration]:
    """The overheads of each model: see `Row.calibrates`."""
    own: dict[str, list[Row]] = {}
    for row in rows:
        if row.calibrates:
            own.setdefault(row.model, []).append(row)
    others = [row for row in rows if row.model not in own]
    shared = _fit(others) if others else None
    found = {model: _fit(chosen) for model, chosen in own.items()}
    return found | {row.model: shared for row in others if shared is not None}


def predict(rows: Sequence[Row], calibrations: Mapping[str, Calibration]) -> list[Prediction]:
    """Hold rows against the model."""
    predictions = []
    for row in rows:
        chain, star = (
            row.batch_size
            / step_s(times, row.num_microbatches, calibrations[row.model], form=Form.CHAIN)
            for times in (row.chain(), row.star())
        )
        predictions.append(
            Prediction(
                model=row.model,
                environment=row.environment,
                num_microbatches=row.num_microbatches,
                codec_ratio=row.codec_ratio,
                measured_tokens_per_s=row.tokens_per_s,
                predicted_tokens_per_s=chain,
                error=chain / row.tokens_per_s - 1,
                star_tokens_per_s=star,
                calibrates=row.calibrates,
            )
        )
    return predictions


def _fit(rows: Sequence[Row]) -> Calibration:
    return fit(
        [MeasuredStep(row.chain(), row.num_microbatches, row.step_s) for row in rows], Form.CHAIN
    )
