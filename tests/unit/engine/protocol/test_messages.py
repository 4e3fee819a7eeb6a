from __future__ import annotations

import json

import pytest

from engine.core.errors import FrameCorrupt
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import OpenRequest, Ping, parse


def opening(kv_offload: float) -> Frame:
    sequence = {"session": 1, "capacity_tokens": 9, "prompt_tokens": 1, "sampling": {}}
    hops = [{"peer": "me", "start": 0, "end": 4}]
    sequences = [sequence | {"kv_offload": kv_offload}]
    message = {"request": 1, "model_id": "m@1", "hops": hops, "sequences": sequences}
    return Frame(Kind.OPEN, json.dumps(message).encode())


def test_any_share_of_the_cache_in_ram_may_be_asked_for() -> None:
    for share in (0, 0.3, 1):
        (sequence,) = parse(opening(share), OpenRequest).sequences
        assert sequence.kv_offload == share


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), float("inf")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(FrameCorrupt):
        parse(opening(share), OpenRequest)


@pytest.mark.parametrize("rate", ["1e300", "Infinity", "NaN"])
def test_rate_that_could_not_be_announced_is_refused(rate: str) -> None:
    pong = Frame(Kind.PONG, b'{"sequence": 0, "received_bytes_per_s": %s}' % rate.encode())
    with pytest.raises(FrameCorrupt):
        parse(pong, Ping)
