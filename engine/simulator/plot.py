"""A picture of a simulation, as SVG: what is served of what is possible, and how many nodes there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from engine.simulator.record import Record

WIDTH: Final = 920
HEIGHT: Final = 560
_LEFT: Final = 76
_RIGHT: Final = 24
_POSSIBLE: Final = "#9aa5b1"
_SERVED: Final = "#0b7285"
_NODES: Final = "#495057"
_MAX_POINTS: Final = 1500
"""More than one for each pixel only make the file larger."""
_TICKS: Final = 5
_HOUR_STEPS: Final = (1 / 60, 1 / 12, 1 / 4, 1 / 2, 1, 2, 3, 4, 6, 12, 24)


@dataclass(frozen=True, slots=True)
class _Panel:
    """One pair of axes; values are in its units, the picture in pixels."""

    top: int
    bottom: int
    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / self.most_x

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * value / self.most_y

    def line(self, points: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def axes(self, unit: str, steps_x: Sequence[float], steps_y: Sequence[float]) -> list[str]:
        """Grid, numbers and the unit of the upright axis."""
        out = []
        for value in steps_y:
            at = self.y(value)
            out += [
                f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>',
                f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>',
            ]
        for value in steps_x:
            at = self.x(value)
            out += [
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{self.top}" y2="{self.bottom}" class="grid"/>',
                f'<text x="{at:.1f}" y="{self.bottom + 17}" text-anchor="middle">{value:g}</text>',
            ]
        middle = (self.top + self.bottom) / 2
        out += [
            f'<rect x="{_LEFT}" y="{self.top}" width="{WIDTH - _LEFT - _RIGHT}" '
            f'height="{self.bottom - self.top}" class="frame"/>',
            f'<text transform="translate(20 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{unit}</text>",
        ]
        return out


def drawn(record: Record, title: str, subtitle: str) -> str:
    """The picture.

    Args:
        record: The run; it has samples.
        title: Over the picture.
        subtitle: Under that.
    """
    samples = record.samples[:: math.ceil(len(record.samples) / _MAX_POINTS)]
    hours = [sample.at_s / 3600 for sample in samples]
    most_h = max(record.duration_s / 3600, hours[-1])
    step_h = next((step for step in _HOUR_STEPS if most_h / step <= 12), 24.0)
    steps_h = _steps(most_h, step_h)
    rate = max(max(s.tokens_per_s, s.bound_tokens_per_s) for s in samples)
    rates, most_rate = _round_steps(rate)
    nodes, most_nodes = _round_steps(max(s.nodes for s in samples), least_step=1)
    upper = _Panel(96, 386, most_h, most_rate)
    lower = _Panel(426, 506, most_h, most_nodes)

    def line(panel: _Panel, values: Callable[[int], float], colour: str) -> str:
        points = panel.line((hours[i], values(i)) for i in range(len(samples)))
        return f'<polyline points="{points}" stroke="{colour}" class="line"/>'

    served = upper.line((hours[i], samples[i].tokens_per_s) for i in range(len(samples)))
    first, last = upper.x(hours[0]), upper.x(hours[-1])
    parts = [
        f'<text x="{_LEFT}" y="30" class="title">{escape(title)}</text>',
        f'<text x="{_LEFT}" y="50">{escape(subtitle)}</text>',
        *_key(_LEFT, 76, "possible", _POSSIBLE),
        *_key(_LEFT + 110, 76, "served", _SERVED),
        *upper.axes("tokens/s", steps_h, rates),
        f'<polygon points="{first:.1f},{upper.bottom} {served} {last:.1f},{upper.bottom}" '
        f'fill="{_SERVED}" fill-opacity="0.15"/>',
        line(upper, lambda i: samples[i].bound_tokens_per_s, _POSSIBLE),
        line(upper, lambda i: samples[i].tokens_per_s, _SERVED),
        *lower.axes("nodes", steps_h, nodes),
        line(lower, lambda i: float(samples[i].nodes), _NODES),
        f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">'
        "time in hours</text>",
    ]
    return "\n".join([_HEAD, *parts, "</svg>", ""])


_HEAD: Final = f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" \
width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#343a40">
<style>
.grid {{ stroke: #e9ecef; }} .frame {{ fill: none; stroke: #adb5bd; }}
.line {{ fill: none; stroke-width: 1.5; stroke-linejoin: round; }}
.title {{ font-size: 17px; font-weight: bold; }}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>"""


def _key(x: int, y: int, text: str, colour: str) -> list[str]:
    return [
        f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" '
        'stroke-width="3"/>',
        f'<text x="{x + 28}" y="{y}">{text}</text>',
    ]


def _round_steps(most: float, least_step: float = 0.0) -> tuple[Sequence[float], float]:
    """Numbers for an axis up to `most` or a little further, and its end."""
    most = most or 1.0
    power = 10.0 ** math.floor(math.log10(most / _TICKS))
    step = next(power * size for size in (1, 2, 5, 10) if most / (power * size) <= _TICKS)
    step = max(step, least_step)
    end = math.ceil(most / step) * step
    return _steps(end, step), end


def _steps(end: float, step: float) -> Sequence[float]:
    return [step * count for count in range(math.floor(end / step + 1e-9) + 1)]
