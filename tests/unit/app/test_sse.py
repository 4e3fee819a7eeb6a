from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.sse import EventReader

STREAM = 'data: {"a": "ä"}\n\n: comment\nevent: x\ndata: two\r\ndata: lines\r\n\r\ndata:bare\n\n'
EVENTS = ['{"a": "ä"}', "two\nlines", "bare"]


@given(st.lists(st.integers(min_value=1, max_value=len(STREAM.encode()) - 1)))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    data, reader = STREAM.encode(), EventReader()
    edges = [0, *sorted(set(cuts)), len(data)]
    got = [
        event for start, end in itertools.pairwise(edges) for event in reader.feed(data[start:end])
    ]
    assert got == EVENTS


def test_event_is_not_reported_before_its_blank_line() -> None:
    reader = EventReader()
    assert reader.feed(b"data: half\n") == []
    assert reader.feed(b"\n") == ["half"]
