"""Installs the engine in Shoal's own Linux; run there by uv, with an object on each line of output.

provision.py [--repair]
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

SETUP = Path(__file__).resolve().parent
sys.path.insert(0, str(SETUP))

from installers.setup_steps import torch_build  # noqa: E402 - found by the line above
from installers.setup_steps.installed import Installed, Parts  # noqa: E402
from installers.setup_steps.report import JsonReport, SetupFailed  # noqa: E402


def main() -> int:
    """Have it installed beside other versions, in the folder above; returns the exit status."""
    parts = Parts(SETUP)
    try:
        version = parts.wheel.name.split("-")[1]
        place = SETUP.parent / "versions" / version
        place.mkdir(parents=True, exist_ok=True)
        # Whoever has this file shares the packages of the others, which are then fetched but once.
        (place / "start.json").write_text('{"command": ["{here}/environment/bin/shoal"]}', "utf-8")
        installed = Installed(parts, place, JsonReport())
        if "--repair" in sys.argv[1:]:
            installed.doubt()
        installed.prepare(torch_build.for_this_machine())
        shutil.copyfile(SETUP / "start-engine", place / "start-engine")
        (place / "start-engine").chmod(0o755)
    except SetupFailed as error:
        print(json.dumps({"problem": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
