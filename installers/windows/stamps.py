"""What has been done, on disk before the next step begins: whatever is cut off is done again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stamps:
    """Named steps and how far they are."""

    file: Path

    def get(self, step: str) -> str | None:
        """How far `step` is; None if it was never begun."""
        return self._all().get(step)

    def put(self, step: str, value: str | None) -> None:
        """Remember how far `step` is.

        Raises:
            OSError: The disk does not take it.
        """
        stamps = {**self._all(), step: value}
        part = self.file.with_suffix(".part")
        text = json.dumps(
            {name: told for name, told in stamps.items() if told is not None}, indent=1
        )
        part.write_text(text, encoding="utf-8")
        part.replace(self.file)

    def _all(self) -> dict[str, str]:
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # never written
            return {}
        return found if isinstance(found, dict) else {}
