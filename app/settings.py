"""What the app itself remembers: where its windows were. The engine keeps everything else."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QSettings

from engine.localapi.running import Home


class Settings:
    """Window geometry, in `app.ini` beside the engine's settings."""

    def __init__(self, home: Home) -> None:
        self._file = QSettings(str(home.config_dir / "app.ini"), QSettings.Format.IniFormat)

    def geometry(self, window: str) -> QByteArray | None:
        """Where `window` was, as `QWidget.restoreGeometry` takes it; None at the first time."""
        value = self._file.value(f"geometry/{window}")
        return value if isinstance(value, QByteArray) else None

    def keep_geometry(self, window: str, geometry: QByteArray) -> None:
        """Remember where `window` is."""
        self._file.setValue(f"geometry/{window}", geometry)
