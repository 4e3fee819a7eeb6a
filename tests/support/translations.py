"""`python -m tests.support.translations`: brings `app/translations/*.ts` in step with the app.

Texts that are new come in as unfinished, for somebody to translate there; texts that the app says
no more go out. Translations that are there stay as they are.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from app.language import ENGLISH, FOLDER, texts_in
from app.locales import LOCALES

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "resources" / "models.toml"
COMMAND = "python -m tests.support.translations"
LANGUAGES = tuple(code for code in LOCALES if code != ENGLISH)
_TEXT_AT = {"tr": 0, "translate": 1, "QT_TRANSLATE_NOOP": 1, "Sentence": 0}
"""Which argument of these calls is the text."""
_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n'


def calls_of_tr() -> Iterator[tuple[str, ast.Call]]:
    """(Where, call) of all that is to be translated: texts of the app, sentences of the engine."""
    for folder in ("app", "engine"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and _name(node.func) in _TEXT_AT:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node


def text_of(call: ast.Call) -> str | None:
    """The text that `call` translates; None where it is not written there."""
    at = _TEXT_AT[_name(call.func)]
    text = call.args[at] if len(call.args) > at else None
    is_text = isinstance(text, ast.Constant) and isinstance(text.value, str)
    return text.value if is_text else None


def texts_of_the_app() -> set[str]:
    """Every English text that the app may say, or that the engine may say through it."""
    found = {text for _, call in calls_of_tr() if (text := text_of(call))}
    models = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["models"]
    return found | {model["about"] for model in models}


def update(file: Path, texts: set[str]) -> list[str]:
    """Write `file` anew with just `texts`; returns those that have no translation yet."""
    known = texts_in(file) if file.exists() else {}
    file.write_text(_as_ts(file.stem, texts, known), encoding="utf-8", newline="\n")
    return sorted(texts - known.keys())


def _as_ts(code: str, texts: set[str], known: Mapping[str, str]) -> str:
    """As Qt Linguist reads and writes it, without places in the code, which would move always."""
    lines = [f'{_HEAD}<TS version="2.1" language="{code}" sourcelanguage="en">', "<context>"]
    lines.append("    <name>app</name>")
    for text in sorted(texts):
        lines += ["    <message>", f"        <source>{escape(text)}</source>"]
        if text in known:
            lines.append(f"        <translation>{escape(known[text])}</translation>")
        else:
            lines.append('        <translation type="unfinished"></translation>')
        lines.append("    </message>")
    return "\n".join((*lines, "</context>", "</TS>", ""))


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def main() -> int:
    """Update all languages; the exit code is 1 while something is not translated."""
    texts, missing = texts_of_the_app(), 0
    for code in LANGUAGES:
        without = update(FOLDER / f"{code}.ts", texts)
        missing += len(without)
        for text in without:
            print(f"{code}: {text!r}")
    print(f"{len(texts)} texts, {missing} to translate in {FOLDER.relative_to(ROOT)}/*.ts")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
