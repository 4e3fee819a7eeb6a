"""Stands for `wsl.exe` that runs an engine: its files cannot be read, its output says where it is."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from app.wsl import start_of
from engine import __version__


def main() -> int:
    _, *arguments = sys.argv[sys.argv.index("--exec") :]
    if arguments[:2] != [start_of(__version__), "engine"]:
        return 127
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ready.json"
        options = [option for option in arguments[2:] if option == "--leased"]
        command = [sys.executable, "-m", "tests.support.fake_engine", *options]
        with subprocess.Popen([*command, "--ready-file", str(file)]) as engine:
            while engine.poll() is None and not file.exists():
                time.sleep(0.02)
            if file.exists():
                ready = json.loads(file.read_text("utf-8"))
                ready["token"] = Path(ready["token_file"]).read_text("utf-8").strip()
                ready["token_file"] = "/home/shoal/.local/share/shoal/api-token"
                print(json.dumps(ready), flush=True)
    return engine.returncode


if __name__ == "__main__":
    sys.exit(main())
