from __future__ import annotations

from xml.etree import ElementTree as ET

from engine.simulator.plot import drawn
from engine.simulator.record import Record, Sample


def texts(record: Record) -> list[str]:
    root = ET.fromstring(drawn(record, "a < b", "under it"))
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def record(tokens_per_s: float, hours: float = 24.0) -> Record:
    samples = tuple(
        Sample(60.0 * minute, tokens_per_s, 2 * tokens_per_s, 20)
        for minute in range(1, round(60 * hours))
    )
    return Record(samples, 0.0, 0.0, 0, 1.0, 3600 * hours)


def test_axes_have_their_units_and_round_numbers() -> None:
    words = texts(record(70.0))
    assert {"tokens/s", "nodes", "time in hours", "served", "possible", "a < b"} <= set(words)
    assert {"0", "50", "100", "150", "12", "24"} <= set(words)


def test_short_runs_and_runs_without_service_are_drawn_too() -> None:
    assert "1" in texts(record(0.0, hours=0.1))
    assert len(drawn(record(50.0, hours=240.0), "", "")) < 120_000
