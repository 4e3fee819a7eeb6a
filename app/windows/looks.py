"""Colours and the style sheet, derived from the desktop's palette so that dark follows dark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtGui import QColor, QFont, QFontInfo, QPalette

CONTROLS = Path(__file__).parents[1] / "icons" / "controls"
"""Arrows and ticks that can be seen on light and dark."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Colours as `#rrggbb`, all readable on the palette they come from."""

    is_dark: bool
    page: str
    """Behind the conversation and the input."""
    side: str
    """Behind lists and panels beside it."""
    text: str
    muted: str
    border: str
    bubble: str
    """Behind the person's own messages."""
    code: str
    """Behind code."""
    accent: str
    on_accent: str
    accent_hover: str
    focus: str
    """Around the accent, where it has the keyboard."""
    alarm: str
    """Text that warns."""
    second: str
    """The second curve of a plot."""
    warning: str
    warning_border: str


def looks(palette: QPalette) -> Looks:
    """The colours that go with `palette`."""
    page = palette.color(QPalette.ColorRole.Base)
    text = palette.color(QPalette.ColorRole.Text)
    dark = page.lightness() < text.lightness()

    def mixed(share: float) -> str:
        return _mix(page, text, share).name()

    return Looks(
        is_dark=dark,
        page=page.name(),
        side=mixed(0.045 if dark else 0.03),
        text=text.name(),
        muted=mixed(0.68),
        border=mixed(0.22 if dark else 0.16),
        bubble=_mix(page, QColor("#3d8fe8"), 0.22 if dark else 0.13).name(),
        code=mixed(0.09 if dark else 0.055),
        accent="#2874c9" if dark else "#1f6fc4",
        on_accent="#ffffff",
        accent_hover="#2266b4" if dark else "#185ea8",
        focus="#b9d9ff" if dark else "#0d3f75",
        alarm="#ff9a94" if dark else "#a82020",
        second="#e0a458" if dark else "#a85d00",
        warning=_mix(page, QColor("#d9534f"), 0.20 if dark else 0.09).name(),
        warning_border=_mix(page, QColor("#d9534f"), 0.55 if dark else 0.40).name(),
    )


