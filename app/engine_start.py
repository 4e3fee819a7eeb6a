"""How this computer's engine is started: by this Python, or on Windows in Shoal's own Linux.

hivemind does not run on Windows, so there the engine is inside WSL and we are not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from app import wsl
from app.engine_process import EngineStart
from app.installed import engine_python, setup_command
from engine import __version__
from engine.localapi.running import Home


def engine_start(
    home: Home, command: Sequence[str] | None, arguments: Sequence[str]
) -> EngineStart:
    """How to start one.

    Args:
        home: Our own files.
        command: What the person wants started instead.
        arguments: What the person wants the engine to get. Without any, a new engine waits for the
            first steps.
    """
    if command is not None:
        return EngineStart((*command, *arguments), home)
    given = tuple(arguments) or ("--await-setup",)
    if sys.platform == "win32":
        return EngineStart(wsl.engine_command(__version__, *given), home_in_wsl(), in_wsl=True)
    own = (engine_python(home), "-m", "engine", "engine", "--parent-pid", str(os.getpid()))
    return EngineStart((*own, *given), home, setup=setup_command())


def home_in_wsl() -> Home:
    """The engine's files, as Windows' programs find them; asking for one starts the distribution."""
    folders = (".config", ".local/share", ".cache", ".local/state")
    config, data, cache, state = (
        Path(wsl.windows_path(f"{wsl.HOME}/{folder}/shoal")) for folder in folders
    )
    return Home(config, data, cache, state)
