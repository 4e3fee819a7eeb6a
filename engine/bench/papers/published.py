"""What [BB] has published of its measurements, each number with its place. Nothing here is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

BATCH_SIZE: Final = 32
"""§8: of all rows here."""
ELEMENT_BYTES: Final = 2
"""§8: FP16."""
HEADER_BYTES: Final = round(0.4 * KIB)
"""§8, breakdown: 284.4 KB per hop, where 32 rows of Falcon's 4,544 numbers are 284.0."""
MBIT_PER_S: Final[Mapping[str, float]] = {
    "E1": 45_000.0,
    "E2": 500.0,
    "E3": 250.0,
    "E4": 125.0,
    "E5": 20.0,
}
"""§8, environments."""
E6_MBIT_PER_S: Final = (312.0, 643.0)
"""§8, three real sites in the order in which it lists them: California, New Jersey, Canada."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A model in the table of step times (§8): network time from stage 1 to stage 2, and tokens/s."""

    model: str
    num_stages: int
    hidden_size: int
    compute_s: float
    """A stage's, of the whole batch."""
    network_s: Mapping[str, float]
    tokens_per_s: Mapping[str, float]


_ENVIRONMENTS: Final = ("E1", "E2", "E3", "E4", "E5")


def _by_environment(*values: float) -> dict[str, float]:
    return dict(zip(_ENVIRONMENTS, values, strict=True))


BREAKDOWNS: Final = (
    Breakdown(
        "Falcon-7B",
        2,
        4544,
        0.0355,
        _by_environment(0.0083, 0.0360, 0.0635, 0.0988, 0.2209),
        _by_environment(119.4, 111.9, 107.0, 97.3, 66.2),
    ),
    Breakdown(
        "Mixtral-8x7B",
        4,
        4096,
        0.0385,
        _by_environment(0.0040, 0.0333, 0.0624, 0.0966, 0.2097),
        _by_environment(93.0, 77.9, 63.3, 52.8, 32.7),
    ),
)


class Option(StrEnum):
    """How a pipeline is run: the words of Table 4."""

    PLAIN = "plain"
    COMPRESSION = "compression"
    MICRO_BATCHES = "micro-batches"
    BOTH = "compression + micro-batches"
    SPECULATION = "speculation"

    @property
    def is_compressed(self) -> bool:
        """Whether hidden states are."""
        return self in (Option.COMPRESSION, Option.BOTH)

    @property
    def num_microbatches(self) -> int:
        """M: micro-batches of 16 beat those of 8 at B = 32 (§8)."""
        return 2 if self in (Option.MICRO_BATCHES, Option.BOTH) else 1


@dataclass(frozen=True, slots=True)
class Llama:
    """One of the three LLaMA models of §8."""

    num_stages: int
    hidden_size: int
    codec_ratio: float


_RATIO_13B: Final = 0.46
"""Table 1: its decode activations compress to 46 %."""
_RATIO_30B: Final = 312.6 / 416.4
"""§8.5: KB per hop. Nothing is published for 65B, so it has the same."""

LLAMAS: Final[Mapping[str, Llama]] = {
    "13B": Llama(2, 5120, _RATIO_13B),
    "30B": Llama(3, 6656, _RATIO_30B),
    "65B": Llama(4, 8192, _RATIO_30B),
}
CODEC_S_PER_BYTE: Final = 0.300 / (76.5 * MIB)
"""Table 1: 300 ms for 76.5 MiB; counted once a hop."""
NIC_S_30B: Final = (
    # environment, compressed, network time per hop
    ("E3", False, 0.025),
    ("E3", True, 0.019),
    ("E4", False, 0.045),
    ("E4", True, 0.039),
    ("E5", False, 0.269),
    ("E5", True, 0.217),
)
"""§8, what compression saves."""

_PLAIN, _COMPRESSION = Option.PLAIN, Option.COMPRESSION
_MICRO_BATCHES, _BOTH, _SPECULATION = Option.MICRO_BATCHES, Option.BOTH, Option.SPECULATION

TOKENS_PER_S_30B: Final = (
    *(("E1", option, 104.0) for option in (_PLAIN, _COMPRESSION, _MICRO_BATCHES, _BOTH)),
    *(("E2", option, 102.0) for option in (_PLAIN, _COMPRESSION, _MICRO_BATCHES, _BOTH)),
    ("E3", _PLAIN, 95.0),
    ("E3", _BOTH, 100.0),
    ("E4", _PLAIN, 84.0),
    ("E4", _BOTH, 99.0),
    ("E5", _PLAIN, 38.0),
    ("E5", _COMPRESSION, 45.0),
    ("E5", _MICRO_BATCHES, 53.0),
    ("E5", _BOTH, 67.0),
)
"""§8, LLaMA-30B, B = 32; E1 to E4 read off a chart."""
E6_TOKENS_PER_S_30B: Final = (
    ("E6", _PLAIN, 89.0),
    ("E6", _COMPRESSION, 92.0),
    ("E6", _MICRO_BATCHES, 105.0),
    ("E6", _BOTH, 108.0),
)
"""§8; plain is Petals, which is as fast as plain in E5. Other GPUs, and the real internet."""
SPECULATION_TOKENS_PER_S_30B: Final = {"E1": 117.0, "E2": 103.0, "E3": 75.0}
"""§8.6, with the pruned tree."""

TABLE_4: Final[Mapping[tuple[str, str], Option]] = {
    ("13B", "E1"): _SPECULATION,
    ("13B", "E2"): _COMPRESSION,
    ("13B", "E3"): _COMPRESSION,
    ("13B", "E4"): _COMPRESSION,
    ("13B", "E5"): _BOTH,
    ("30B", "E1"): _SPECULATION,
    ("30B", "E2"): _PLAIN,
    ("30B", "E3"): _BOTH,
    ("30B", "E4"): _BOTH,
    ("30B", "E5"): _BOTH,
    ("30B", "E6"): _BOTH,
    ("65B", "E1"): _SPECULATION,
    ("65B", "E2"): _PLAIN,
    ("65B", "E3"): _PLAIN,
    ("65B", "E4"): _BOTH,
    ("65B", "E5"): _BOTH,
}
"""The configuration that [BB]'s planner chose, by model and environment."""


def line_bytes_per_s(environment: str) -> tuple[float, ...]:
    """Rates of the lines from stage to stage; E1 to E5: of each of them."""
    mbits = E6_MBIT_PER_S if environment == "E6" else (MBIT_PER_S[environment],)
    return tuple(mbit * 1e6 / 8 for mbit in mbits)


def hop_bytes(hidden_size: int, rows: int) -> int:
    """V: hidden states of so many rows, in one message."""
    return rows * hidden_size * ELEMENT_BYTES + HEADER_BYTES
