"""Which of some programs run."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def running(names: Iterable[str]) -> frozenset[str]:
    """Those of `names` that some process has, in any case and with or without `.exe`."""
    wanted = {_bare(name): name for name in names}
    if not wanted:
        return frozenset()
    found = (_bare(process.info["name"] or "") for process in psutil.process_iter(["name"]))
    return frozenset(wanted[name] for name in found if name in wanted)


def _bare(name: str) -> str:
    return name.strip().casefold().removesuffix(".exe")
