"""How libraries are to behave in a process that computes; read when they are loaded."""

from __future__ import annotations

from typing import Final

COMPUTE_ENVIRONMENT: Final = {
    # CPU threads that spin between steps would steal the cores of the next stage.
    "OMP_WAIT_POLICY": "PASSIVE",
    # Products of every number of rows have a kernel of their own, of a third of a megabyte; by
    # default 1024 are kept.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",
    # GPUs are counted as their driver counts them, and not by guessed speed.
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
}
