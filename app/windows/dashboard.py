"""The dashboard: what this node does, and where it stands in the swarm."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.artwork import icon
from app.dashboard_presenters import DashboardView
from app.past_presenters import PastView
from app.presenters import Icon, Overview
from app.settings import Settings
from app.windows.activity_page import ActivityPage
from app.windows.diagnostics_page import DiagnosticsPage
from app.windows.log_page import LogPage
from app.windows.looks import Looks
from app.windows.pause_button import PauseButton
from app.windows.swarm_page import SwarmPage
from app.windows.top_window import TopWindow

ICON_PX = 32


class DashboardWindow(TopWindow):
    """Draws an `Overview`, a `DashboardView` and a `PastView`.

    Args:
        settings: Where windows were.
        log_folder: Where the log's file is.

    Signals:
        pause_wanted: Pause, as this `PauseRequest` says.
        resume_wanted: Serve again.
        start_wanted: Start the engine again.
        closed: The window was closed.
    """

    pause_wanted = Signal(object)
    resume_wanted = Signal()
    start_wanted = Signal()

    def __init__(self, settings: Settings, log_folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._icon: Icon | None = None
        self.setWindowTitle(self.tr("Shoal dashboard"))
        self._state_icon = QLabel()
        self._state_icon.setFixedSize(ICON_PX, ICON_PX)
        self._headline = QLabel(wordWrap=True)
        self._headline.setObjectName("headline")
        self._detail = QLabel(wordWrap=True)
        self._detail.setObjectName("hint")
        self.pause = PauseButton()
        self.resume, self.start = QPushButton(), QPushButton()
        self.swarm = SwarmPage()
        self.activity = ActivityPage()
        self.log = LogPage(log_folder)
        self.diagnostics = DiagnosticsPage()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.setAccessibleName(self.tr("Pages of the dashboard"))
        self.tabs.tabBar().setAccessibleName(self.tr("Pages of the dashboard"))
        self.tabs.tabBar().setDrawBase(False)
        for page, title in (
            (self.swarm, self.tr("&My part")),
            (self.activity, self.tr("&Activity")),
            (self.log, self.tr("&Log")),
            (self.diagnostics, self.tr("Dia&gnostics")),
        ):
            page.setAccessibleName(title.replace("&", ""))
            self.tabs.addTab(page, title)
        self._lay_out()
        self.pause.pause_wanted.connect(self.pause_wanted)
        self.resume.clicked.connect(self.resume_wanted)
        self.start.clicked.connect(self.start_wanted)
        geometry = settings.geometry("dashboard")
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(960, 760)
        self.dress()

    def show_view(self, over: Overview, view: DashboardView, past: PastView) -> None:
        """Draw all three."""
        if over.icon is not self._icon:
            self._icon = over.icon
            self._state_icon.setPixmap(icon(over.icon).pixmap(ICON_PX, ICON_PX))
            self.setWindowIcon(icon(over.icon))
        self._headline.setText(over.headline)
        self._detail.setText(over.detail)
        self._detail.setVisible(bool(over.detail))
        self.pause.show_choices(over.pause, over.pauses)
        for button, action in ((self.resume, over.resume), (self.start, over.start)):
            button.setText(action.label)
            button.setAccessibleName(action.label.replace("&", ""))
            button.setVisible(action.visible)
            button.setEnabled(action.enabled)
        self.swarm.show_view(view)
        self.activity.show_view(past)
        self.log.show_view(past)
        self.diagnostics.show_view(past)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Remember the place."""
        self._settings.keep_geometry("dashboard", self.saveGeometry())
        super().closeEvent(event)

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self._headline)
        words.addWidget(self._detail)
        head = QHBoxLayout()
        head.setContentsMargins(18, 12, 14, 12)
        head.setSpacing(11)
        head.addWidget(self._state_icon)
        head.addLayout(words, 1)
        for button in (self.start, self.resume, self.pause):
            head.addWidget(button)
        line = QFrame()
        line.setObjectName("line")
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(head)
        whole.addWidget(line)
        whole.addWidget(self.tabs, 1)

    def own_sheet(self, colours: Looks) -> str:
        """What tabs, cards and tables need."""
        return _sheet(colours)

    def take_colours(self, colours: Looks) -> None:
        """For the picture and the plots."""
        self.swarm.set_colours(colours)
        self.activity.set_colours(colours)


def _sheet(colours: Looks) -> str:
    """What only this window has; letters keep the desktop's size."""
    return f"""
    QLabel#headline, QLabel#cardTitle {{ font-weight: 600; }}
    QTabWidget::pane {{ border: none; }}
    QTabBar {{ background: {colours.page}; }}
    QTabBar::tab {{
        background: transparent; border: none; border-bottom: 2px solid transparent;
        color: {colours.muted}; padding: 8px 14px;
    }}
    QTabBar::tab:selected {{ color: {colours.text}; border-bottom-color: {colours.accent}; }}
    QTabBar::tab:hover {{ color: {colours.text}; }}
    QTabBar::tab:focus {{ background: {colours.code}; }}
    QScrollArea, QWidget#page {{ background: {colours.page}; border: none; }}
    QFrame#card {{
        background: {colours.page}; border: 1px solid {colours.border}; border-radius: 10px;
    }}
    QPushButton#choice:checked {{
        background: {colours.accent}; border-color: {colours.accent}; color: {colours.on_accent};
    }}
    QPushButton#choice:focus {{ border: 2px solid {colours.focus}; padding: 5px 13px; }}
    QPlainTextEdit#log, QListWidget {{
        background: {colours.page}; border: 1px solid {colours.border}; border-radius: 8px;
        padding: 6px; color: {colours.text};
    }}
    QPlainTextEdit#log:focus, QListWidget:focus {{ border-color: {colours.accent}; }}
    QListWidget::item {{ padding: 5px 4px; border-radius: 6px; }}
    QListWidget::item:selected {{ background: {colours.accent}; color: {colours.on_accent}; }}
    QTableWidget {{
        background: {colours.page}; border: none; color: {colours.text};
        gridline-color: {colours.border}; alternate-background-color: {colours.code};
        selection-background-color: {colours.accent}; selection-color: {colours.on_accent};
    }}
    QTableWidget::item {{ padding: 0 4px; }}
    QHeaderView, QHeaderView::section {{
        background: transparent; color: {colours.muted}; border: none; padding: 0 4px;
    }}
    """
