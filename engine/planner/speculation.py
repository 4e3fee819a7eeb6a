"""When drafting pays, and what it asks of a step ([BB] §7)."""

from __future__ import annotations

import math
from dataclasses import replace

from engine.core.profiles import Drafting
from engine.planner.costs import Work


def break_even_bytes_per_s(
    batch_size: int,
    tree_tokens: float,
    committed_tokens: float,
    token_bytes: float,
    rtt_s: float,
    compute_s: float,
    compute_ratio: float,
    draft_s_per_stage: float,
) -> float:
    """S*, eq. 9: on links slower than this, drafting is slower than plain decoding.

    Args:
        batch_size: B.
        tree_tokens: N: a row's tokens in a pass.
        committed_tokens: a per pass.
        token_bytes: D, of one token's hidden state.
        rtt_s: t_rtt per transfer.
        compute_s: t_comp per stage and plain step.
        compute_ratio: m, of a pass with a tree.
        draft_s_per_stage: c / n.

    Returns:
        0: drafting pays at any speed; `inf`: at none.
    """
    gained_s = (
        (committed_tokens - 1) * rtt_s
        + (committed_tokens - compute_ratio) * compute_s
        - draft_s_per_stage
    )
    more_bytes = batch_size * (tree_tokens - committed_tokens) * token_bytes
    if gained_s <= 0:
        return math.inf
    return max(0.0, more_bytes / gained_s)


def drafted(work: Work, drafting: Drafting) -> list[tuple[Work, float]]:
    """The same step with every tree size and threshold on offer.

    Returns:
        What it asks for, and τ.
    """
    out = []
    for tree_size, committed_tokens in drafting.committed_tokens:
        for prune_threshold, surviving, remaining in ((0.0, 1.0, 1.0), *drafting.pruned):
            more = max(1.0, committed_tokens * remaining)
            step = replace(
                work,
                tree_size=tree_size,
                surviving=surviving,
                draft_s=drafting.draft_s,
                committed_tokens=more,
                owed_tokens=work.owed_tokens * more,
                owed_share=work.owed_share * more,
            )
            out.append((step, prune_threshold))
    return out
