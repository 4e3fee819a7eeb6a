"""Typed reading of an untrusted JSON object; every refusal names the field.

Pure. A field that is absent or null has its default: OpenAI's clients send both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from engine.core.errors import RequestError


def parse_object(body: bytes) -> dict[str, object]:
    """Read a request's body.

    Raises:
        RequestError: It is not JSON (the text says where it breaks), or not an object.
    """
    try:
        value = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(
            f"The body is not UTF-8 text: byte {error.start} is out of place."
        ) from error
    except json.JSONDecodeError as error:
        raise RequestError(
            f"The body is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RequestError(
            "The body is not acceptable JSON: a number is too long or lists are nested too deeply."
        ) from error
    if not isinstance(value, dict):
        raise RequestError(f"The body must be a JSON object, not {type_name(value)}.")
    return value


def type_name(value: object) -> str:
    """What JSON calls the type of `value`, with its article."""
    names = {str: "a string", bool: "a boolean", int: "an integer", float: "a number"}
    names |= {list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "something else")


def wrong_type(param: str, wanted: str, value: object) -> RequestError:
    """The error for a value of the wrong type."""
    return RequestError(f"{param} must be {wanted}, not {type_name(value)}.", param=param)


def text_value(value: object, param: str) -> str:
    """A string that can be encoded; JSON can smuggle in half a surrogate pair."""
    if not isinstance(value, str):
        raise wrong_type(param, "a string", value)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                f"{param} is not valid Unicode: a surrogate stands alone at position "
                f"{error.start}.",
                param=param,
            ) from error
    return value


class Fields:
    """The fields of one request."""

    def __init__(self, body: Mapping[str, object]) -> None:
        self._body = body

    def raw(self, name: str) -> object:
        """The value as it came; None when absent."""
        return self._body.get(name)

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.raw(name)
        return None if value is None else text_value(value, name)

    def boolean(self, name: str) -> bool:
        """A boolean, false by default."""
        value = self.raw(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise wrong_type(name, "a boolean", value)
        return value

    def optional_boolean(self, name: str) -> bool | None:
        """A boolean, or None when absent."""
        return None if self.raw(name) is None else self.boolean(name)

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A finite number within `[low, high]`."""
        value = self.optional_number(name, low, high)
        return default if value is None else value

    def optional_number(self, name: str, low: float, high: float) -> float | None:
        """A finite number within `[low, high]`, or None when absent."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong_type(name, "a number", value)
        check_range(name, value, low, high)
        return float(value)

    def integer(self, name: str, low: int, high: int) -> int | None:
        """An integer within `[low, high]`, or None when absent."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(name, "an integer", value)
        check_range(name, value, low, high)
        return value

    def mapping(self, name: str) -> Mapping[str, object]:
        """An object, empty by default."""
        value = self.raw(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong_type(name, "an object", value)
        return value


def check_range(param: str, value: float, low: float, high: float) -> None:
    """Refuse NaN, infinities and anything outside `[low, high]`."""
    # An integer beyond the floats cannot be shown or compared as one, hence the order.
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError(f"{param} must be a finite number.", param=param)
    if not low <= value <= high:
        shown = str(value) if len(str(value)) <= 24 else "a number far outside"
        raise RequestError(
            f"{param} must lie between {_shown(low)} and {_shown(high)}, not {shown}.", param=param
        )


def _shown(bound: float) -> str:
    return str(int(bound)) if float(bound).is_integer() else str(bound)
