"""How each language of the app writes numbers and days and chooses plurals. Pure.

Presenters know no Qt, so its own knowledge (`QLocale`) cannot be asked there; a test holds both
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Locale:
    """The habits of one language."""

    name: str
    """As its speakers call it."""
    decimal_point: str
    group_separator: str
    """Between thousands."""
    weekdays: tuple[str, ...]
    """Monday first."""
    short_weekdays: tuple[str, ...]
    short_months: tuple[str, ...]
    plural_form: Callable[[float], int]
    """Which of the forms of a text goes with a number."""


LOCALES: Final = {
    "en": Locale(
        "English", ".", ",",
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
        lambda number: int(number != 1),
    ),
    "de": Locale(
        "Deutsch", ",", ".",
        ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
        ("Mo.", "Di.", "Mi.", "Do.", "Fr.", "Sa.", "So."),
        (
            "Jan.", "Feb.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.",
            "Nov.", "Dez.",
        ),
        lambda number: int(number != 1),
    ),
    "fr": Locale(
        "Français", ",", "\N{NARROW NO-BREAK SPACE}",
        ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
        ("lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim."),
        (
            "janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.",
            "nov.", "déc.",
        ),
        lambda number: int(number >= 2),
    ),
}  # fmt: skip
"""By code; a file of translations has the same name."""
