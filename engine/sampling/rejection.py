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

Whatever a client says of q bends the distribution of its own answer alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.sampling.noise import Stream, acceptance_number, gumbel_noise

Probabilities = npt.NDArray[np.float64]
TwoBytes = npt.NDArray[np.float16]

_LARGEST_WEIGHT: Final = 1.001
"""A probability of 1 may have come out of a sum a little above it."""
LARGEST_DIFFERENCE: Final = 1e-4
"""Of a probability by client and replica: float32 in batches of other shapes differs by 3e-6 at most,
other processors sum in other orders; more is another draft, or a lie."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Where the random numbers of one answer come from."""

    seed: int
    choice: int

    def token(self, weights: Probabilities | TwoBytes, position: int) -> int:
        """Draw by weights [V] that need not sum to 1: what the draft does."""
        return self._draw(weights, position, Stream.DRAFT)

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


def read_weights(packed: bytes) -> TwoBytes:
    """What travels in a row, [n]."""
    return np.frombuffer(packed, "<f2")


def check_weights(weights: TwoBytes, drafted: TwoBytes) -> None:
    """Refuse what can be no probabilities; a peer may send anything.

    Args:
        weights: All that came, of any shape.
        drafted: Those among them of tokens that were drawn, which cannot be 0.

    Raises:
        RemoteProtocolError: The text says which.
    """
    # Written so that what is no number fails too.
    wrong = weights[~((weights >= 0) & (weights <= _LARGEST_WEIGHT))]
    if not len(wrong):
        wrong = drafted[~(drafted > 0)]
    if len(wrong):
        raise RemoteProtocolError(
            f"The peer says that a token was drafted with the probability {wrong[0]}, which is none."
        )


def replica_agrees(q_sent: float, q_replica: float) -> bool:
    """DISCO: whether the last stage's replica is the draft that the client drew a token from.

    Args:
        q_sent: The two-byte weight that the client sent of it.
        q_replica: The replica's own, rounded in the same way.
    """
    one_step = max(q_sent, q_replica) * 2.0**-10 + 2.0**-24
    return abs(q_sent - q_replica) <= LARGEST_DIFFERENCE + one_step
