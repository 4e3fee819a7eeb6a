"""Acceptance by probabilities, for unpruned sampled chains: DSD, DSSD and DISCO ([DC]).

A token x drawn from q is accepted with probability min(1, p(x) / q(x)); the first that is not gives
way to one drawn from what p has more than that. The three modes differ in who knows what:

- DSD: q travels in full, the last stage draws again.
- DSSD: p of the refused place travels back in full, the client draws again. Both sides then take
  for p what is left of it in two bytes (`normalised`).
- DISCO: the last stage computes q with its own replica of the draft, and only after a refusal.

Probabilities travel in two bytes. They are rounded up, so that none becomes 0 and acceptance stays
below 1, and the rounded weights q̂ are what is drawn from, accepted by and subtracted: with c = Σ q̂
the chain is drawn from q̂ / c, and the rest is p - min(p, q̂) / c, so the outcome is exactly p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.sampling.noise import Stream, acceptance_number, gumbel_noise

Probabilities = npt.NDArray[np.float64]
TwoBytes = npt.NDArray[np.float16]

_LARGEST_WEIGHT = 1.001
"""A probability of 1 may have come out of a sum a little above it."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Where the random numbers of one answer come from."""

    seed: int
    choice: int

    def token(self, weights: Probabilities | TwoBytes, position: int) -> int:
        """Draw by weights [V] that need not sum to 1: what the draft does, and the target."""
        return self._draw(weights, position, Stream.TOKENS)

    def accepts(self, p: float, q: float, position: int) -> bool:
        """Whether the token drafted for a position stays, with probability min(1, p / q)."""
        return acceptance_number(self.seed, self.choice, position) * q < p

    def another(self, rest: Probabilities, position: int) -> int:
        """Draw what takes the place of a refused token; `rest` as `residual` gives it."""
        return self._draw(rest, position, Stream.RESIDUAL)

    def _draw(self, weights: Probabilities | TwoBytes, position: int, stream: Stream) -> int:
        noise = gumbel_noise(self.seed, self.choice, position, len(weights), stream)
        with np.errstate(divide="ignore"):
            return int((np.log(weights.astype(np.float64)) + noise).argmax())


def rounded_up(probabilities: npt.NDArray[np.floating[Any]]) -> TwoBytes:
    """Two-byte weights, none below its probability; what is 0 stays 0."""
    rounded = probabilities.astype(np.float16)
    too_small = rounded.astype(np.float64) < probabilities
    return np.where(too_small, np.nextafter(rounded, np.float16(np.inf)), rounded)


def normalised(weights: TwoBytes) -> Probabilities:
    """The distribution that two-byte weights stand for; within 2^-10 of what they were made from."""
    exact = weights.astype(np.float64)
    distribution: Probabilities = exact / exact.sum()
    return distribution


def count_accepted(
    ids: Sequence[int],
    q_of_ids: Sequence[float],
    p: Sequence[Probabilities],
    draws: Draws,
    first_position: int,
) -> int:
    """How many tokens of a chain stay; the same in all three modes.

    Args:
        ids: The γ drafted tokens.
        q_of_ids: Their two-byte weights as the client sent them.
        p: The target's distributions at their places, each [V]; only as many are looked at as
            there are decisions.
        draws: The answer's.
        first_position: Place in the sequence of the first drafted token.

    Raises:
        RemoteProtocolError: A weight can be no probability.
    """
    for q in q_of_ids:
        if not 0 < q <= _LARGEST_WEIGHT:
            raise RemoteProtocolError(
                f"A client says that it drafted a token with the probability {q}, which is none."
            )
    for place, (id_, q) in enumerate(zip(ids, q_of_ids, strict=True)):
        if not draws.accepts(float(p[place][id_]), q, first_position + place):
            return place
    return len(ids)


def residual(p: Probabilities, q: TwoBytes) -> Probabilities:
    """Weights [V] to draw from after a refusal: p less what acceptance has given already.

    Args:
        p: The target's distribution, [V].
        q: The draft's two-byte weights, [V].
    """
    weights = q.astype(np.float64)
    rest: Probabilities = p - np.minimum(p, weights) / weights.sum()
    # Rounding alone can leave less than nothing.
    return np.maximum(rest, 0.0)


def check_replica(q_sent: float, q_replica: float, largest_difference: float) -> None:
    """DISCO: hold what the client said of a refused token against the last stage's own replica.

    Replicas that compute in batches of another shape differ by a few of the last bits (float32:
    3e-6 at most); anything more is another draft, or a lie that would bend the distribution.

    Args:
        q_sent: The two-byte weight that the client sent.
        q_replica: The replica's own, rounded in the same way.
        largest_difference: Of the probabilities before rounding.

    Raises:
        RemoteProtocolError: They do not agree.
    """
    one_step = max(q_sent, q_replica) * 2.0**-10 + 2.0**-24
    if not abs(q_sent - q_replica) <= largest_difference + one_step:
        raise RemoteProtocolError(
            f"A client says that it drafted a token with the probability {q_sent:.6f}, but its "
            f"draft model gives {q_replica:.6f} here; both sides need the same draft model in "
            "float32."
        )
