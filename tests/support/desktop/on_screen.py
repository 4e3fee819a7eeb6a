"""Run a command on a virtual desktop: `python -m tests.support.desktop.on_screen shoal bench desktop`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.desktop.screen import desktop


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, desktop(Path(folder), tray=True) as screen:
        return subprocess.run(sys.argv[1:], env=screen.environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
