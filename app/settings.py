"""What the app itself remembers: windows and looks. The engine keeps everything else."""

from __future__ import annotations

from enum import StrEnum

from PySide6.QtCore import QByteArray, QSettings

from engine.localapi.running import Home


class Theme(StrEnum):
    """Light or dark."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Language(StrEnum):
    """What the windows speak; the values beside `system` are names of files of translations."""

    SYSTEM = "system"
    ENGLISH = "en"
    GERMAN = "de"
    FRENCH = "fr"


class Settings:
    """Looks and window geometry, in `app.ini` beside the engine's settings."""

    def __init__(self, home: Home) -> None:
        self._file = QSettings(str(home.config_dir / "app.ini"), QSettings.Format.IniFormat)

    def geometry(self, window: str) -> QByteArray | None:
        """Where `window` was, as `QWidget.restoreGeometry` takes it; None at the first time."""
        value = self._file.value(f"geometry/{window}")
        return value if isinstance(value, QByteArray) else None

    def keep_geometry(self, window: str, geometry: QByteArray) -> None:
        """Remember where `window` is."""
        self._file.setValue(f"geometry/{window}", geometry)

    @property
    def theme(self) -> Theme:
        """Light, dark, or as the desktop is."""
        value = str(self._file.value("looks/theme", Theme.SYSTEM.value))
        return Theme(value) if value in set(Theme) else Theme.SYSTEM

    def keep_theme(self, theme: Theme) -> None:
        """Remember it."""
        self._file.setValue("looks/theme", theme.value)

    @property
    def language(self) -> Language:
        """A language, or the system's."""
        value = str(self._file.value("looks/language", Language.SYSTEM.value))
        return Language(value) if value in set(Language) else Language.SYSTEM

    def keep_language(self, language: Language) -> None:
        """Remember it."""
        self._file.setValue("looks/language", language.value)

    @property
    def stays_in_tray(self) -> bool:
        """Whether Shoal goes on when its last window is closed; only where there is a tray."""
        return str(self._file.value("tray/stay", "true")).lower() != "false"

    def keep_stays_in_tray(self, *, stays: bool) -> None:
        """Remember it."""
        self._file.setValue("tray/stay", "true" if stays else "false")
