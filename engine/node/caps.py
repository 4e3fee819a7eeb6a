"""The person's caps, turned into the room that a stage has."""

from __future__ import annotations

from engine.config import Config

RAM_BASE_BYTES = 950 << 20
"""What the agent, libp2p and a worker without blocks take."""
GPU_BASE_BYTES = 600 << 20
"""What a CUDA context and its libraries take."""
KV_SHARE = 0.3
"""Of the room under a cap, KV caches get at most so much; the rest is for blocks."""


def within_limits(config: Config, *, on_gpu: bool) -> Config:
    """The settings with every budget that a cap leaves no room for made smaller."""
    stage, swarm, limits = config.stage, config.swarm, config.limits
    ram = room_bytes(limits.ram_bytes, RAM_BASE_BYTES)
    where = room_bytes(limits.gpu_memory_bytes, GPU_BASE_BYTES) if on_gpu else ram
    if where is not None:
        most = max(int(where * KV_SHARE), 1 << 20)
        stage = stage.model_copy(update={"kv_budget_bytes": min(stage.kv_budget_bytes, most)})
    if ram is not None:
        share = int(ram * (KV_SHARE if on_gpu else KV_SHARE / 3))
        stage = stage.model_copy(
            update={
                "kv_ram_budget_bytes": min(stage.kv_ram_budget_bytes, share),
                "kept_budget_bytes": min(stage.kept_budget_bytes, share),
                "replica_budget_bytes": 0,  # nothing that could do without it
            }
        )
    if limits.uplink_bytes_per_s or limits.downlink_bytes_per_s:
        # What libp2p relays does not pass through our links, so nothing could hold it back.
        swarm = swarm.model_copy(update={"relay_for_others": False})
    return config.model_copy(update={"stage": stage, "swarm": swarm})


def room_bytes(cap_bytes: int, base_bytes: int) -> int | None:
    """What a cap leaves for blocks and caches; None without a cap."""
    return max(0, cap_bytes - base_bytes) if cap_bytes else None
