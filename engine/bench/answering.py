"""How a measured process talks to the bench: JSON lines, with standard output to themselves."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


class Lines:
    """Standard input and output as JSON lines; prints of libraries go to standard error."""

    def __init__(self) -> None:
        self._output = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def read(self) -> dict[str, Any] | None:
        """The next question; None when the bench is gone. Blocks."""
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def say(self, key: str, value: object) -> None:
        """Answer."""
        self._output.write(json.dumps({key: value}) + "\n")
        self._output.flush()
