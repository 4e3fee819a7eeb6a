from __future__ import annotations

from typing import Any

from app.bench.report import Report, Stalls, lines


def stalls(**fields: Any) -> Stalls:
    known = {
        "seconds": 20, "longest_ms": 12, "busy_ms": 9, "where": "", "busiest_ms": 9,
        "busiest_where": "", "late": 0, "median_ms": 8,
    }  # fmt: skip
    return Stalls.model_validate(known | fields)


def report(**fields: Any) -> Report:
    known: dict[str, Any] = {
        "platform": "xcb", "surface": "tray", "qt": "6.11", "cores": 2, "launch_s": 1.0,
        "launches_s": [1.0], "rss_bytes": {"idle": 90_000_000}, "rss_peak_bytes": 120_000_000,
        "idle_cpu_percent": 0.1, "idle_windows_cpu_percent": 0.3, "messages": 10_000, "open_s": 0.2,
        "rows": 50_000, "rows_done": 900, "streamed_tokens": 2000,
        "stalls": dict.fromkeys(("window", "open", "stream", "batch"), stalls()),
    }  # fmt: skip
    return Report.model_validate(known | fields)


def test_each_number_says_how_near_its_target_it_is() -> None:
    text = "\n".join(lines(report()))
    assert "launch                       1.00 s  of 2 ( 50%, met)" in text
    assert "memory                     120.00 MB of 150 ( 80%, met)" in text
    assert "MISSED" not in text


def test_a_missed_target_is_told_with_the_function_that_missed_it() -> None:
    late = stalls(longest_ms=75, busy_ms=70, where="windows.transcript.Transcript._restack")
    slow = report(stalls=report().stalls | {"stream": late})
    assert [one.name for one in slow.targets if not one.met] == ["longest stall, stream"]
    text = "\n".join(lines(slow))
    assert "longest stall, stream       75.00 ms of 50 (150%, MISSED)" in text
    assert "away 75 ms at most, 70 of them computing in windows.transcript.Transcript._re" in text
