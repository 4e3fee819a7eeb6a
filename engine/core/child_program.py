"""`python -m engine.core.child_program MODULE …`: `main` of a module that takes long to load."""

from __future__ import annotations

import importlib
import sys

from engine.core.loading import loading

if __name__ == "__main__":
    with loading():
        module = importlib.import_module(sys.argv.pop(1))
    sys.exit(module.main())
