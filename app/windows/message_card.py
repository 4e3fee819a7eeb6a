"""One message of a conversation, with what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.chat_presenters import answer_facts
from app.markdown_parts import Part, parts
from app.windows.code_part import CodePart
from app.windows.elided import ElidedLabel
from app.windows.looks import Looks
from app.windows.text_part import TextPart
from app.words import ending_note, size
from engine.localapi.chats import Message, Speaker

BUBBLE_PADDING_X_PX = 14
BUBBLE_PADDING_Y_PX = 9
BUBBLE_SHARE = 0.82
"""The widest bubble, as a share of the column."""
SHORT_CHARS = 6000
"""Of a longer message of one's own only the beginning is shown at first."""


class MessageCard(QWidget):
    """Draws a `Message`; the newest one may grow.

    Signals:
        copy_wanted, edit_wanted, again_wanted, continue_wanted: What the buttons say.
        branch_wanted: The id of a sibling to show.
        grown: It has another height now.
    """

    copy_wanted = Signal()
    edit_wanted = Signal()
    again_wanted = Signal()
    continue_wanted = Signal()
    branch_wanted = Signal(int)
    grown = Signal()

    def __init__(self, message: Message, colours: Looks, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._colours = colours
        self._is_mine = message.speaker is Speaker.USER
        self._parts: list[TextPart | CodePart] = []
        self._shows_all = False
        self._width = 0
        self.setAccessibleName(self.tr("Your message") if self._is_mine else self.tr("Answer"))
        self._files = ElidedLabel()
        self._files.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._files.setObjectName("small")
        self._body = QFrame()
        if self._is_mine:
            self._body.setObjectName("bubble")
        self._column = QVBoxLayout(self._body)
        x, y = (BUBBLE_PADDING_X_PX, BUBBLE_PADDING_Y_PX) if self._is_mine else (0, 0)
        self._column.setContentsMargins(x, y, x, y)
        self._column.setSpacing(10)
        self._note = QLabel(wordWrap=True)
        self._note.setObjectName("note")
        self._more = self._button(self.tr("Show all"), self.tr("Show the whole message"))
        self._more.clicked.connect(self._show_all)
        self._build_tools()
        whole = self._whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(4)
        side = Qt.AlignmentFlag.AlignRight if self._is_mine else Qt.AlignmentFlag.AlignLeft
        whole.addWidget(self._files)
        for part in (self._body, self._more):
            whole.addWidget(part, 0, side)
        whole.addWidget(self._note)
        whole.addWidget(self._tools)
        self._draw()

    def show_message(
        self, message: Message, *, can_change: bool, can_continue: bool, is_last: bool
    ) -> None:
        """Show `message`, a later state of the same.

        Args:
            message: What is said.
            can_change: Whether it can be edited or repeated, and another branch shown.
            can_continue: Whether it can go on.
            is_last: Whether it is the end of the branch that is shown.
        """
        if message != self.message:
            self.message = message
            self._draw()
        over = message.ending is not None
        self._tools.setVisible(over or self._is_mine)
        self._edit.setVisible(self._is_mine)
        self._again.setVisible(not self._is_mine)
        self._continue.setVisible(is_last and can_continue and not self._is_mine)
        for button in (self._edit, self._again, self._continue):
            button.setEnabled(can_change)
        at = message.siblings.index(message.id) if message.id in message.siblings else 0
        several = len(message.siblings) > 1
        for part in (self._before, self._place, self._after):
            part.setVisible(several)
        self._before.setEnabled(can_change and at > 0)
        self._after.setEnabled(can_change and at + 1 < len(message.siblings))
        place = f"{at + 1}/{len(message.siblings)}"
        self._place.setText(place)
        self._place.setAccessibleName(self.tr("Version {place}").format(place=place))

    def fit(self, width: int) -> None:
        """Be `width` pixels wide and as high as needed."""
        self._width = width
        if self._is_mine:
            most = int(width * BUBBLE_SHARE) - 2 * BUBBLE_PADDING_X_PX
            text = self._parts[0] if self._parts else None
            if isinstance(text, TextPart):
                text.fit(text.ideal_width(most))
        else:
            for part in self._parts:
                part.fit(width)
        if not self._note.isHidden():
            self._note.setFixedHeight(self._note.heightForWidth(width))
        self._column.activate()
        self._whole.activate()
        height = self._whole.sizeHint().height()
        if self.size().width() != width or self.size().height() != height:
            self.setFixedSize(width, height)

    def plain_text(self) -> str:
        """What is shown, without the buttons."""
        texts = [part.plain_text() for part in self._parts]
        if not self._note.isHidden():
            texts.append(self._note.text())
        return "\n".join(texts)

    def set_colours(self, colours: Looks) -> None:
        """Follow the palette."""
        self._colours = colours
        for part in self._parts:
            if isinstance(part, CodePart):
                part.set_colours(colours)

    def _build_tools(self) -> None:
        self._tools = QWidget()
        copy = self._button(self.tr("Copy"), self.tr("Copy the message"))
        self._edit = self._button(self.tr("Edit"), self.tr("Edit and ask anew (Ctrl+E: the last)"))
        self._again = self._button(self.tr("Again"), self.tr("Answer once more (Ctrl+R)"))
        self._continue = self._button(self.tr("Continue"), self.tr("Let the answer go on (Ctrl+G)"))
        self._before = self._button("", self.tr("Show the version before"))
        self._after = self._button("", self.tr("Show the version after"))
        self._before.setArrowType(Qt.ArrowType.LeftArrow)
        self._after.setArrowType(Qt.ArrowType.RightArrow)
        self._place = QLabel()
        self._facts = ElidedLabel()
        for label in (self._place, self._facts):
            label.setObjectName("small")
        copy.clicked.connect(self.copy_wanted)
        self._edit.clicked.connect(self.edit_wanted)
        self._again.clicked.connect(self.again_wanted)
        self._continue.clicked.connect(self.continue_wanted)
        self._before.clicked.connect(lambda: self._show_sibling(-1))
        self._after.clicked.connect(lambda: self._show_sibling(1))
        row = QHBoxLayout(self._tools)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        if self._is_mine:
            row.addStretch(1)
        for part in (
            self._before,
            self._place,
            self._after,
            copy,
            self._edit,
            self._again,
            self._continue,
        ):
            row.addWidget(part)
        if not self._is_mine:
            row.addSpacing(6)
            row.addWidget(self._facts, 1)

    def _button(self, text: str, name: str) -> QToolButton:
        button = QToolButton()
        button.setObjectName("small")
        button.setText(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    def _show_sibling(self, step: int) -> None:
        at = self.message.siblings.index(self.message.id) + step
        if 0 <= at < len(self.message.siblings):
            self.branch_wanted.emit(self.message.siblings[at])

    def _show_all(self) -> None:
        self._shows_all = True
        self._draw()
        self.fit(self._width)
        self.grown.emit()

    def _draw(self) -> None:
        message = self.message
        text = message.text
        cut = self._is_mine and len(text) > SHORT_CHARS and not self._shows_all
        self._more.setVisible(cut)
        if cut:
            text = text[:SHORT_CHARS] + "…"
        self._show_parts(
            (Part(is_code=False, text=text),)
            if self._is_mine
            else parts(text or ("…" if message.ending is None else ""))
        )
        self._body.setVisible(bool(self._parts) and bool(text or message.ending is None))
        files = " · ".join(
            f"{file.name} ({size(file.chars, self.tr)})" for file in message.attachments
        )
        self._files.setText(files)
        self._files.setVisible(bool(files))
        note = "" if self._is_mine else ending_note(message.ending, self.tr)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._facts.setText(answer_facts(message, self.tr))

    def _show_parts(self, wanted: tuple[Part, ...]) -> None:
        for at, part in enumerate(wanted):
            if at < len(self._parts) and isinstance(self._parts[at], CodePart) is not part.is_code:
                self._drop_from(at)
            if at == len(self._parts):
                self._append(part)
            shown = self._parts[at]
            if isinstance(shown, CodePart):
                shown.show_part(part)
            else:
                shown.show_text(part.text)
        self._drop_from(len(wanted))

    def _append(self, part: Part) -> None:
        if part.is_code:
            shown: TextPart | CodePart = CodePart(part, self._colours)
        else:
            shown = TextPart(is_markdown=not self._is_mine)
            shown.setAccessibleName(self.accessibleName())
        self._parts.append(shown)
        self._column.addWidget(shown)

    def _drop_from(self, at: int) -> None:
        for part in self._parts[at:]:
            self._column.removeWidget(part)
            part.hide()
            part.deleteLater()
        del self._parts[at:]
