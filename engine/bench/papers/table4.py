"""[BB] Table 4: which configuration is best, by model and environment; and what our model says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final

from pydantic import BaseModel

from engine.bench.papers.llama import LlamaTimes, option_s
from engine.bench.papers.published import LLAMAS, TABLE_4, Option

WORTH_IT: Final = 0.01
"""Micro-batches and speculation must gain more than this: the rates are published, or read off a
chart, as whole tokens/s of about a hundred."""
VARIED: Final = 0.1
"""By what part each constant is changed, to see what depends on it."""

_REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("30B", "E2"): (
        "[BB] shows all four configurations at about 102 tokens/s here, and §8.6 speculation at "
        "103: nothing is worth it there, while our model sees a little gain in micro-batches"
    ),
    ("65B", "E2"): (
        "nothing is published of 65B but these cells; with the constants of 30B it has larger "
        "messages and a hop more, so all that saves time on lines saves more of it. Its stages are "
        "pairs of GPUs, which wait for each other in every pass, however small: if half a batch "
        "took as long as a whole one there, micro-batches would not pay in E2 and E3"
    ),
    ("65B", "E3"): (
        "as in E2; for 30B, whose messages are smaller, the same table has compression and "
        "micro-batches in E3"
    ),
}


class Cell(BaseModel):
    """One cell."""

    model: str
    environment: str
    published: Option
    ours: Option
    rule: Option
    """What is most frequent in this environment."""
    step_ms: dict[str, float]
    """Of every option."""
    loss: float
    """How much slower the published one is than ours, by our model, as a part."""
    reason: str
    """Why they differ; empty where they do not."""


class Table4(BaseModel):
    """All of them."""

    cells: list[Cell]
    ours: int
    """Cells in which our model agrees …"""
    rule: int
    """… and the rule that looks at the environment alone."""
    of: int
    varied: dict[str, list[int]]
    """Agreement when one constant is a tenth smaller, and a tenth larger."""


def choose(times: LlamaTimes, model: str, environment: str) -> Option:
    """As Shoal would: compression wherever it is faster, the rest where it is worth it."""
    steps_s = _steps_s(times, model, environment)
    best = min((Option.PLAIN, Option.COMPRESSION), key=lambda option: steps_s[option])
    split = min((Option.MICRO_BATCHES, Option.BOTH), key=lambda option: steps_s[option])
    for other in (split, Option.SPECULATION):
        if steps_s[other] * (1 + WORTH_IT) < steps_s[best]:
            best = other
    return best


def table(times: LlamaTimes) -> Table4:
    """Compare."""
    rule = _by_environment()
    cells = []
    for (model, environment), published in TABLE_4.items():
        ours = choose(times, model, environment)
        steps_s = _steps_s(times, model, environment)
        cells.append(
            Cell(
                model=model,
                environment=environment,
                published=published,
                ours=ours,
                rule=rule[environment],
                step_ms={option.value: 1e3 * step_s for option, step_s in steps_s.items()},
                loss=steps_s[published] / steps_s[ours] - 1,
                reason="" if ours is published else _REASONS.get((model, environment), "unknown"),
            )
        )
    return Table4(
        cells=cells,
        ours=sum(cell.ours is cell.published for cell in cells),
        rule=sum(cell.rule is cell.published for cell in cells),
        of=len(cells),
        varied={
            field.name: [
                _agreement(replace(times, **{field.name: factor * getattr(times, field.name)}))
                for factor in (1 - VARIED, 1 + VARIED)
            ]
            for field in fields(times)
        },
    )


def _steps_s(times: LlamaTimes, model: str, environment: str) -> dict[Option, float]:
    return {option: option_s(times, LLAMAS[model], environment, option) for option in Option}


def _agreement(times: LlamaTimes) -> int:
    return sum(choose(times, *key) is published for key, published in TABLE_4.items())


def _by_environment() -> dict[str, Option]:
    """The best rule that knows the environment alone: its most frequent cell."""
    columns: dict[str, Counter[Option]] = {}
    for (_, environment), option in TABLE_4.items():
        columns.setdefault(environment, Counter())[option] += 1
    return {environment: options.most_common(1)[0][0] for environment, options in columns.items()}
