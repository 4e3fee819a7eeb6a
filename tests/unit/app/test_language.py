from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QObject

from app.language import FOLDER, TranslationsDamaged, Translator, code_of, texts_in, texts_of
from app.locales import LOCALES
from app.settings import Language, Settings
from app.words import (
    bits_per_s,
    counted,
    day_words,
    end_of_pause,
    in_words,
    milliseconds,
    number,
    percent,
    size,
)
from engine.core.sentences import Sentence
from engine.localapi.running import Home
from engine.localapi.said import said
from tests.support.translations import (
    COMMAND,
    LANGUAGES,
    ROOT,
    calls_of_tr,
    text_of,
    texts_of_the_app,
    update,
)

APP = ROOT / "app"
SAID_BY = {
    "Action", "QCheckBox", "QLabel", "QLineEdit", "QPushButton", "QRadioButton", "QToolButton",
    "addAction", "addItem", "addTab", "setAccessibleDescription", "setAccessibleName",
    "setPlaceholderText", "setSpecialValueText", "setStatusTip", "setSuffix", "setText", "setTitle",
    "setToolTip", "setWhatsThis", "setWindowTitle", "show_text",
}  # fmt: skip
"""Calls that bring their texts before a person."""
SAID_AS_IT_IS = {"Shoal"}
NOW = datetime(2026, 3, 2, 18, 5, tzinfo=UTC)
"""A Monday."""
DAY_S = 86_400.0


@pytest.fixture
def french(qapp: QCoreApplication) -> Iterator[None]:
    translator = Translator({"Stop": "Arrêter"})
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


def tr_of(code: str, texts: Mapping[str, str] | None = None):
    known = texts_of(code) if texts is None else texts
    return lambda text: known.get(text, code if text == "en" else text)


@pytest.mark.parametrize("code", LOCALES)
def test_numbers_and_days_are_written_as_qt_writes_them(code: str) -> None:
    ours, theirs = LOCALES[code], QLocale(code)
    short = QLocale.FormatType.ShortFormat
    assert ours.decimal_point == theirs.decimalPoint()
    assert ours.group_separator == theirs.groupSeparator()
    assert ours.weekdays == tuple(theirs.dayName(day) for day in range(1, 8))
    assert ours.short_weekdays == tuple(theirs.dayName(day, short) for day in range(1, 8))
    assert ours.short_months == tuple(theirs.monthName(month, short) for month in range(1, 13))
    for value, decimals in ((0.0, 1), (7.24, 1), (1234.5, 1), (12_345_678.0, 0)):
        assert number(value, tr_of(code), decimals) == theirs.toString(value, "f", decimals)


def test_each_language_chooses_its_plurals() -> None:
    forms = "{n} one|{n} many"
    said = {
        code: [counted(count, forms, tr_of(code)).split()[1] for count in (0, 1, 2)]
        for code in LOCALES
    }
    assert said == {
        "en": ["many", "one", "many"],
        "de": ["many", "one", "many"],
        "fr": ["one", "one", "many"],
    }


def test_choice_of_language_outranks_the_system_whose_first_known_one_is_taken() -> None:
    assert code_of(Language.SYSTEM, ["pt-BR", "pt", "de-AT", "fr"]) == "de"
    assert code_of(Language.SYSTEM, ["fr_CA"]) == "fr"
    assert code_of(Language.SYSTEM, ["C"]) == "en"
    assert code_of(Language.SYSTEM, []) == "en"
    assert code_of(Language.FRENCH, ["de"]) == "fr"


def test_language_is_remembered_and_a_strange_one_is_the_systems(tmp_path: Path) -> None:
    home = Home.under(tmp_path)
    assert Settings(home).language is Language.SYSTEM
    settings = Settings(home)
    settings.keep_language(Language.GERMAN)
    del settings
    assert Settings(home).language is Language.GERMAN
    file = home.config_dir / "app.ini"
    file.write_text(file.read_text().replace("language=de", "language=tlh"))
    assert Settings(home).language is Language.SYSTEM


def test_every_language_that_can_be_chosen_is_there() -> None:
    assert {language.value for language in Language} - {"system"} == LOCALES.keys()


def test_text_is_translated_whoever_asks_and_qts_own_is_left_to_qt(french: None) -> None:
    class Window(QObject):
        pass

    assert Window().tr("Stop") == "Arrêter"
    assert QCoreApplication.translate("elsewhere", "Stop") == "Arrêter"
    assert QCoreApplication.translate("QPlatformTheme", "Stop") == "Stop"
    assert Window().tr("No such text") == "No such text"


def test_damaged_or_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TranslationsDamaged, match="install Shoal again"):
        texts_in(tmp_path / "none.ts")
    (tmp_path / "de.ts").write_text("<TS><context><message>")
    with pytest.raises(TranslationsDamaged, match="is damaged"):
        texts_in(tmp_path / "de.ts")


