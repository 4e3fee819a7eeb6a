"""Markdown into a text document while it is still being written.

Laying out everything again with each token would take a quarter of a second per step in a long
answer. So what can no longer change is laid out once, and only the unfinished tail again.
"""

from __future__ import annotations

from PySide6.QtGui import (
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextDocumentFragment,
    QTextFormat,
    QTextList,
)

# HTML in an answer is shown as text: a model must not be able to draw our interface.
FEATURES = (
    QTextDocument.MarkdownFeature.MarkdownDialectGitHub
    | QTextDocument.MarkdownFeature.MarkdownNoHTML
)
LINE_HEIGHT_PERCENT = 130
PARAGRAPH_GAP_PX = 9
CODE_LINE_HEIGHT_PERCENT = 118
CODE_INSET_PX = 14
CODE_PADDING_PX = 10
"""The background of code reaches this far above and below it; margins leave it the room."""
MONOSPACE = [
    "JetBrains Mono",
    "Cascadia Mono",
    "DejaVu Sans Mono",
    "Consolas",
    "Menlo",
    "monospace",
]


def stable_length(source: str) -> int:
    """How many characters of `source` can no longer change their look.

    These end with the last blank line that is outside a code fence.
    """
    fence = ""
    stable = position = 0
    for line in source.splitlines(keepends=True):
        position += len(line)
        text = line.strip()
        mark = text[:3]
        if fence:
            if mark == fence and not text.strip(fence[0]):
                fence = ""
        elif mark in ("```", "~~~"):
            fence = mark
        elif not text and line.endswith("\n"):
            stable = position
    return stable


class MarkdownTail:
    """The newest answer, at the end of a document that holds its question already."""

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._laid_out = ""
        self._start = _end(document)
        self._last_format = _last_block_format(document)

    def show(self, source: str) -> None:
        """Make the document end with `source`, which continues what was shown before."""
        cursor = QTextCursor(self._document)
        cursor.beginEditBlock()
        cursor.setPosition(self._start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        # An empty block, such as a ruler, would have taken the look of what followed it.
        cursor.setBlockFormat(self._last_format)
        rest = source[len(self._laid_out) :]
        stable = stable_length(rest)
        if rest[:stable].strip():
            self._append(cursor, rest[:stable])
            self._laid_out += rest[:stable]
            self._start = _end(self._document)
            self._last_format = _last_block_format(self._document)
            rest = rest[stable:]
        self._append(cursor, rest)
        cursor.endEditBlock()

    def _append(self, cursor: QTextCursor, source: str) -> None:
        part = QTextDocument()
        part.setDefaultFont(self._document.defaultFont())
        part.setMarkdown(source.strip("\n"), FEATURES)
        if part.isEmpty() and part.blockCount() == 1:
            return  # `1.` or the first mark of something, which has no look yet
        _set_spacing(part)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        before, first = cursor.block(), part.begin()
        above, own = _list_of(before), _list_of(first)
        if self._document.isEmpty() and above is None:
            cursor.setBlockFormat(first.blockFormat())
        elif own is None:
            cursor.insertBlock(first.blockFormat(), QTextCharFormat())
        elif above is not None:  # after anything but a list, Qt opens the first item itself
            cursor.insertBlock()
            if not _are_alike(above, own):
                cursor.createList(own.format())
        cursor.insertFragment(QTextDocumentFragment(part))
        _join_lists(before.next())


def code_font_format() -> QTextCharFormat:
    """The characters of code."""
    code = QTextCharFormat()
    code.setFontFamilies(MONOSPACE)
    code.setFontFixedPitch(True)
    code.setFontStyleHint(QFont.StyleHint.Monospace)
    return code


def body_block_format() -> QTextBlockFormat:
    """A paragraph of running text."""
    paragraph = QTextBlockFormat()
    paragraph.setLineHeight(
        LINE_HEIGHT_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
    )
    paragraph.setBottomMargin(PARAGRAPH_GAP_PX)
    return paragraph


def is_code(block_format: QTextBlockFormat) -> bool:
    """Whether a block is part of a code fence."""
    return block_format.hasProperty(
        QTextFormat.Property.BlockCodeFence
    ) or block_format.hasProperty(QTextFormat.Property.BlockCodeLanguage)


def _end(document: QTextDocument) -> int:
    cursor = QTextCursor(document)
    cursor.movePosition(QTextCursor.MoveOperation.End)
    return cursor.position()


def _last_block_format(document: QTextDocument) -> QTextBlockFormat:
    return document.lastBlock().blockFormat()


def _join_lists(block: QTextBlock) -> None:
    """Let items go on with the list above them, so that numbers count on across blank lines."""
    while block.isValid():
        above, own = _list_of(block.previous()), _list_of(block)
        if above is not None and own is not None and _are_alike(above, own):
            above.add(block)
        block = block.next()


def _list_of(block: QTextBlock) -> QTextList | None:
    """The list that `block` is an item of."""
    found: QTextList | None = block.textList()  # Qt's own stubs forget the None
    return found


def _are_alike(one: QTextList, other: QTextList) -> bool:
    """Whether two lists have the same marks at the same depth."""
    return (one.format().style(), one.format().indent()) == (
        other.format().style(),
        other.format().indent(),
    )


def _set_spacing(part: QTextDocument) -> None:
    """Paragraph gaps, line height, and the inset of code, which Qt's importer leaves bare."""
    block = part.begin()
    while block.isValid():
        layout = block.blockFormat()
        cursor = QTextCursor(block)
        if is_code(layout):
            layout.setLeftMargin(CODE_INSET_PX)
            layout.setRightMargin(CODE_INSET_PX)
            first = not is_code(block.previous().blockFormat())
            last = not is_code(block.next().blockFormat())
            layout.setTopMargin(CODE_PADDING_PX + PARAGRAPH_GAP_PX if first else 0)
            layout.setBottomMargin(CODE_PADDING_PX + PARAGRAPH_GAP_PX if last else 0)
            layout.setLineHeight(
                CODE_LINE_HEIGHT_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value
            )
            layout.setNonBreakableLines(False)
            cursor.setBlockFormat(layout)
            cursor.movePosition(
                QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor
            )
            cursor.mergeCharFormat(code_font_format())
        else:
            if layout.headingLevel():
                layout.setTopMargin(PARAGRAPH_GAP_PX)
            body = body_block_format()
            if _list_of(block) is not None and _list_of(block.next()) is not None:
                body.setBottomMargin(PARAGRAPH_GAP_PX / 3)
            cursor.mergeBlockFormat(body)
        block = block.next()
