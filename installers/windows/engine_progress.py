"""What the installation of the engine, inside Linux, tells on its output."""

from __future__ import annotations

import json

from installers.windows.report import Report

_STEPS = {
    "python": (0.05, 0.1, "Fetching Python for the engine"),
    "packages": (0.1, 0.35, "Fetching what the engine needs"),
    "torch": (0.35, 0.95, "Fetching PyTorch"),
    "shoal": (0.95, 1.0, "Installing the engine"),
}
"""Name of a step → which share of the whole it is, and what a person reads."""


class EngineProgress:
    """Takes the lines that calls of `wsl.exe` print.

    Attributes:
        problem: Why the installation failed, in its own words; empty as long as it did not.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._step = _STEPS["python"]
        self.problem = ""

    def heard(self, line: str) -> None:
        """Take one line."""
        told = _object(line)
        if told is None:
            if line:
                self._report.note(f"  {line}")
            return
        self.problem = str(told.get("problem", ""))
        if "say" in told or self.problem:
            self._report.note(f"  {told.get('say', self.problem)}")
        if told.get("step") in _STEPS:
            self._step = _STEPS[str(told["step"])]
            self._show(0.0)
        share = told.get("share")
        if isinstance(share, int | float):
            self._show(float(share))

    def _show(self, share: float) -> None:
        begin, end, text = self._step
        if not self._report.is_stop_wanted():  # whoever waits for the call ends it
            self._report.progress(begin + (end - begin) * share, text)


def _object(line: str) -> dict[str, object] | None:
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
