from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import LocalProtocolError, RemoteProtocolError
from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, StageState
from engine.protocol.records import (
    MAX_RECORD_BYTES,
    Announcement,
    decode,
    encode,
    record_keys,
)

KEY = b"k" * 32


def announcement(**fields: object) -> Announcement:
    stage = StageInfo(
        peer=PeerId("QmPeer"),
        span=Span(0, 15),
        state=StageState.ONLINE,
        kv_free_tokens=4096,
        decode_tokens_per_s=12.5,
        addresses=("/ip4/10.0.0.1/tcp/4001",),
        version="0.1.0",
        max_blocks=24,
        block_s=0.0021,
        block_row_s=0.0001,
        sessions=3,
        next_span=Span(12, 30),
    )
    whole = Announcement(stage, "starter@0123456789ab", 1_800_000_000.0, 1_800_000_060.0)
    for name, value in fields.items():
        whole = (
            replace(whole, **{name: value})
            if hasattr(whole, name)
            else replace(whole, stage=replace(whole.stage, **{name: value}))
        )
    return whole


@pytest.mark.parametrize("key", [None, KEY])
def test_record_is_the_same_after_the_swarm(key):
    data = encode(announcement(), key)
    assert len(data) < MAX_RECORD_BYTES
    assert decode(data, key) == announcement()


def test_unknown_fields_are_ignored():
    fields = json.loads(encode(announcement(), None)) | {"relays": ["x"], "codecs": 3}
    assert decode(json.dumps(fields).encode(), None) == announcement()


def test_addresses_that_do_not_fit_are_left_out():
    many = tuple(f"/dns4/{'a' * 90}{index}.example/tcp/4001" for index in range(20))
    data = encode(announcement(addresses=many), None)
    assert len(data) <= MAX_RECORD_BYTES
    kept = decode(data, None).stage.addresses
    assert kept == many[: len(kept)]
    assert kept


def test_model_name_that_breaks_the_rules_is_our_own_fault():
    with pytest.raises(LocalProtocolError):
        encode(announcement(model_id="x" * 257), None)


@pytest.mark.parametrize(
    "fields",
    [
        {"start": 5, "end": 5},
        {"start": 9, "end": 3},
        {"start": -1},
        {"end": 99999},
        {"state": "sleeping"},
        {"kv_free_tokens": -1},
        {"decode_tokens_per_s": "NaN"},
        {"decode_tokens_per_s": 1e300},
        {"addresses": ["no address"]},
        {"addresses": ["/ip4/1.2.3.4/tcp/1"] * 17},
        {"peer": ""},
        {"expires_unix_s": 1_800_000_000.0},
        {"expires_unix_s": 1_800_001_000.0},
        {"version": "v" * 33},
        {"max_blocks": -1},
        {"max_blocks": 5000},
        {"block_s": "NaN"},
        {"block_s": -0.001},
        {"block_s": 1e300},
        {"block_row_s": "Infinity"},
        {"sessions": -1},
        {"next_end": 99999},
    ],
)
def test_record_with_a_wrong_field_is_refused(fields):
    data = json.dumps(json.loads(encode(announcement(), None)) | fields).encode()
    with pytest.raises(RemoteProtocolError):
        decode(data, None)


def test_oversized_record_is_refused():
    data = encode(announcement(), None)
    padded = data + b" " * (MAX_RECORD_BYTES + 1 - len(data))
    with pytest.raises(RemoteProtocolError, match="too large"):
        decode(padded, None)


def test_record_by_a_stranger_is_refused_in_a_private_swarm():
    for data in (encode(announcement(), None), encode(announcement(), b"x" * 32), b"", b"short"):
        with pytest.raises(RemoteProtocolError, match="not by a member"):
            decode(data, KEY)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data):
    for key in (None, KEY):
        with pytest.raises(RemoteProtocolError):
            decode(data, key)


def test_keys_are_sharded_by_buckets_of_16_blocks():
    def keys(start, end):
        return record_keys("s", "m", Span(start, end), None)

    assert len(keys(0, 16)) == 1
    assert keys(0, 1) == keys(15, 16) == keys(0, 16)
    assert len(keys(15, 17)) == 2
    assert keys(16, 32) == keys(0, 32)[1:]
    assert keys(3, 3) == ()


def test_keys_differ_by_swarm_model_and_secret():
    span = Span(0, 16)
    all_keys = {
        record_keys(swarm, model, span, key)
        for swarm in ("s", "s1")
        for model in ("m", "1m")
        for key in (None, KEY, b"x" * 32)
    }
    assert len(all_keys) == 12
