"""What must be true of a computer before gigabytes are fetched; decided purely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from installers.setup_steps import torch_build
from installers.setup_steps.torch_build import Driver, TorchBuild

OLDEST_BUILD = 19041
"""Windows 10 version 2004: the first whose `wsl --install` exists and that runs WSL 2."""
OLDEST_MIRRORED_BUILD = 22621
"""Windows 11 22H2: the first whose WSL can share the computer's own network."""
APP_BYTES = 1 << 30
"""Python, Qt and the room that unpacking takes."""
ENGINE_BYTES = {"cpu": 5 << 30, "cuda": 13 << 30}
"""The engine's Linux with PyTorch, what is needed on the way, and the starter model."""


@dataclass(frozen=True, slots=True)
class Computer:
    """What was found."""

    windows_build: int
    free_bytes: int
    """On the disk that Shoal goes to."""
    driver: Driver | None
    """NVIDIA's; None without one that works."""
    has_card: bool = False
    """Whether Windows knows a display adapter of NVIDIA, driver or not."""


def build_for(computer: Computer) -> TorchBuild:
    """Which build of PyTorch the engine will get, and why."""
    return torch_build.choose(computer.driver, has_card=computer.has_card)


def problem(computer: Computer, *, has_app: bool, has_engine: bool) -> str:
    """Why Shoal cannot be installed here, as a sentence; empty when it can.

    Args:
        computer: What was found.
        has_app: The app is there already, and needs no more room.
        has_engine: So is the engine.
    """
    if computer.windows_build < OLDEST_BUILD:
        return (
            f"Shoal's engine needs WSL 2, which this Windows (build {computer.windows_build}) does not "
            f"have; update to Windows 10 version 2004 (build {OLDEST_BUILD}) or newer, or to Windows 11."
        )
    kind: Literal["cpu", "cuda"] = build_for(computer).kind
    needed = (0 if has_app else APP_BYTES) + (0 if has_engine else ENGINE_BYTES[kind])
    if computer.free_bytes < needed:
        return (
            f"Shoal needs about {needed / (1 << 30):.0f} GB of disk here, but only "
            f"{computer.free_bytes / (1 << 30):.1f} GB are free; free some space, or start the setup "
            "again and choose a folder on another disk."
        )
    return ""
