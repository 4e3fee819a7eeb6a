"""Running text in a message."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QTextDocument, QWheelEvent
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.windows.markdown import MarkdownTail

LINK_SCHEMES = ("http", "https", "mailto")


class TextPart(QTextBrowser):
    """Text as high as it is; it can be selected, and its links open in the browser.

    Args:
        is_markdown: Whether to read it as Markdown; what the person says is shown as it is.
    """

    def __init__(self, *, is_markdown: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("part")
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setUndoRedoEnabled(False)
        self.anchorClicked.connect(open_link)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.document().setIndentWidth(26)
        self._text = ""
        self._tail = MarkdownTail(self.document()) if is_markdown else None

    def show_text(self, text: str) -> None:
        """Show `text`, of which what is shown now is the beginning."""
        if text == self._text:
            return
        self._text = text
        if self._tail is None:
            self.setPlainText(text)
        else:
            self._tail.show(text)

    def ideal_width(self, most: int) -> int:
        """As wide as the longest line, but at most `most` pixels."""
        measure = QTextDocument()
        measure.setDefaultFont(self.font())
        measure.setDocumentMargin(0)
        measure.setTextWidth(most)
        measure.setPlainText(self._text)
        return min(round(measure.idealWidth()) + 2, most)

    def fit(self, width: int) -> None:
        """Be `width` pixels wide and as high as the text."""
        document = self.document()
        if document.textWidth() != width:
            document.setTextWidth(width)
        height = round(document.size().height() + 0.5)
        if self.width() != width or self.height() != height:
            self.setFixedSize(width, height)
        self.verticalScrollBar().setValue(0)  # it is as high as its text, but was not always

    def plain_text(self) -> str:
        """What is shown."""
        return self.toPlainText()

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Load nothing: an answer must not make us read files or call servers."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the conversation."""
        event.ignore()


def open_link(link: QUrl) -> None:
    """Open what a stranger's text names, if it is a page or an address."""
    if link.scheme().lower() in LINK_SCHEMES:
        QDesktopServices.openUrl(link)
