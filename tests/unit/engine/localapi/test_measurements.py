import math
from dataclasses import replace

import pytest

from engine.core.ids import PeerId
from engine.core.profiles import ModelSize
from engine.localapi.measurements import Limits, MeasuredProfile
from tests.support.measured import measured_profile, quantity

PEER = PeerId("a")
SAME = ModelSize(
    num_blocks=4,
    hidden_size=64,
    element_bytes=4,
    block_bytes=4_000_000,
    embedding_bytes=2_000_000,
    head_bytes=2_000_000,
    kv_bytes_per_token=400,
)


def test_a_model_of_the_measured_sizes_takes_the_measured_times():
    node = measured_profile().node_profile(PEER, SAME)
    assert node.peer == PEER
    assert (node.block.mlp.base_s, node.block.mlp.unit_s) == pytest.approx((0.003, 0.0002))
    assert node.block.attention.of(1000) == pytest.approx(0.0015)
    assert node.block.prefill_row_s == pytest.approx(0.0001)
    assert node.head.of(10) == pytest.approx(0.008)
    assert node.pass_overhead_s == pytest.approx(0.0003)
    assert node.block.ram_attention is None


def test_what_frames_cost_goes_into_plans_and_is_nothing_where_it_was_not_measured():
    node = measured_profile().node_profile(PEER, SAME)
    assert (node.frame.base_s, node.frame.unit_s) == (0, 0)
    frame = {
        "base_s": quantity(0.0006),
        "unit_s": quantity(7e-9, "s/B"),
        "residual": quantity(0, "1"),
    }
    node = measured_profile(frame=frame, frame_shares_cores=False).node_profile(PEER, SAME)
    assert node.frame.of(1000) == pytest.approx(0.000607)
    assert not node.frame_shares_cores


def test_blocks_ten_times_as_large_cost_ten_times_but_for_starting_their_operations():
    large = replace(SAME, block_bytes=40_000_000)
    node = measured_profile().node_profile(PEER, large)
    assert node.block.mlp.base_s == pytest.approx(0.001 + 10 * 0.002)
    assert node.block.mlp.unit_s == pytest.approx(0.002)
    assert node.block.prefill_row_s == pytest.approx(0.001)
    assert node.block.attention.unit_s == pytest.approx(1e-6), "keys and values are no larger"


def test_attention_grows_with_keys_and_values_and_the_head_with_its_weights():
    other = replace(SAME, kv_bytes_per_token=1200, head_bytes=8_000_000)
    node = measured_profile().node_profile(PEER, other)
    assert node.block.attention.unit_s == pytest.approx(3e-6)
    assert node.block.attention.base_s == pytest.approx(0.0005)
    assert (node.head.base_s, node.head.unit_s) == pytest.approx((0.016, 0.0016))


def test_a_float32_machine_computes_a_bfloat16_model_as_fast_but_holds_half_of_it():
    narrow = replace(
        SAME, element_bytes=2, block_bytes=2_000_000, head_bytes=1_000_000, kv_bytes_per_token=200
    )
    wide, half = (measured_profile().node_profile(PEER, size) for size in (SAME, narrow))
    assert half.block == wide.block
    assert half.head == wide.head
    assert half.memory_bytes == wide.memory_bytes // 2


def test_limits_replace_what_was_free_and_cap_what_the_line_carries():
    profile = measured_profile(uplink_bytes_per_s=quantity(1e6, "B/s"))
    free = profile.node_profile(PEER, SAME)
    assert free.memory_bytes == int(0.6 * 2e9)
    assert (free.uplink_bytes_per_s, free.downlink_bytes_per_s) == (1e6, math.inf)
    limits = Limits(memory_bytes=5000, uplink_bytes_per_s=1e5, downlink_bytes_per_s=2e7)
    capped = profile.node_profile(PEER, SAME, limits)
    assert capped.memory_bytes == 5000
    assert (capped.uplink_bytes_per_s, capped.downlink_bytes_per_s) == (1e5, 2e7)


def test_json_keeps_every_value_with_spread_and_unit():
    profile = measured_profile(uplink_bytes_per_s=quantity(1e6, "B/s", spread=5e4))
    again = MeasuredProfile.model_validate_json(profile.model_dump_json())
    assert again == profile
    assert profile.model_dump()["uplink_bytes_per_s"] == quantity(1e6, "B/s", spread=5e4)
