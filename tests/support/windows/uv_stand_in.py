"""A program that writes down what uv was asked, and makes what the setup then looks for."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    folder, arguments = (
        Path(sys.argv[1]),
        [word for word in sys.argv[2:] if word != "--no-progress"],
    )
    (folder / "uv-proxy.txt").write_text(os.environ.get("HTTPS_PROXY", ""), "utf-8")
    with (folder / "uv.txt").open("a", encoding="utf-8") as file:
        file.write(json.dumps(arguments) + "\n")
    fails = folder / "uv-fails.txt"
    if fails.exists():
        print(fails.read_text("utf-8"))
        return 2
    if arguments[0] == "venv":
        programs = Path(arguments[-1]) / "Scripts"
        programs.mkdir(parents=True, exist_ok=True)
        for name in ("python.exe", "pythonw.exe"):
            (programs / name).write_bytes(b"MZ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
