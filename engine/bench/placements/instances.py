"""Random swarms to plan for, the same for the same seed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random
from typing import Final

from engine.core.ids import PeerId
from engine.core.profiles import BlockTimes, LinearTime, ModelSize, NetworkMatrix, NodeProfile

_MBIT: Final = 1e6 / 8
_GB: Final = 10**9
_HIDDEN_SIZE: Final = 8192
_ELEMENT_BYTES: Final = 2
_BLOCK_BYTES: Final = 1_711_000_000
"""Of a 70B model with 80 blocks, in bfloat16; as are all of these."""
_TABLE_BYTES: Final = 2 * 32_000 * _HIDDEN_SIZE
_KV_BYTES: Final = 2 * 8 * 128 * _ELEMENT_BYTES
_PROMISED_TOKENS: Final = 32 * 2048
"""Room in the cache that a batch takes, as `Objective` promises it."""
_REGIONS: Final = 3
_GRAPHICS_CARDS: Final = ((8, 0.45e12), (12, 0.36e12), (16, 0.5e12), (24, 0.9e12), (48, 0.8e12))
"""GB of memory, and bytes of it that are read in a second: most of what a decode pass does."""
_ROOM: Final = (1.2, 2.5)
"""All machines together have so many times the memory that the model takes with its cache, or more:
it is a smaller one where they have less."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Machines, lines and a model."""

    profiles: tuple[NodeProfile, ...]
    network: NetworkMatrix
    model: ModelSize


def random_instance(num_machines: int, num_blocks: int, seed: int) -> Instance:
    """Home machines in a few regions, and a model of so many blocks that fits into them.

    Args:
        num_machines: N.
        num_blocks: L.
        seed: Equal seeds give equal swarms.
    """
    rng = Random(f"{num_machines} {num_blocks} {seed}")  # noqa: S311 - nothing secret
    cards = [rng.choice(_GRAPHICS_CARDS) for _ in range(num_machines)]
    room = rng.uniform(*_ROOM)
    card_bytes = sum(memory for memory, _ in cards) * _GB
    whole_bytes = num_blocks * (_BLOCK_BYTES + _PROMISED_TOKENS * _KV_BYTES)
    scale = min(1.0, card_bytes / room / whole_bytes)
    model = ModelSize(
        num_blocks=num_blocks,
        hidden_size=_HIDDEN_SIZE,
        element_bytes=_ELEMENT_BYTES,
        block_bytes=int(scale * _BLOCK_BYTES),
        embedding_bytes=int(scale * _TABLE_BYTES),
        head_bytes=int(scale * _TABLE_BYTES),
        kv_bytes_per_token=int(scale * _KV_BYTES),
    )
    profiles = tuple(
        _profile(rng, PeerId(f"peer-{place:03}"), memory, rate, model)
        for place, (memory, rate) in enumerate(cards)
    )
    return Instance(profiles, _network(rng, [profile.peer for profile in profiles]), model)


def _profile(
    rng: Random, peer: PeerId, memory_gb: int, read_bytes_per_s: float, model: ModelSize
) -> NodeProfile:
    slower = rng.uniform(1.0, 1.6)
    weights_s = slower * model.block_bytes / read_bytes_per_s
    return NodeProfile(
        peer=peer,
        block=BlockTimes(
            mlp=LinearTime(weights_s + 1e-4, slower * 5e-6),
            attention=LinearTime(2e-5, slower * model.kv_bytes_per_token / read_bytes_per_s),
            ram_attention=None,
            prefill_row_s=slower * 4e-6,
        ),
        head=LinearTime(model.head_bytes / read_bytes_per_s, 2e-6),
        pass_overhead_s=rng.uniform(0.5e-3, 2e-3),
        memory_bytes=memory_gb * _GB,
        ram_bytes=0,
        uplink_bytes_per_s=_MBIT * rng.choice((20, 40, 100, 250, 500, 1000)),
        downlink_bytes_per_s=_MBIT * rng.choice((100, 250, 500, 1000)),
        encode_bytes_per_s=rng.uniform(0.4e9, 1.1e9),
        decode_bytes_per_s=rng.uniform(0.8e9, 1.5e9),
    )


def _network(rng: Random, peers: list[PeerId]) -> NetworkMatrix:
    regions = [rng.randrange(_REGIONS) for _ in peers]
    apart_s = [[rng.uniform(0.02, 0.09) for _ in range(_REGIONS)] for _ in range(_REGIONS)]

    def delay_s(one: int, other: int) -> float:
        if one == other:
            return 0.0
        if regions[one] == regions[other]:
            return rng.uniform(0.004, 0.015)
        return apart_s[regions[one]][regions[other]] + rng.uniform(0.0, 0.01)

    return NetworkMatrix(
        peers=tuple(peers),
        delay_s=tuple(
            tuple(delay_s(one, other) for other in range(len(peers))) for one in range(len(peers))
        ),
        bytes_per_s=tuple(tuple(inf for _ in peers) for _ in peers),
    )
