"""How much of the time the stage may compute so that a GPU draws no more than it shall. Pure.

The driver's own limit would need root, would slow down its owner's programs too, and would stay
behind if we were killed. Pauses between passes are ours alone.
"""

from __future__ import annotations

from typing import Final

LEAST_SHARE: Final = 0.05
"""A GPU that draws more than the cap without us cannot be helped, and those who wait still get on."""
_AIM: Final = 0.97
_MOST_DOWN: Final = 0.5
_MOST_UP: Final = 1.1
"""Slowly, because a GPU that had nothing to do draws little, whatever the share."""


def work_share(before: float, power_w: float | None, cap_w: float) -> float:
    """The share of the time in which passes may run until the next reading.

    What is drawn beyond rest grows with the share, so this comes to rest at the aim.

    Args:
        before: The share until now.
        power_w: What the GPU draws, averaged over the last second or so; None: nobody knows.
        cap_w: What it may; 0: no cap.
    """
    if not cap_w or power_w is None:
        return 1.0
    change = _AIM * cap_w / max(power_w, 1.0)
    return min(1.0, max(LEAST_SHARE, before * min(_MOST_UP, max(_MOST_DOWN, change))))
