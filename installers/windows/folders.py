"""Where the setup's things are, below the folder that the person chose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of one installation."""

    root: Path

    @property
    def setup(self) -> Path:
        """What the installer unpacked."""
        return self.root / "setup"

    @property
    def linux(self) -> Path:
        """The part of it that goes into the distribution."""
        return self.setup / "linux"

    @property
    def launcher(self) -> Path:
        """A Python environment with nothing in it: shortcuts need a program that stays where it is."""
        return self.root / "launcher"

    @property
    def disk(self) -> Path:
        """The distribution's disk."""
        return self.root / "linux"

    @property
    def downloads(self) -> Path:
        """What can be fetched again."""
        return self.root / "downloads"

    @property
    def stamps(self) -> Path:
        """What has been done, apart from what each version has of its own."""
        return self.root / "installed.json"
