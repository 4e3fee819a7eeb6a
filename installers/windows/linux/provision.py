"""Installs the engine in Shoal's own Linux; run there by uv, with an object on each line of output."""

from __future__ import annotations

import json
import sys
from pathlib import Path

SETUP = Path(__file__).resolve().parent
sys.path.insert(0, str(SETUP))

from installers.setup_steps import torch_build  # noqa: E402 - found by the line above
from installers.setup_steps.installed import Installed, Parts  # noqa: E402
from installers.setup_steps.report import JsonReport, SetupFailed  # noqa: E402


def main() -> int:
    """Have it installed in the folder above; returns the exit status."""
    try:
        installed = Installed(Parts(SETUP), SETUP.parent, JsonReport())
        installed.prepare(torch_build.for_this_machine())
    except SetupFailed as error:
        print(json.dumps({"problem": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
