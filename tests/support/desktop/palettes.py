"""A light and a dark desktop, whatever this machine prefers."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

DARK = {
    QPalette.ColorRole.Window: "#202124",
    QPalette.ColorRole.WindowText: "#e8eaed",
    QPalette.ColorRole.Base: "#1b1c1f",
    QPalette.ColorRole.Text: "#e8eaed",
    QPalette.ColorRole.Button: "#2b2c30",
    QPalette.ColorRole.ButtonText: "#e8eaed",
    QPalette.ColorRole.Link: "#7ab7ff",
    QPalette.ColorRole.PlaceholderText: "#8d9096",
}
LIGHT = {
    QPalette.ColorRole.Window: "#f4f4f5",
    QPalette.ColorRole.WindowText: "#1f2328",
    QPalette.ColorRole.Base: "#ffffff",
    QPalette.ColorRole.Text: "#1f2328",
    QPalette.ColorRole.Button: "#f4f4f5",
    QPalette.ColorRole.ButtonText: "#1f2328",
    QPalette.ColorRole.Link: "#1f6fc4",
    QPalette.ColorRole.PlaceholderText: "#8a9099",
}


def use_palette(colours: dict[QPalette.ColorRole, str]) -> None:
    """Light or dark, whatever this machine prefers."""
    palette = QPalette()
    for role, colour in colours.items():
        palette.setColor(role, QColor(colour))
    muted = QColor(colours[QPalette.ColorRole.PlaceholderText])
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, muted)
    QApplication.setPalette(palette)
