"""The language of the app: which one it is, and its translations.

All texts are of one context, whichever object asks for them: presenters are handed the `tr` of the
object that draws, and say the same whoever that is. The sources, `translations/*.ts`, are read as
they are; compiled files would have to be kept in step with them, and save a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QCoreApplication,
    QFile,
    QIODevice,
    QLibraryInfo,
    QLocale,
    QObject,
    QTranslator,
    QXmlStreamReader,
)

from app.locales import LOCALES
from app.settings import Language

ENGLISH: Final = "en"
FOLDER: Final = Path(__file__).with_name("translations")


class TranslationsDamaged(Exception):
    """A file of translations cannot be used; the text is a sentence for a person."""


def code_of(wish: Language, system: Sequence[str]) -> str:
    """Which of our languages to speak.

    Args:
        wish: What the person has chosen.
        system: What the system's user reads, best first, like `de-AT`.
    """
    if wish is not Language.SYSTEM:
        return wish.value
    spoken = (name.replace("_", "-").split("-")[0] for name in system)
    return next((code for code in spoken if code in LOCALES), ENGLISH)


def texts_of(code: str) -> Mapping[str, str]:
    """English texts and what they are in a language; empty for English itself."""
    if code == ENGLISH:
        return {}
    return texts_in(FOLDER / f"{code}.ts")


def texts_in(file: Path) -> Mapping[str, str]:
    """The finished translations of a `.ts` file.

    Raises:
        TranslationsDamaged: The file is missing, or no such file.
    """
    source = QFile(str(file))
    if not source.open(QIODevice.OpenModeFlag.ReadOnly):
        raise TranslationsDamaged(
            f"{file} cannot be read ({source.errorString()}); install Shoal again."
        )
    reader, texts, english = QXmlStreamReader(source), dict[str, str](), ""
    while not reader.atEnd():
        if reader.readNext() is not QXmlStreamReader.TokenType.StartElement:
            continue
        if reader.name() == "source":
            english = reader.readElementText()
        elif reader.name() == "translation":
            is_finished = reader.attributes().value("type") != "unfinished"
            text = reader.readElementText()
            if is_finished and text:
                texts[english] = text
    source.close()
    if reader.hasError():
        raise TranslationsDamaged(
            f"{file} is damaged ({reader.errorString()}); install Shoal again."
        )
    return texts


class Translator(QTranslator):
    """Looks our texts up, whatever their context; Qt's own are left to Qt's translations."""

    def __init__(self, texts: Mapping[str, str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._texts = texts

    def isEmpty(self) -> bool:
        """Whether there is nothing to look up."""
        return not self._texts

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        """The text in our language; None: ask the next translator."""
        return None if context.startswith("Q") else self._texts.get(source)


def speak(qt: QCoreApplication, code: str) -> None:
    """Let all texts, numbers and dates from now on be of a language."""
    QLocale.setDefault(QLocale(code))
    own_of_qt = QTranslator(qt)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if own_of_qt.load(f"qtbase_{code}", folder):
        qt.installTranslator(own_of_qt)
    qt.installTranslator(Translator(texts_of(code), qt))
