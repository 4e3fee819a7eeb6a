"""What one check of `shoal doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """Something works less well, or not at all but can be done without."""
    FAIL = "fail"
    """Shoal cannot run like this."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `advice` says what to do unless all is well."""

    name: str
    level: Level
    found: str
    advice: str = ""

    def json(self) -> dict[str, str]:
        """For `--json`."""
        return {
            "name": self.name,
            "level": self.level.value,
            "found": self.found,
            "advice": self.advice,
        }


def ok(name: str, found: str) -> Check:
    """All is well."""
    return Check(name, Level.OK, found)


def warn(name: str, found: str, advice: str) -> Check:
    """It can be done without."""
    return Check(name, Level.WARN, found, advice)


def fail(name: str, found: str, advice: str) -> Check:
    """It cannot."""
    return Check(name, Level.FAIL, found, advice)
