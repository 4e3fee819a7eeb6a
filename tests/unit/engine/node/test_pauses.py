from datetime import datetime

import pytest
from pydantic import ValidationError

from engine.localapi.schema import PauseRequest
from engine.node import pauses
from engine.node.pauses import Pause, tomorrow


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-30T14:00", "2026-12-01T06:00"),
        ("2026-11-30T23:50", "2026-12-01T06:00"),
        ("2026-12-01T01:00", "2026-12-01T06:00"),
        ("2026-12-01T04:00", "2026-12-02T06:00"),
        ("2026-12-31T06:00", "2027-01-01T06:00"),
    ],
)
def test_tomorrow_is_the_next_morning_after_a_night(now, expected):
    assert tomorrow(datetime.fromisoformat(now)) == datetime.fromisoformat(expected)


def test_a_pause_is_kept_until_it_ends(tmp_path):
    file = tmp_path / "pause.json"
    pause = Pause.asked(PauseRequest(seconds=60), unix_s=1000.0)
    pauses.save(file, pause)
    assert pauses.load(file, 1059.0) == pause
    assert pauses.load(file, 1061.0) is None
    assert not file.exists()


def test_what_cannot_be_read_is_a_pause_until_the_person_resumes(tmp_path):
    file = tmp_path / "pause.json"
    file.write_text("{")
    kept = pauses.load(file, 0.0)
    assert kept is not None
    assert kept.reason == "Paused until you resume."
    pauses.save(file, None)
    assert pauses.load(file, 0.0) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "Paused until you resume."),
        ({"seconds": 5.0}, "Paused for a while."),
        ({"until_tomorrow": True}, "Paused until tomorrow."),
        ({"scope": "everything"}, "Everything is paused until you resume."),
    ],
)
def test_a_pause_says_what_and_how_long(fields, reason):
    assert Pause.asked(PauseRequest(**fields), 0.0).reason == reason


def test_two_ends_of_one_pause_are_refused():
    with pytest.raises(ValidationError, match="contradict"):
        PauseRequest(seconds=5.0, until_tomorrow=True)
