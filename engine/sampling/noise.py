"""The randomness of sampling, as a function.

A token is argmax(log p + noise) with Gumbel noise, which is an exact draw from p. The noise is a
function of (seed, choice, position) alone, so another route, a replay, other batch neighbours or
a draft model that looks ahead all see the same numbers.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Stream(IntEnum):
    """What numbers are for; those of different streams are independent."""

    TOKENS = 0
    """Picking tokens."""
    ACCEPTANCE = 1
    """Accepting a drafted token by a probability."""
    RESIDUAL = 2
    """Picking another token in place of one that was not accepted."""
    DRAFT = 3
    """Drawing a draft's token. If it were drawn by the target's numbers, a token picked by these after its
    refusal had come to nothing, because a stage was lost, would depend on the refusal."""


def gumbel_noise(
    seed: int, choice: int, position: int, vocab_size: int, stream: Stream = Stream.TOKENS
) -> npt.NDArray[np.float32]:
    """Standard Gumbel noise for every token of the vocabulary at one position, [V].

    Counter-based (Philox 4x64): the request's seed and choice are the key, the position is the
    second counter word, the stream the third, and the first counts through the vocabulary, so
    neither positions nor streams ever overlap.
    Built from the generator's raw bits, which NumPy keeps stable, unlike its distributions.

    Args:
        seed: 64 bits.
        choice: Which of the request's `n` answers.
        position: Place in the sequence of the token to pick; the first prompt token is 0.
        vocab_size: V.
        stream: What it is for.
    """
    uniform = _uniform(seed, choice, position, stream, vocab_size)
    noise: npt.NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise.astype(np.float32)


def acceptance_number(seed: int, choice: int, position: int) -> float:
    """Uniform in (0, 1): whether the token drafted for a position is accepted."""
    return float(_uniform(seed, choice, position, Stream.ACCEPTANCE, 1)[0])


def _uniform(
    seed: int, choice: int, position: int, stream: Stream, count: int
) -> npt.NDArray[np.float64]:
    bits = np.random.Philox(
        key=np.array([seed, choice], np.uint64),
        counter=np.array([0, position, stream, 0], np.uint64),
    ).random_raw(count)
    # 52 bits and a half: never 0 or 1 (53 bits and a half would round up to 1), where the
    # logarithms are infinite.
    uniform: npt.NDArray[np.float64] = ((bits >> np.uint64(12)) + 0.5).astype(np.float64) * 2.0**-52
    return uniform
