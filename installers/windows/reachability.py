"""Opening this computer to others, and closing it again: settings, engine and firewall together or not at all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from app.wsl import Wsl
from installers.setup_steps.report import SetupFailed
from installers.windows import networking
from installers.windows.checks import OLDEST_MIRRORED_BUILD
from installers.windows.machine import Declined, Machine
from installers.windows.report import Report
from installers.windows.stamps import Stamps


@dataclass(frozen=True, slots=True)
class Reachability:
    """Whether others may connect."""

    engine: str
    """The engine's command in the distribution."""
    wsl: Wsl
    machine: Machine
    stamps: Stamps
    report: Report

    def change(self, wanted: str | None, windows_build: int) -> str:
        """Do as the person wants; returns what there is to say about it.

        Args:
            wanted: `yes`, `no`, or None to leave it.
            windows_build: Of this computer.

        Raises:
            SetupFailed: It is open and cannot be closed.
        """
        if wanted == "no" and self.stamps.get("reachable") is not None:
            self._close()
            if not self._listen(None):
                raise SetupFailed(
                    "The port is closed to others, but Shoal's engine could not be told; start the setup "
                    f"again. Details are in {self.report.log}."
                )
            self.stamps.put("reachable", None)
        if wanted != "yes":
            return ""
        if windows_build < OLDEST_MIRRORED_BUILD:
            return (
                "Others cannot connect to this computer directly, because that needs Windows 11 22H2 or "
                "newer; the engine works through other members instead."
            )
        was_open = self.stamps.get("reachable") == "yes"
        if wrong := self._open(was_open=was_open):
            what = "may no longer be able to" if was_open else "cannot"
            return f"Others {what} connect to this computer directly, because {wrong} and start the setup again."
        return "Others can connect to this computer directly after its next restart."

    def _open(self, *, was_open: bool) -> str:
        """Open this computer to others; returns why that cannot be, and then all is as it was."""
        config = Path.home() / ".wslconfig"
        if not was_open:
            self.stamps.put("reachable", "opening")
        has_changed, wrong = False, ""
        try:
            has_changed = networking.change_settings(config, is_mirrored=True)
            if not networking.is_mirrored(config):
                wrong = f"{config} sets another networkingMode; change it to mirrored"
        except OSError as error:
            wrong = f"{config} cannot be changed ({error.strerror}); correct its rights"
        is_to_be_told = not wrong
        if is_to_be_told and not self._listen(networking.PORT):
            wrong = f"Shoal's engine could not be told (details are in {self.report.log}); try once more"
        wrong = wrong or self._open_port()
        if not wrong:
            self.stamps.put("reachable", "yes")
        elif not was_open:
            if has_changed:
                networking.change_settings(config, is_mirrored=False)
            if is_to_be_told:
                self._listen(None)
            self.stamps.put("reachable", None)
        return wrong

    def _open_port(self) -> str:
        try:
            code = self.machine.run_as_administrator(networking.firewall_command(is_open=True))
        except (Declined, OSError):
            return "Windows was not allowed to open a port; try once more"
        return f"Windows could not open a port (exit code {code}); try once more" if code else ""

    def _listen(self, port: int | None) -> bool:
        """Have the engine listen to others or only reach out; returns whether it will."""
        places = [] if port is None else [f"/ip4/0.0.0.0/tcp/{port}"]
        answer = self.wsl.run(self.engine, "settings", "set", f"swarm.listen={json.dumps(places)}")
        if answer.code != 0:
            self.report.note(
                f"swarm.listen={places}: exit code {answer.code}: {answer.text.strip()}"
            )
        return answer.code == 0

    def take_back(self) -> None:
        """Close it if it is open, before all goes.

        Raises:
            SetupFailed: It cannot be closed.
        """
        if self.stamps.get("reachable") is not None:
            self._close()
            self._listen(None)  # the settings that are kept; without a Linux there are none
            self.stamps.put("reachable", None)

    def _close(self) -> None:
        try:
            code = self.machine.run_as_administrator(networking.firewall_command(is_open=False))
        except (Declined, OSError) as error:
            raise SetupFailed(
                f"The firewall's rule “{networking.RULE}” could not be removed, because Windows was not "
                "allowed to; start again when somebody with an administrator's rights is there."
            ) from error
        if code != 0:
            raise SetupFailed(
                f"The firewall's rule “{networking.RULE}” could not be removed (exit code {code}); remove "
                "it in Windows' firewall settings if it is there, or start again to try once more."
            )
        networking.change_settings(Path.home() / ".wslconfig", is_mirrored=False)
