"""What no pipeline can beat, cheaply: most choices of batch and micro-batches need no more thought."""

from __future__ import annotations

import numpy as np

from engine.planner.partition import combine
from engine.planner.tables import FIRST, LAST, NEVER, Question, Times


def step_bound_ns(question: Question) -> int:
    """A step takes at least so long in any order, with any first and last machine.

    Every machine is entered over its best link and plays its cheapest role.
    """
    alone = question.stage_ns[:, FIRST | LAST, -1].min()
    entering = np.minimum(question.link_ns, question.back_ns)
    np.fill_diagonal(entering, NEVER)
    way_ns = min(int(alone), _least(question.stage_ns, entering.min(axis=0), np.add))
    load_ns = _least(question.load_ns, np.zeros(len(question.load_ns), np.int64), np.maximum)
    return NEVER if load_ns >= NEVER else question.step_ns(way_ns, load_ns)


def _least(stages: Times, entering: Times, join: np.ufunc) -> int:
    """All blocks on any machines, [N, ROLES, L + 1] and [N]."""
    least = np.full(stages.shape[2], NEVER, dtype=np.int64)
    least[0] = 0
    for costs in np.minimum(join(stages.min(axis=1), entering[:, None]), NEVER):
        least = np.minimum(least, combine(least, costs, join))
    return int(least[-1])
