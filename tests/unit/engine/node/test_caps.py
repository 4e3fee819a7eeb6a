import pytest

from engine.config import Config, LimitsConfig, StageConfig
from engine.core.errors import ConfigError
from engine.models.known import starter_spec
from engine.node.caps import GPU_BASE_BYTES, RAM_BASE_BYTES, room_bytes, within_limits
from engine.node.compute import Compute
from engine.protocol.frames import ELEMENT_BYTES

MIB = 1 << 20
SPEC = starter_spec()


def capped(ram_mib: int = 0, gpu_mib: int = 0, **fields) -> Config:
    limits = LimitsConfig(ram_bytes=ram_mib * MIB, gpu_memory_bytes=gpu_mib * MIB)
    return Config(limits=limits, **fields)


def test_without_caps_the_settings_stay_as_they_are():
    assert within_limits(Config(), on_gpu=False) == Config()
    assert within_limits(Config(), on_gpu=True) == Config()


@pytest.mark.parametrize("cap_mib", [1000, 1300, 2000, 4000])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_blocks_and_caches_together_stay_under_the_cap(device, cap_mib):
    on_gpu = device == "cuda"
    base = GPU_BASE_BYTES if on_gpu else RAM_BASE_BYTES
    config = capped(**({"gpu_mib": cap_mib} if on_gpu else {"ram_mib": cap_mib}))
    stage = within_limits(config, on_gpu=on_gpu).stage
    here = Compute(device, "float32", 64 << 30, room_bytes=room_bytes(cap_mib * MIB, base))
    block_bytes = SPEC.block_parameters * ELEMENT_BYTES[here.dtype]
    ends_bytes = SPEC.vocab_size * SPEC.hidden_size * ELEMENT_BYTES[here.dtype]
    try:
        blocks = here.max_blocks(SPEC, stage)
    except ConfigError:  # refused
        blocks, ends_bytes = 0, 0
    in_ram = 0 if on_gpu else stage.kv_ram_budget_bytes + stage.kept_budget_bytes
    used = base + blocks * block_bytes + ends_bytes + stage.kv_budget_bytes + in_ram
    assert used <= cap_mib * MIB
    if cap_mib == 4000:
        assert blocks == SPEC.num_hidden_layers
    assert not here.has_room(SPEC, stage, 1)


def test_a_model_that_does_not_fit_is_refused_with_numbers():
    here = Compute("cpu", "float32", 64 << 30, room_bytes=50 * MIB)
    with pytest.raises(ConfigError, match=r"takes 14 MB, but the limits leave 0 MB"):
        here.max_blocks(SPEC, StageConfig())


def test_who_caps_the_line_relays_for_nobody():
    assert within_limits(Config(), on_gpu=False).swarm.relay_for_others
    slow = Config(limits=LimitsConfig(downlink_bytes_per_s=1e6))
    assert not within_limits(slow, on_gpu=False).swarm.relay_for_others
