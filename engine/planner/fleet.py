"""The machines of a plan and the lines between them, in an order that all who plan share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.core.ids import PeerId
from engine.core.profiles import NetworkMatrix, NodeProfile

_SLOWEST: Final = 1e-6
"""Bytes per second: of a codec that a machine does not have, and of a line at least, since rates may
come from strangers and be divided by."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Machines by peer id, so that the order in which they were listed decides nothing."""

    profiles: tuple[NodeProfile, ...]
    delay_s: NDArray[np.float64]
    """λ, [N, N], one way from row to column; `inf`: unreachable."""
    bytes_per_s: NDArray[np.float64]
    """[N, N], the narrowest of uplink, downlink and the line between them."""
    encode_s_per_byte: NDArray[np.float64]
    """[N]; so long that it never pays where a machine cannot."""
    decode_s_per_byte: NDArray[np.float64]

    @classmethod
    def of(cls, profiles: Sequence[NodeProfile], network: NetworkMatrix) -> Fleet:
        """Bring machines and lines together.

        Raises:
            ValueError: A machine is listed twice, or the network does not know it.
        """
        twice = [peer for peer, times in Counter(p.peer for p in profiles).items() if times > 1]
        if twice:
            raise ValueError(f"{twice[0]} is listed twice")
        place = {peer: index for index, peer in enumerate(network.peers)}
        unknown = [profile.peer for profile in profiles if profile.peer not in place]
        if unknown:
            raise ValueError(f"the network does not know {unknown[0]}")
        ordered = tuple(sorted(profiles, key=lambda profile: profile.peer))
        places = [place[profile.peer] for profile in ordered]
        pick = np.ix_(places, places)
        lines = np.array(network.bytes_per_s, dtype=np.float64).reshape(len(place), len(place))
        delays = np.array(network.delay_s, dtype=np.float64).reshape(len(place), len(place))
        up = np.array([profile.uplink_bytes_per_s for profile in ordered])
        down = np.array([profile.downlink_bytes_per_s for profile in ordered])
        encode = np.array([profile.encode_bytes_per_s for profile in ordered])
        decode = np.array([profile.decode_bytes_per_s for profile in ordered])
        return cls(
            ordered,
            delays[pick],
            np.maximum(np.minimum(lines[pick], np.minimum(up[:, None], down[None, :])), _SLOWEST),
            1 / np.maximum(encode, _SLOWEST),
            1 / np.maximum(decode, _SLOWEST),
        )

    def __len__(self) -> int:
        """Machines."""
        return len(self.profiles)

    @property
    def peers(self) -> tuple[PeerId, ...]:
        """Their ids, ascending."""
        return tuple(profile.peer for profile in self.profiles)

    def of_places(self, places: Sequence[int]) -> Fleet:
        """Some of the machines; `places` ascending."""
        pick = np.ix_(places, places)
        return Fleet(
            tuple(self.profiles[place] for place in places),
            self.delay_s[pick],
            self.bytes_per_s[pick],
            self.encode_s_per_byte[list(places)],
            self.decode_s_per_byte[list(places)],
        )
