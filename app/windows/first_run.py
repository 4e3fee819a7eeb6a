"""The first steps: what Shoal is, what this machine would give, how to begin."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.setup_presenters import Caps, FirstRunView
from app.windows.cap_sliders import CapSliders
from app.windows.card import CardFrame
from app.windows.folder_choice import FolderChoice
from app.windows.page_layout import (
    PAGE_LEFT_PX,
    PAGE_RIGHT_PX,
    framed,
    heading,
    muted,
    scrolling_page,
)
from app.windows.swarm_choice import SwarmChoice
from app.windows.top_window import TopWindow

SIZE_PX = (640, 560)
PREVIEW_AFTER_MS = 120
"""The card is asked for when a slider rests."""
STEPS = 1000
WELCOME, MACHINE, BEGIN, READY = range(4)


class FirstRunWindow(TopWindow):
    """Three steps and an end.

    Signals:
        measure_wanted: Measure this machine.
        caps_chosen: The sliders stand at these `Caps` now.
        begin_wanted: A `Choice`: begin so.
        chat_wanted: Open the chat.
        closed: The window was closed.
    """

    measure_wanted = Signal()
    caps_chosen = Signal(object)
    begin_wanted = Signal(object)
    chat_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view: FirstRunView | None = None
        self._has_measured = False
        self.setWindowTitle(self.tr("Welcome to Shoal"))
        self.resize(*SIZE_PX)
        self.sliders = CapSliders()
        self.swarm = SwarmChoice()
        self.folder = FolderChoice()
        self.measure = QPushButton(self.tr("&Measure"))
        self._machine = QLabel(wordWrap=True)
        self._measuring = QLabel(wordWrap=True)
        self._measured = self._bar()
        self._card = CardFrame()
        self._state, self._getting_ready = QLabel(wordWrap=True), self._bar()
        self._state.setObjectName("title")
        self._invite_words = QLabel(wordWrap=True)
        self.invite = QLineEdit(readOnly=True)
        self.invite.setAccessibleName(self.tr("Invite"))
        self.copy = QPushButton(self.tr("&Copy the invite"))
        self._pages = QStackedWidget()
        for page in (self._welcome(), self._machine_page(), self._begin_page(), self._ready()):
            self._pages.addWidget(page)
        self._error = QLabel(wordWrap=True)
        self._error_frame = framed("failure", self._error)
        self._steps = QLabel()
        self._steps.setObjectName("hint")
        self.back, self.next = QPushButton(self.tr("&Back")), QPushButton()
        self.next.setObjectName("primary")
        self.next.setDefault(True)
        self._lay_out()
        self._ask_later = QTimer(self, singleShot=True, interval=PREVIEW_AFTER_MS)
        self._ask_later.timeout.connect(lambda: self.caps_chosen.emit(self.sliders.caps))
        self.sliders.changed.connect(lambda _caps: self._on_slid())
        self.swarm.changed.connect(self._draw_buttons)
        self.swarm.refused.connect(self._show_error)
        self.measure.clicked.connect(self._measure)
        self.back.clicked.connect(lambda: self._go_to(self._pages.currentIndex() - 1))
        self.next.clicked.connect(self._on_next)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.invite.text()))
        self.dress()
        self._go_to(WELCOME)

    @property
    def caps(self) -> Caps:
        """Where the sliders stand."""
        return self.sliders.caps

    def show_view(self, view: FirstRunView) -> None:
        """Draw `view`."""
        if view == self._view:
            return
        self._view = view
        if view.has_begun and self._pages.currentIndex() != READY:
            self._go_to(READY)
        self._has_measured = self._has_measured or bool(view.measuring)
        self._machine.setText(view.machine)
        self._machine.setVisible(bool(view.machine))
        self._measuring.setText(view.measuring or view.measuring_error)
        self._measuring.setVisible(bool(self._measuring.text()))
        self._draw_progress(self._measured, view.progress if view.measuring else None)
        self.measure.setEnabled(not view.measuring and view.can_begin)
        self.measure.setText(
            self.tr("&Measure again") if self._has_measured else self.tr("&Measure")
        )
        self.sliders.show_words(view.caps)
        self.folder.show_text(view.folder)
        self._card.show_card(view.card)
        self._show_error(view.error)
        self._state.setText(self.tr("Ready. You can chat now.") if view.can_chat else view.state)
        self._draw_progress(self._getting_ready, view.progress if view.has_begun else None)
        self._invite_words.setVisible(bool(view.invite))
        self.invite.setText(view.invite)
        self.invite.setCursorPosition(0)
        self.invite.setVisible(bool(view.invite))
        self.copy.setVisible(bool(view.invite))
        self.swarm.setEnabled(not view.changing)
        self._draw_buttons()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go on with Return, wherever the keyboard is."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.next.click()
        else:
            super().keyPressEvent(event)

    # Pages ----------------------------------------------------------------------------------

    def _welcome(self) -> QScrollArea:
        what = self.tr(
            "Shoal runs a large language model on several computers at once. Each holds some of its "
            "layers, called blocks, and hands its results on to the next. Yours can hold some, too."
        )
        manners = self.tr(
            "Your own work comes first. Shoal steps aside for games and full-screen programs, stays "
            "within the limits you set, and pauses whenever you say so."
        )
        sees = self.tr(
            "What others can see: every computer of a chain can read your text and the answer. "
            "Use a private swarm, or this computer alone, for anything sensitive."
        )
        return scrolling_page(
            heading(self.tr("What Shoal is")),
            QLabel(what, wordWrap=True),
            QLabel(manners, wordWrap=True),
            framed("notice", QLabel(sees, wordWrap=True)),
        )

    def _machine_page(self) -> QScrollArea:
        row = QHBoxLayout()
        row.addWidget(self._machine, 1)
        row.addWidget(self.measure)
        note = muted(self.tr("Nothing has been downloaded yet. You can change all of this later."))
        return scrolling_page(
            heading(self.tr("What your computer would give")),
            row, self._measuring, self._measured, self._card, self.sliders, note,
        )  # fmt: skip

    def _begin_page(self) -> QScrollArea:
        note = muted(
            self.tr("The model is downloaded when you begin, if it is not on this computer.")
        )
        return scrolling_page(heading(self.tr("How to begin")), self.swarm, note, self.folder)

    def _ready(self) -> QScrollArea:
        self._invite_words.setText(
            self.tr("Give this invite to those who shall join. It contains the key to the swarm.")
        )
        row = QHBoxLayout()
        row.addWidget(self.copy)
        row.addStretch(1)
        return scrolling_page(
            heading(self.tr("Getting ready")),
            self._state, self._getting_ready, self._invite_words, self.invite, row,
        )  # fmt: skip

    def _bar(self) -> QProgressBar:
        bar = QProgressBar(textVisible=False, maximum=STEPS)
        bar.setAccessibleName(self.tr("Progress"))
        bar.hide()
        return bar

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._steps)
        buttons.addStretch(1)
        buttons.addWidget(self.back)
        buttons.addWidget(self.next)
        foot = QVBoxLayout()
        foot.setContentsMargins(PAGE_LEFT_PX, 0, PAGE_RIGHT_PX, 0)
        foot.setSpacing(14)
        foot.addWidget(self._error_frame)
        foot.addLayout(buttons)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(26, 24, 26, 20)
        whole.setSpacing(14)
        whole.addWidget(self._pages, 1)
        whole.addLayout(foot)

    # What happens ---------------------------------------------------------------------------

    def _go_to(self, page: int) -> None:
        self._pages.setCurrentIndex(page)
        self._steps.setText("" if page == READY else self.tr("Step {n} of 3").format(n=page + 1))
        self._draw_buttons()
        if page == MACHINE:
            self.caps_chosen.emit(self.sliders.caps)
            if not self._has_measured:
                self._measure()
        self.next.setFocus()

    def _on_next(self) -> None:
        page = self._pages.currentIndex()
        if page == BEGIN:
            self.begin_wanted.emit(self.swarm.choice)
        elif page == READY:
            self.chat_wanted.emit()
            self.close()
        else:
            self._go_to(page + 1)

    def _measure(self) -> None:
        if self.isVisible():
            self.measure_wanted.emit()

    def _on_slid(self) -> None:
        self._ask_later.start()

    def _draw_buttons(self) -> None:
        page, view = self._pages.currentIndex(), self._view
        texts = (self.tr("&Next"), self.tr("&Next"), self.tr("Be&gin"), self.tr("&Open chat"))
        text = self.tr("Beginning…") if page == BEGIN and view and view.changing else texts[page]
        self.next.setText(text)
        self.next.setAccessibleName(text.replace("&", ""))
        self.back.setVisible(page in (MACHINE, BEGIN))
        if page == BEGIN:
            self.next.setEnabled(
                view is not None and view.can_begin and self.swarm.choice.is_complete
            )
            self.back.setEnabled(view is None or not view.changing)
        elif page == READY:
            self.next.setEnabled(view is not None and view.can_chat)
        else:
            self.next.setEnabled(True)

    def _show_error(self, text: str) -> None:
        self._error.setText(text)
        self._error_frame.setAccessibleName(text)
        self._error_frame.setVisible(bool(text))

    def _draw_progress(self, bar: QProgressBar, share: float | None) -> None:
        bar.setVisible(share is not None)
        if share is not None:
            bar.setRange(0, 0 if share < 0 else STEPS)
            bar.setValue(round(max(share, 0.0) * STEPS))
