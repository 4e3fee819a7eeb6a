from __future__ import annotations

from engine.simulator.events import EventQueue


def test_events_happen_in_order_and_of_one_time_as_they_were_asked_for() -> None:
    queue, seen = EventQueue(), []
    queue.at(2.0, lambda: seen.append("second"))
    queue.at(1.0, lambda: (seen.append("first"), queue.after(1.0, lambda: seen.append("third"))))
    queue.at(5.0, lambda: seen.append("at the end, so not yet"))
    queue.run(5.0)
    assert seen == ["first", "second", "third"]
    assert queue.now_s == 5.0
    queue.at(1.0, lambda: seen.append("late"))
    queue.run(6.0)
    assert seen[3:] == ["at the end, so not yet", "late"]
