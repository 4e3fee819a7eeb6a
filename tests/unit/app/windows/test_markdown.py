from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtGui import QTextCursor, QTextDocument, QTextFormat
from pytestqt.qtbot import QtBot

from app.windows.markdown import MarkdownTail, is_code, stable_length

ANSWER = """# Head

Intro with **bold** and `code`

1. one
2. two

3. three

- a
- b

> quote

---

```py
x = 1

y = 2
```

| a | b |
|---|---|
| 1 | 2 |

after
"""


@dataclass(frozen=True)
class Line:
    """What a reader sees of one block."""

    text: str
    mark: str = ""
    heading: int = 0
    code: bool = False
    quote: bool = False
    ruler: bool = False
    table: bool = False


def lines(document: QTextDocument) -> list[Line]:
    """The document, without the empty blocks that only separate."""
    found = []
    block = document.begin()
    while block.isValid():
        look, items = block.blockFormat(), block.textList()
        line = Line(
            text=block.text(),
            mark="" if items is None else items.itemText(block),
            heading=look.headingLevel(),
            code=is_code(look),
            quote=bool(look.property(QTextFormat.Property.BlockQuoteLevel)),
            ruler=look.hasProperty(QTextFormat.Property.BlockTrailingHorizontalRulerWidth),
            table=QTextCursor(block).currentTable() is not None,
        )
        if line != Line("") and line != Line("", table=True):
            found.append(line)
        block = block.next()
    return found


def streamed(answer: str, step: int) -> QTextDocument:
    """A question, then `answer` shown `step` characters at a time."""
    document = QTextDocument()
    QTextCursor(document).insertText("Question")
    tail = MarkdownTail(document)
    for end in range(step, len(answer) + step, step):
        tail.show(answer[:end])
    return document


@pytest.mark.parametrize("step", [1, 7, 64])
def test_streamed_answer_ends_up_like_one_shown_at_once(qtbot: QtBot, step: int) -> None:
    shown = lines(streamed(ANSWER, step))
    assert shown == lines(streamed(ANSWER, len(ANSWER)))
    assert shown == [
        Line("Question"),
        Line("Head", heading=1),
        Line("Intro with bold and code"),
        Line("one", mark="1."),
        Line("two", mark="2."),
        Line("three", mark="3."),
        Line("a", mark="."),
        Line("b", mark="."),
        Line("quote", quote=True),
        Line("", ruler=True),
        Line("x = 1", code=True),
        Line("", code=True),
        Line("y = 2", code=True),
        Line("a", table=True),
        Line("b", table=True),
        Line("1", table=True),
        Line("2", table=True),
        Line("after"),
    ]


def test_blank_lines_inside_code_do_not_end_it() -> None:
    assert stable_length("text\n\n```\na\n\nb\n") == len("text\n\n")
    assert stable_length("text\n\n```\na\n\nb\n```\n\nmore") == len("text\n\n```\na\n\nb\n```\n\n")
    assert stable_length("~~~\n```\n\n") == 0


def test_html_in_an_answer_is_shown_as_text(qtbot: QtBot) -> None:
    document = streamed("<b>Pay</b> <img src='file:///etc/passwd'> now", 3)
    assert document.toPlainText() == "Question\n<b>Pay</b> <img src='file:///etc/passwd'> now"
