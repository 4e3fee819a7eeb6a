"""`python -m engine`: the same as the command `shoal`."""

from __future__ import annotations

import sys

from engine.cli.program import main

sys.exit(main())
