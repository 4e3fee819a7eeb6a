"""Drafting with the noise that the target samples with: Shoal's own mode.

The client proposes argmax(log q + noise), the last stage picks argmax(log p + the same noise), and
a proposal counts only if it is the target's pick (`engine.speculation.tree.accept`). The output is
therefore the target's own sample whatever the draft says, and neither q nor p travels.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]


def ranked(log_q: Scores, noise: Scores | None, width: int) -> list[int]:
    """The likeliest picks of the target, best first: siblings of a tree.

    Args:
        log_q: The draft's log-probabilities up to a constant, [V]; -inf is excluded.
        noise: The target's at that position, [V]; None when it is greedy.
        width: How many are wanted.

    Returns:
        At most `width` tokens, no excluded one among them.
    """
    scores = log_q if noise is None else log_q + noise
    width = min(width, len(scores))
    best = np.argpartition(scores, -width)[-width:]
    best = best[np.lexsort((best, -scores[best]))]
    return [int(token) for token in best if scores[token] > -np.inf]


def agreement(p: Probabilities, q: Probabilities) -> float:
    """How likely the two picks are equal: Σ_i 1 / Σ_j max(p_j / p_i, q_j / q_i).

    Both pick i when -log noise_j / rate_j is least at i for the rates p and for q, which are
    exponential races run with the same clocks. At least o / (2 - o) for o = `overlap`.

    Args:
        p: The target's distribution, [V].
        q: The draft's, [V].
    """
    both = (p > 0) & (q > 0)
    ratio = np.full(len(p), np.inf)
    np.divide(p, q, out=ratio, where=q > 0)
    ratio[(p == 0) & (q == 0)] = 0.0
    order = np.argsort(-ratio, kind="stable")
    # Where p_j / q_j is at least p_i / q_i the first of the two is the larger one, else the second.
    p_before = np.cumsum(p[order])
    q_after = q.sum() - np.cumsum(q[order])
    chosen = both[order]
    larger = p_before[chosen] / p[order][chosen] + q_after[chosen] / q[order][chosen]
    return float((1.0 / larger).sum())


def overlap(p: Probabilities, q: Probabilities) -> float:
    """Σ min(p, q): the most that any rule can accept of one token drawn from q."""
    return float(np.minimum(p, q).sum())
