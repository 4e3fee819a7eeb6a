"""Pictures of every window, drawn without a screen: `python -m tests.support.desktop.screenshots`.

Writes those of `resources/screenshots`, which README shows; with `--all FOLDER` every window in
every state, for looking at while working on them, if wanted in another `--language` and with larger
letters (`--font-percent 125`).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QT_SCALE_FACTOR", "1.5")

from PySide6.QtGui import QFont
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.locales import LOCALES
from tests.support.desktop.gallery import every_window
from tests.support.desktop.language import speaking
from tests.support.desktop.palettes import DARK, LIGHT, use_palette
from tests.support.desktop.small_png import save_small

FOLDER = Path(__file__).parents[3] / "resources" / "screenshots"
IN_README = (
    "chat-conversation", "dashboard-swarm", "dashboard-hour", "batch-running", "batch-form",
    "first-machine", "settings-limits", "models", "home-conversation",
)  # fmt: skip
"""One of every window, in a state that says most of it."""
SETTLE_MS = 600
"""Cards are built one after the other, and colours of code come from beside."""
LETTERS_PT = 10.0


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", metavar="FOLDER", type=Path)
    parser.add_argument("--only", default="", metavar="WORD", help="windows with it in their name")
    parser.add_argument("--language", choices=tuple(LOCALES), default="en")
    parser.add_argument("--font-percent", type=int, default=100)
    options = parser.parse_args()
    qt = QApplication(["shoal"])
    qt.setStyle("Fusion")
    font = QFont("DejaVu Sans")
    font.setPointSizeF(LETTERS_PT * options.font_percent / 100)
    qt.setFont(font)
    folder = options.all or FOLDER
    folder.mkdir(parents=True, exist_ok=True)

    def wanted(name: str) -> bool:
        return options.only in name and (options.all is not None or name in IN_README)

    with speaking(options.language):
        for look, colours in (("light", LIGHT), ("dark", DARK)):
            use_palette(colours)
            for name, window in every_window(wanted):
                QTest.qWait(SETTLE_MS)
                save_small(window.grab().toImage(), folder / f"{name}-{look}.png")


if __name__ == "__main__":
    sys.exit(main())
