"""The questions whose answers differ by operating system, and who answers them here."""

from __future__ import annotations

import sys
from typing import Protocol


class Senses(Protocol):
    """One operating system. Calls block for milliseconds; None: nobody can tell."""

    def on_battery(self) -> bool | None:
        """Whether the computer runs on its battery."""
        ...

    def is_metered(self) -> bool | None:
        """Whether the connection costs by the byte."""
        ...

    def in_game_mode(self) -> bool | None:
        """Whether a program has asked the system for all it can give."""
        ...

    def full_screen(self) -> str | None:
        """The program that covers the screen, empty where it has no name; None: there is none."""
        ...

    def user_idle_s(self) -> float | None:
        """Since when nobody has touched the computer."""
        ...

    def close(self) -> None:
        """Hang up; the next question connects anew."""
        ...


def senses() -> Senses:
    """Those of this system."""
    if sys.platform == "win32":
        from engine.probes.windows import WindowsSenses

        return WindowsSenses()
    from engine.probes.linux import LinuxSenses

    return LinuxSenses()
