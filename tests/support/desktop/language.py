"""The language in which windows are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QCoreApplication, QLocale

from app.language import Translator, texts_of


def tr(text: str) -> str:
    """What a presenter is handed, in the language that is spoken now."""
    return QCoreApplication.translate("app", text)


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Let windows that are built meanwhile speak a language."""
    application, before = QCoreApplication.instance(), QLocale()
    assert application is not None
    translator = Translator(texts_of(code))
    application.installTranslator(translator)
    QLocale.setDefault(QLocale(code))
    try:
        yield
    finally:
        QLocale.setDefault(before)
        application.removeTranslator(translator)
