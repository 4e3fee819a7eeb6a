"""Where Shoal keeps its files, and how to find the engine that is running there.

Standard library, platformdirs and the schema only: the tray imports this too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from engine.localapi.schema import ReadyFile


@dataclass(frozen=True, slots=True)
class Home:
    """Folders and files of one Shoal. `SHOAL_HOME` puts them all under one folder."""

    config_dir: Path
    data_dir: Path
    cache_dir: Path
    state_dir: Path

    @classmethod
    def from_environment(cls) -> Home:
        """The folders that this process should use."""
        root = os.environ.get("SHOAL_HOME")
        if root:
            return cls.under(Path(root).expanduser().absolute())
        dirs = platformdirs.PlatformDirs("shoal", appauthor=False)
        return cls(
            dirs.user_config_path, dirs.user_data_path, dirs.user_cache_path, dirs.user_state_path
        )

    @classmethod
    def under(cls, root: Path) -> Home:
        """All folders under `root`, as `SHOAL_HOME` asks."""
        return cls(root / "config", root / "data", root / "cache", root / "state")

    @property
    def settings_file(self) -> Path:
        """Settings that the engine obeys, TOML."""
        return self.config_dir / "settings.toml"

    @property
    def swarm_file(self) -> Path:
        """The invite of the swarm we belong to; absent when solo."""
        return self.config_dir / "swarm.shoal"

    @property
    def identity_file(self) -> Path:
        """The node's private key, mode 0600."""
        return self.data_dir / "identity.key"

    @property
    def database_file(self) -> Path:
        """Chats, batch jobs and statistics, mode 0600; the engine alone opens it."""
        return self.data_dir / "shoal.sqlite3"

    @property
    def files_dir(self) -> Path:
        """Files that programs have uploaded for batches."""
        return self.data_dir / "files"

    @property
    def token_file(self) -> Path:
        """The local API's token, mode 0600."""
        return self.data_dir / "api-token"

    @property
    def pause_file(self) -> Path:
        """The person's pause, while there is one; it outlives the engine."""
        return self.data_dir / "pause.json"

    @property
    def models_dir(self) -> Path:
        """Converted and downloaded models, unless the settings name another folder."""
        return self.models_dir_in("")

    def models_dir_in(self, folder: str) -> Path:
        """The same where the settings name `folder`; `SHOAL_MODELS` moves it, to be shared by nodes."""
        named = os.environ.get("SHOAL_MODELS") or folder
        return Path(named).expanduser().absolute() if named else self.cache_dir / "models"

    @property
    def updates_dir(self) -> Path:
        """Packages of new versions, until they are installed."""
        return self.cache_dir / "updates"

    @property
    def updates_file(self) -> Path:
        """When we looked for new versions last, and which list we have seen."""
        return self.state_dir / "updates.json"

    @property
    def profile_file(self) -> Path:
        """What was measured of this machine; can be measured again."""
        return self.cache_dir / "profile.json"

    @property
    def running_file(self) -> Path:
        """Written by a running engine: a `ReadyFile`."""
        return self.state_dir / "engine.json"

    @property
    def log_file(self) -> Path:
        """The engine's log."""
        return self.state_dir / "engine.log"


def find_running(home: Home) -> ReadyFile | None:
    """The engine that runs on `home`, or None.

    A file left behind by a killed engine is recognised by its dead process and ignored, also when
    another process has its number by now, as after a new start of the computer.
    """
    try:
        ready = ReadyFile.model_validate_json(home.running_file.read_text(encoding="utf-8"))
        os.kill(ready.pid, 0)
    except (OSError, ValueError):
        return None
    if ready.process_start is not None and ready.process_start != process_start(ready.pid):
        return None
    return ready


def process_start(pid: int) -> int | None:
    """When a process began, in the kernel's ticks since boot; None where `/proc` does not tell.

    None too when it has ended and its parent has not looked: such a one answers nobody.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        fields = stat.rpartition(")")[2].split()  # the name before may hold blanks
        return None if fields[0] == "Z" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def read_token(path: Path) -> str:
    """The API token in `path`, without surrounding blanks.

    Raises:
        OSError: The file cannot be read.
    """
    return path.read_text(encoding="utf-8").strip()
