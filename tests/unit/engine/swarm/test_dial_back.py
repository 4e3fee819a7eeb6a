"""What another peer may say of our reachability."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError

from engine.swarm.dial_back import Answer, _read_line


@pytest.mark.parametrize(
    "answer",
    [
        {"ip": "1.2.3.4 "},
        {"ip": "elsewhere"},
        {"ip": "1.2.3.4/tcp/1"},
        {"ip": "1.2.3.4", "reached_ports": [0]},
        {"ip": "1.2.3.4", "reached_ports": [70000]},
    ],
)
def test_answer_that_could_not_be_announced_is_none(answer):
    with pytest.raises(ValidationError):
        Answer.model_validate(answer)


def test_addresses_of_both_families_and_none_are_taken():
    assert [Answer(ip=ip).ip for ip in ("", "1.2.3.4", "2a00::1")] == ["", "1.2.3.4", "2a00::1"]


async def test_line_that_does_not_end_is_an_answer_of_no_worth():
    reader = asyncio.StreamReader(limit=64)
    reader.feed_data(b"x" * 1000)
    with pytest.raises(ValueError, match="too long"):
        await _read_line(reader)