def style_sheet(colours: Looks, font: QFont) -> str:
    """The sheet for a whole window; widgets are addressed by their object names.

    Args:
        colours: What to draw in.
        font: The desktop's; titles and notes are larger and smaller by a share of it.
    """
    letter_px = QFontInfo(font).pixelSize()
    note, title, headline, welcome = (round(letter_px * share) for share in (0.92, 1.15, 1.22, 1.5))
    return f"""
    QWidget#window {{ background: {colours.page}; }}
    QLabel {{ color: {colours.text}; background: transparent; }}
    QLabel#title {{ font-size: {title}px; font-weight: 600; }}
    QLabel#headline {{ font-size: {headline}px; font-weight: 600; }}
    QLabel#muted {{ color: {colours.muted}; font-size: {note}px; }}
    QLabel#fact {{ color: {colours.muted}; }}
    QLabel#welcome {{ font-size: {welcome}px; font-weight: 600; }}
    QLabel#hint {{ color: {colours.muted}; }}
    QFrame#line {{ background: {colours.border}; border: none; max-height: 1px; min-height: 1px; }}
    QFrame#notice, QFrame#failure {{
        background: {colours.code}; border: 1px solid {colours.border}; border-radius: 10px;
    }}
    QFrame#failure {{ background: {colours.warning}; border-color: {colours.warning_border}; }}
    QFrame#composer {{
        background: {colours.page}; border: 1px solid {colours.border}; border-radius: 14px;
    }}
    QFrame#composer[focused="true"] {{ border-color: {colours.accent}; }}
    QPlainTextEdit, QTextBrowser {{
        background: transparent; border: none; color: {colours.text};
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
    }}
    QPushButton {{
        border: 1px solid {colours.border}; border-radius: 8px; padding: 6px 14px;
        background: transparent; color: {colours.text};
    }}
    QPushButton:hover {{ background: {colours.code}; }}
    QPushButton:focus {{ border-color: {colours.accent}; }}
    QPushButton:disabled {{ color: {colours.muted}; }}
    QPushButton#primary {{
        background: {colours.accent}; border-color: {colours.accent}; color: {colours.on_accent};
        font-weight: 600;
    }}
    QPushButton#primary:hover {{ background: {colours.accent_hover}; }}
    QPushButton#primary:focus {{ border: 2px solid {colours.focus}; padding: 5px 13px; }}
    QPushButton#primary:disabled {{
        background: {colours.code}; border-color: {colours.border}; color: {colours.muted};
    }}
    QWidget#sidebar {{ background: {colours.side}; }}
    QScrollArea#panel {{ background: {colours.side}; border: none; }}
    QScrollArea#transcript, QWidget#column {{ background: {colours.page}; border: none; }}
    QListWidget#pages {{ background: transparent; border: none; color: {colours.text}; outline: 0; }}
    QListWidget#pages::item {{ padding: 8px 10px; border-radius: 8px; color: {colours.text}; }}
    QListWidget#pages::item:selected {{ background: {colours.code}; color: {colours.text}; }}
    QListWidget#pages::item:selected:focus {{ border: 1px solid {colours.accent}; }}
    QListView#chats {{ background: transparent; border: none; color: {colours.text}; }}
    QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit#field {{
        background: {colours.page}; border: 1px solid {colours.border}; border-radius: 8px;
        padding: 5px 8px; color: {colours.text};
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
    }}
    QLineEdit:focus, QComboBox:focus, QAbstractSpinBox:focus,
    QPlainTextEdit#field:focus {{ border-color: {colours.accent}; }}
    QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled {{ color: {colours.muted}; }}
    QComboBox::drop-down {{ border: none; width: 24px; }}
    QComboBox::down-arrow {{ image: {_control("down")}; width: 10px; height: 10px; }}
    QComboBox QAbstractItemView {{
        background: {colours.page}; border: 1px solid {colours.border}; color: {colours.text};
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
    }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
        border: none; background: transparent; width: 24px; subcontrol-origin: border;
    }}
    QAbstractSpinBox::up-button {{ subcontrol-position: top right; }}
    QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; }}
    QAbstractSpinBox::up-arrow {{ image: {_control("up")}; width: 9px; height: 9px; }}
    QAbstractSpinBox::down-arrow {{ image: {_control("down")}; width: 9px; height: 9px; }}
    QCheckBox, QRadioButton {{ color: {colours.text}; spacing: 8px; }}
    QRadioButton::indicator {{
        width: 14px; height: 14px; border-radius: 8px; border: 1px solid {colours.muted};
        background: {colours.page};
    }}
    QRadioButton::indicator:checked {{
        width: 6px; height: 6px; border: 5px solid {colours.accent}; background: {colours.on_accent};
    }}
    QRadioButton::indicator:focus {{ border-color: {colours.accent}; }}
    QCheckBox::indicator {{
        width: 14px; height: 14px; border-radius: 4px; border: 1px solid {colours.muted};
        background: {colours.page};
    }}
    QCheckBox::indicator:checked {{
        border-color: {colours.accent}; background: {colours.accent}; image: {_control("check")};
    }}
    QCheckBox::indicator:focus {{ border-color: {colours.accent}; }}
    QRadioButton:focus, QCheckBox:focus {{ text-decoration: underline; }}
    QSlider {{ min-height: 24px; }}  /* else the handle's edge is cut off */
    QSlider::groove:horizontal {{
        height: 4px; border-radius: 2px; background: {colours.border};
    }}
    QSlider::sub-page:horizontal {{ background: {colours.accent}; border-radius: 2px; }}
    QSlider::handle:horizontal {{
        width: 14px; margin: -6px 0; border-radius: 8px; border: 1px solid {colours.muted};
        background: {colours.page};
    }}
    QSlider::handle:horizontal:focus {{
        border: 2px solid {colours.accent}; width: 12px; margin: -6px 0;
    }}
    QAbstractSpinBox QLineEdit {{ border: none; padding: 0; background: transparent; }}
    QFrame#bubble {{ background: {colours.bubble}; border-radius: 12px; }}
    QFrame#codeFrame {{
        background: {colours.code}; border: 1px solid transparent; border-radius: 8px;
    }}
    QFrame#chip {{
        background: {colours.code}; border: 1px solid {colours.border}; border-radius: 8px;
    }}
    QLabel#small {{ color: {colours.muted}; font-size: {note}px; }}
    QLabel#note {{ color: {colours.muted}; font-style: italic; }}
    QLabel#badge {{
        border: 1px solid {colours.border}; border-radius: 8px; padding: 1px 7px;
        color: {colours.muted}; font-size: {note}px;
    }}
    QLabel#badge[privacy="public"] {{
        background: {colours.warning}; border-color: {colours.warning_border};
        color: {colours.text};
    }}
    QToolButton#small {{
        border: 1px solid transparent; border-radius: 6px; padding: 2px 5px;
        background: transparent; color: {colours.muted}; font-size: {note}px; margin: 0;
    }}
    QToolButton#small:hover {{ background: {colours.code}; color: {colours.text}; }}
    QToolButton#small:focus {{ border-color: {colours.accent}; color: {colours.text}; }}
    QToolButton#tool {{
        border: 1px solid transparent; border-radius: 8px; padding: 5px 9px;
        background: transparent; color: {colours.text};
    }}
    QToolButton#tool:hover, QToolButton#tool:checked {{ background: {colours.code}; }}
    QToolButton#tool:focus {{ border-color: {colours.accent}; }}
    QToolButton#tool::menu-indicator {{ image: none; }}
    QPushButton#round {{
        border-radius: 14px; padding: 0; background: {colours.page}; min-width: 28px;
        min-height: 28px;
    }}
    QScrollBar:vertical {{ background: transparent; width: 11px; margin: 2px; }}
    QScrollBar:horizontal {{ background: transparent; height: 11px; margin: 2px; }}
    QScrollBar::handle {{ background: {colours.border}; border-radius: 3px; }}
    QScrollBar::handle:vertical {{ min-height: 32px; }}
    QScrollBar::handle:horizontal {{ min-width: 32px; }}
    QScrollBar::handle:hover {{ background: {colours.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QSplitter#parts::handle {{ background: {colours.border}; }}
    QLabel#alarm {{ color: {colours.alarm}; font-size: {note}px; font-weight: 600; }}
    QProgressBar {{
        border: none; border-radius: 2px; background: {colours.border};
        max-height: 4px; min-height: 4px;
    }}
    QProgressBar::chunk {{ background: {colours.accent}; border-radius: 2px; }}
    """


def _control(name: str) -> str:
    return f'url("{(CONTROLS / name).with_suffix(".svg").as_posix()}")'


def _mix(below: QColor, above: QColor, share: float) -> QColor:
    """`below` covered by `above` at opacity `share`."""
    return QColor(
        *(
            round(low + (high - low) * share)
            for low, high in (
                (below.red(), above.red()),
                (below.green(), above.green()),
                (below.blue(), above.blue()),
            )
        )
    )
