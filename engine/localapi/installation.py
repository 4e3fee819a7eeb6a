"""How this Shoal was installed, as whoever starts it says in the environment.

Standard library only; the app imports this too.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.localapi import versions

Package = Literal["source", "deb", "run", "setup"]
"""`source`: a checkout or pip, which Shoal leaves to the person; `deb`: the system's packages; `setup`:
Windows, whose setup a person starts; `run`: a folder of one's own, where versions lie beside one another."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where our versions lie, if we may change them."""

    package: Package = "source"
    root: Path | None = None
    """The folder of `engine.localapi.versions`."""
    trial: str = ""
    """The version that we are, while it is tried; else empty."""
    rolled_back_from: str = ""
    """The version that was tried last and did not start, until this one has said that it works."""
    distribution: str = ""
    """Which of WSL's we are in; empty: none."""

    @classmethod
    def from_environment(cls) -> Installation:
        """This process's own: `SHOAL_VERSIONS`, `SHOAL_PACKAGE` and what `start.py` adds."""
        said = {"source", "deb", "run", "setup"} & {os.environ.get("SHOAL_PACKAGE", "")}
        root = os.environ.get("SHOAL_VERSIONS")
        default: Package = "run" if root else "source"
        package = next((known for known in _PACKAGES if known in said), default)
        # What we were started with may be over by now, as for an app's second engine.
        failed = os.environ.get(versions.ROLLED_BACK_FROM, "")
        if root and versions.read(Path(root)).failed != failed:
            failed = ""
        return cls(
            package=package,
            root=Path(root) if root and package == "run" else None,
            trial=os.environ.get("SHOAL_TRIAL", ""),
            rolled_back_from=failed,
            distribution=os.environ.get("WSL_DISTRO_NAME", ""),
        )

    def command(self, package: Path) -> str:
        """What a person has to run to install a package, where Shoal may not."""
        if self.package == "deb":
            return f"sudo apt install {shlex.quote(str(package))}"
        inside = str(package).replace("/", "\\")
        return (
            rf"\\wsl.localhost\{self.distribution}{inside}" if self.distribution else str(package)
        )

    def mark_healthy(self) -> None:
        """Say that the version which is tried, or which took over from a failed one, works.

        Raises:
            OSError: It cannot be written down.
        """
        if self.root is not None and self.trial:
            versions.mark_healthy(self.root, self.trial)
        elif self.root is not None and self.rolled_back_from:
            versions.forget_failed(self.root, self.rolled_back_from)

    def excuse(self) -> None:
        """Say that it cannot begin now and is not to blame.

        Raises:
            OSError: It cannot be written down.
        """
        if self.root is not None and self.trial:
            versions.excuse(self.root, self.trial)


_PACKAGES: tuple[Package, ...] = ("source", "deb", "run", "setup")