def test_update_keeps_translations_brings_in_new_texts_and_drops_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "de.ts"
    assert update(file, {"<A & B>", "old"}) == ["<A & B>", "old"]
    blank = '<translation type="unfinished"></translation>'
    text = file.read_text(encoding="utf-8").replace(blank, "<translation>&lt;Ä&gt;</translation>")
    file.write_text(text, encoding="utf-8")
    assert update(file, {"<A & B>", "new"}) == ["new"]
    assert texts_in(file) == {"<A & B>": "<Ä>"}
    assert "old" not in file.read_text(encoding="utf-8")


def test_every_text_to_translate_is_written_where_it_is_said() -> None:
    elsewhere = {ast.unparse(call) for _, call in calls_of_tr() if text_of(call) is None}
    # The first are in resources/models.toml, the second are `Sentence`s of the engine.
    assert elsewhere == {"tr(model.about)", "tr(part.text)"}


def test_no_window_says_a_text_that_cannot_be_translated() -> None:
    bare = [
        f"{file.relative_to(APP)}:{call.lineno} {text!r}"
        for file in sorted(APP.rglob("*.py"))
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and name_of(call.func) in SAID_BY
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
        for text in bare_texts(argument)
    ]
    assert bare == []


def bare_texts(node: ast.AST) -> Iterator[str]:
    """Words within `node`, but not within calls, which are looked at themselves."""
    if isinstance(node, ast.Call):
        return
    text = node.value if isinstance(node, ast.Constant) else None
    if isinstance(text, str) and re.search(r"[^\W\d_]{2}", text) and text not in SAID_AS_IT_IS:
        yield text
    for child in ast.iter_child_nodes(node):
        yield from bare_texts(child)


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def last_places(text: str) -> list[str]:
    """Places of a text's last form: forms for one may say the number in words."""
    return sorted(name for _, name, _, _ in string.Formatter().parse(text.split("|")[-1]) if name)


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_text_has_its_translation_with_the_same_places(code: str) -> None:
    said, known = texts_of_the_app(), texts_of(code)
    advice = f"run `{COMMAND}`, then fill in what is unfinished in app/translations/{code}.ts"
    assert said - known.keys() == set(), advice
    assert known.keys() - said == set(), advice
    for english, text in known.items():
        assert last_places(text) == last_places(english), english
        for form in text.split("|"):
            assert places(form) <= places(english), english
        assert text.count("|") == english.count("|"), english
        assert english.count("&") >= text.count("&") >= int(has_key(english)), english


def has_key(text: str) -> bool:
    return re.search(r"&\w", text) is not None


@pytest.mark.parametrize("code", LANGUAGES)
def test_file_of_translations_is_as_the_command_writes_it(code: str, tmp_path: Path) -> None:
    file = tmp_path / f"{code}.ts"
    file.write_bytes((FOLDER / file.name).read_bytes())
    update(file, texts_of_the_app())
    assert file.read_bytes() == (FOLDER / file.name).read_bytes()


def test_times_and_sizes_are_said_in_the_language() -> None:
    german, french = tr_of("de"), tr_of("fr")
    until = NOW.timestamp() + 6.5 * DAY_S
    assert end_of_pause(until, NOW, german) == "bis Mo., 9. März, 06:05 (noch 6 T.)"
    assert (
        end_of_pause(until, NOW, french)
        == "jusqu\N{RIGHT SINGLE QUOTATION MARK}à lun. 9 mars, 06:05 (encore 6 j)"
    )
    assert day_words(NOW.timestamp() - 3 * DAY_S, NOW, german) == "Freitag"
    assert day_words(NOW.timestamp() - 90 * DAY_S, NOW, french) == "2 déc. 2025"
    assert (size(4.2e9, german), size(4.2e9, french)) == ("4,2 GB", "4,2\N{NO-BREAK SPACE}Go")
    assert bits_per_s(1_025_000, german) == "8,2 Mbit/s"
    assert milliseconds(1250, french) == "1,2 s"
    assert percent(0.42, german) == "42 %"
    assert number(12_345_678, french).split("\N{NARROW NO-BREAK SPACE}") == ["12", "345", "678"]


def test_what_the_engine_says_is_said_in_the_language_with_its_values() -> None:
    sentence = Sentence("Yielding to {program}, which is running.", program="blender").then(
        Sentence("That is over, so Shoal resumes soon.")
    )
    told = in_words(said(sentence), str(sentence), tr_of("de"))
    assert (
        told
        == "Macht Platz für blender, das gerade läuft. Das ist vorbei; Shoal macht bald weiter."
    )
    rate = Sentence("{percent} of {room_bytes}", percent=1234.5, room_bytes=2_500_000)
    german = {rate.parts[0].text: "{room_bytes}: {percent}", "{n} MB": "{n} MB"}
    assert in_words(said(rate), str(rate), tr_of("de", german)) == "2,5 MB: 1.234,5"


def test_what_only_a_newer_engine_says_stays_in_english() -> None:
    new = Sentence("No window knows this of {model}.", model="X")
    assert in_words(said(new), str(new), tr_of("fr")) == "No window knows this of X."
    assert in_words((), "The disk broke.", tr_of("fr")) == "The disk broke."
