"""The app and its setup for Linux as programs that bring their Python and Qt along, without torch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from installers.package import tools
from installers.package.plan import Build


def freeze(build: Build) -> Path:
    """Freeze them; returns the folder with `shoal-app`, `shoal-setup` and what they need.

    Raises:
        BuildFailed: PyInstaller failed.
    """
    programs = tools.environment(
        build, "freeze", build.locks / "gui.txt", build.locks / "freeze.txt"
    )
    folder = build.folder("frozen")
    shutil.rmtree(folder)
    build.run(
        *(programs / "python", "-m", "PyInstaller", "--noconfirm", "--clean", "--log-level=WARN"),
        *("--distpath", folder, "--workpath", folder / "work"),
        build.root / "installers" / "linux" / "shoal.spec",
        purpose="freeze the app",
        SHOAL_ROOT=str(build.root),
        PYINSTALLER_CONFIG_DIR=str(build.folder("cache")),
    )
    shutil.rmtree(folder / "work")
    frozen = folder / "shoal"
    for path in list(frozen.rglob("*")):
        if path.is_symlink() and not path.exists():  # to a library that the spec leaves out
            path.unlink()
        elif path.is_file() and not path.is_symlink():
            is_program = path.parent == frozen and os.access(path, os.X_OK)
            path.chmod(0o755 if is_program else 0o644)
    return frozen
