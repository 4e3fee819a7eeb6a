"""Versions of Shoal beside one another on this computer, so that one that does not start can be left again.

A version has its windows in `versions/VERSION` of the installation and its engine in a folder of that
name in Linux. `engine.localapi.versions` tells which of them a start runs.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from engine.localapi import versions
from installers.windows.folders import Folders
from installers.windows.stamps import Stamps

START_FILE = "start.json"


@dataclass(frozen=True, slots=True)
class Beside:
    """The version that is installed, and the others."""

    folders: Folders
    version: str

    @property
    def folder(self) -> Path:
        """Where the windows of the version that is installed go."""
        return versions.folder_of(self.folders.root, self.version)

    @property
    def app(self) -> Path:
        """Their Python environment."""
        return self.folder / "app"

    @property
    def stamps(self) -> Stamps:
        """How far this version is: `app` and `engine`, each with the fingerprint of what is there."""
        return self._stamps_of(self.folder)

    def begin(self, *, repairs: bool) -> None:
        """Make its folder; what is there is installed again if that is to be repaired.

        Raises:
            OSError: It cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for step in ("app", "engine"):
            if repairs and self.stamps.get(step) is not None:
                self.stamps.put(step, "to be repaired")

    def change(self, step: str) -> None:
        """Say that a part of it is being changed, so that nothing starts it until `switch`."""
        (self.folder / START_FILE).unlink(missing_ok=True)
        self.stamps.put(step, "installing")

    def has(self, step: str) -> bool:
        """Whether any version has begun a step: its files share the disk, and there may be chats."""
        return any(self._stamps_of(folder).get(step) is not None for folder in self._all())

    def forget_engines(self) -> None:
        """Linux is new: no version has an engine any more."""
        for folder in self._all():
            self._stamps_of(folder).put("engine", None)

    def switch(self) -> str:
        """Let this version run; returns the one that runs until this one has shown that it works.

        Empty when there is none to go back to.
        """
        root = self.folders.root
        program = str(Path("{here}", "app", "Scripts", "pythonw.exe"))
        start = json.dumps({"command": [program, "-m", "app"]})
        (self.folder / START_FILE).write_text(start, encoding="utf-8")
        shutil.copyfile(self.folders.setup / "start.py", root / "start.py")
        current = versions.read(root).current
        if current in ("", self.version) or not self._is_whole(current):
            versions.adopt(root, self.version)
            return ""
        versions.stage(root, self.version)
        return current

    def left_over(self) -> list[str]:
        """Versions that neither run, nor shall, nor are gone back to."""
        now = versions.read(self.folders.root)
        return [f.name for f in self._all() if f.name not in (now.current, now.staged)]

    def remove(self, version: str) -> None:
        """Remove the windows of one."""
        shutil.rmtree(versions.folder_of(self.folders.root, version), ignore_errors=True)

    @property
    def running(self) -> str:
        """The version that runs; this one when none has been chosen yet."""
        return versions.read(self.folders.root).current or self.version

    def _is_whole(self, version: str) -> bool:
        folder = versions.folder_of(self.folders.root, version)
        has_engine = self._stamps_of(folder).get("engine") is not None
        return has_engine and (folder / START_FILE).exists()

    def _all(self) -> list[Path]:
        place = self.folders.root / "versions"
        return sorted(place.iterdir()) if place.exists() else []

    @staticmethod
    def _stamps_of(folder: Path) -> Stamps:
        return Stamps(folder / "installed.json")
