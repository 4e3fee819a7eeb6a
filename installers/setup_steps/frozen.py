"""What a frozen program must undo before it starts others: they belong to the system, not to it."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path


def restore_variables(environment: MutableMapping[str, str]) -> None:
    """Give `environment` back what PyInstaller's start has changed in it."""
    for name in [name for name in environment if name.startswith(("_PYI_", "_MEIPASS"))]:
        del environment[name]
    before = environment.pop("LD_LIBRARY_PATH_ORIG", None)
    if before is not None:
        environment["LD_LIBRARY_PATH"] = before
    elif getattr(sys, "frozen", False):
        environment.pop("LD_LIBRARY_PATH", None)


def program_folder() -> Path:
    """Where Shoal was installed to."""
    return Path(os.path.realpath(sys.executable)).parent
