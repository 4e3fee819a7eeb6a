"""What tells a Linux desktop of Shoal: its entry, icons, kind of file, description and service."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from installers.package import tools
from installers.package.payload import filled
from installers.package.plan import Build

ICON_PX = (48, 128, 256)
_DRAW = """
import sys
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
application = QGuiApplication([])
image = QImage(int(sys.argv[3]), int(sys.argv[3]), QImage.Format.Format_ARGB32)
image.fill(0)
painter = QPainter(image)
QSvgRenderer(sys.argv[1]).render(painter)
painter.end()
sys.exit(not image.save(sys.argv[2]))
"""


def desktop_files(build: Build, share: Path, *, commands: Mapping[str, str], units: Path) -> None:
    """Write them.

    Args:
        build: The run.
        share: The folder `share` that desktops look into.
        commands: Full paths: of the app as `SHOAL`, of the engine's service as `SHOAL_ENGINE`.
        units: Where systemd looks for units of persons.

    Raises:
        BuildFailed: An icon could not be drawn.
    """
    values = {
        **commands,
        "VERSION": build.version,
        "DATE": datetime.fromtimestamp(build.epoch_s, UTC).date().isoformat(),
    }
    for file, source in (
        (share / "applications" / "shoal.desktop", "shoal.desktop"),
        (share / "mime" / "packages" / "shoal.xml", "shoal-mime.xml"),
        (share / "metainfo" / "io.github.shoal.shoal.metainfo.xml", "metainfo.xml"),
        (units / "shoal-engine.service", "shoal-engine.service"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(build, source, **values), "utf-8")
    _icons(build, share / "icons" / "hicolor")


def _icons(build: Build, folder: Path) -> None:
    """Shoal's icon in the sizes that desktops ask for, in the folders of an icon theme."""
    drawing = build.root / "app" / "icons" / "idle.svg"
    scalable = folder / "scalable" / "apps" / "shoal.svg"
    scalable.parent.mkdir(parents=True)
    shutil.copyfile(drawing, scalable)
    python = tools.environment(build, "gui", build.locks / "gui.txt") / "python"
    for size_px in ICON_PX:
        file = folder / f"{size_px}x{size_px}" / "apps" / "shoal.png"
        file.parent.mkdir(parents=True)
        build.run(
            *(python, "-c", _DRAW, drawing, file, str(size_px)),
            purpose="draw the icon",
            QT_QPA_PLATFORM="offscreen",
        )
