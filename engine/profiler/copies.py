"""How fast bytes travel between RAM and an accelerator."""

from __future__ import annotations

import time
from typing import Final

import torch
from torch import Tensor

_COPY_BYTES: Final = 64 << 20
_ROUNDS: Final = 8
_WARM_UP: Final = 2


def copy_speeds(device: torch.device) -> tuple[list[float], list[float]]:
    """Bytes per second from pinned RAM to a CUDA device, and back, of several rounds."""
    here = torch.empty(_COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(_COPY_BYTES, dtype=torch.uint8, device=device)

    def rates(target: Tensor, source: Tensor) -> list[float]:
        found = []
        for _ in range(_WARM_UP + _ROUNDS):
            torch.cuda.synchronize(device)
            began_s = time.perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize(device)
            found.append(_COPY_BYTES / (time.perf_counter() - began_s))
        return found[_WARM_UP:]

    return rates(there, here), rates(here, there)
