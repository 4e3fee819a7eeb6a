"""Where things are when Shoal was installed: a frozen app, and an engine in its own environment.

From a checkout or pip, app and engine share one Python, and nothing of this applies.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from engine.localapi.running import Home

LAUNCHER, SETUP = "shoal", "shoal-setup"


def is_frozen() -> bool:
    """Whether this app was frozen, so that it has no Python that could run an engine."""
    return bool(getattr(sys, "frozen", False))


def own_command() -> tuple[str, ...]:
    """What starts this app again, also when it has been updated meanwhile."""
    versions = os.environ.get("SHOAL_VERSIONS")  # where the one that starts the right version is
    if not is_frozen():
        if sys.platform == "win32" and versions:
            python = Path(versions, "launcher", "Scripts", "pythonw.exe")
            return (str(python), str(Path(versions, "start.py")))
        return (sys.executable, "-m", "app")
    folder = Path(versions) if versions else Path(sys.executable).parent
    return (str(folder / LAUNCHER),)


def engine_python(home: Home) -> str:
    """The Python that runs the engine."""
    if not is_frozen():
        return sys.executable
    folder = Path(sys.executable).parent
    # Versions beside one another have an environment each, so that one can go back.
    is_beside = (folder / "start.json").exists()
    place = folder if is_beside else home.data_dir
    return str(place / "environment" / "bin" / "python")


def setup_command() -> tuple[str, ...]:
    """What sets the engine's environment up; empty where it needs none."""
    return (str(Path(sys.executable).with_name(SETUP)),) if is_frozen() else ()
