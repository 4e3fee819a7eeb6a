"""One row as a request: OpenAI's batch lines, bodies, prompts, or values for a template. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.core.errors import EngineError
from engine.core.sentences import Sentence
from engine.jobs.problems import RowUnusable
from engine.jobs.templates import Template

CHAT_URL: Final = "/v1/chat/completions"
COMPLETIONS_URL: Final = "/v1/completions"
URLS: Final = (CHAT_URL, COMPLETIONS_URL)
MAX_ID_CHARS: Final = 512
PROMPT_COLUMNS: Final = ("prompt", "question", "text")
"""Without a template, the first of these that a table has is the prompt."""

Body = Mapping[str, Any]
Check = Callable[[str, Body], None]
"""(url, body): raises an `EngineError` that names what is wrong with it."""


@dataclass(frozen=True, slots=True)
class RowRequest:
    """What is asked for one row."""

    custom_id: str
    url: str
    body: Body


@dataclass(frozen=True, slots=True)
class Recipe:
    """How values become requests; for one job."""

    template: Template | None
    system: str | None
    parameters: Body
    check: Check
    endpoint: str | None = None
    """The one URL that rows may ask for; None: each as it likes."""

    def from_values(self, values: Mapping[str, str], line: int) -> RowRequest:
        """The request of a table's row.

        Raises:
            RowUnusable: A value is missing, or the request makes no sense.
        """
        if self.template is not None:
            prompt = self.template.fill(values)
        else:
            column = prompt_column(values)
            if column is None:
                raise RowUnusable(
                    Sentence(
                        "The row has no {column}; add one, or give a template.",
                        column=repr(PROMPT_COLUMNS[0]),
                    )
                )
            prompt = values[column]
        if not prompt.strip():
            raise RowUnusable(Sentence("The prompt is empty; fill in the row, or leave it out."))
        custom_id = values.get("custom_id") or _default_id(line)
        return self._checked(custom_id, self._chat(prompt))

    def from_json(self, text: str, line: int) -> tuple[RowRequest, dict[str, str]]:
        """The request of a JSON line, and its values when a template was filled with them.

        Raises:
            RowUnusable: It is no JSON, or no request that we know.
        """
        value = _parse(text)
        if isinstance(value, str) and self.template is None:
            return self.from_values({PROMPT_COLUMNS[0]: value}, line), {}
        if not isinstance(value, dict):
            raise RowUnusable(
                Sentence('The line must be a JSON object, {{…}}, or a prompt in quotes: "…".')
            )
        if self.template is not None:
            values = {str(name): _as_text(item) for name, item in value.items() if item is not None}
            return self.from_values(values, line), values
        return self._from_object(value, line), {}

    def _from_object(self, value: dict[str, Any], line: int) -> RowRequest:
        custom_id = value.get("custom_id")
        if custom_id is None:
            custom_id = _default_id(line)
        if not isinstance(custom_id, str) or not custom_id:
            raise RowUnusable("custom_id must be a text that is not empty.", column="custom_id")
        body = value.get("body")
        if body is None and ("messages" in value or "prompt" in value):
            body = {name: item for name, item in value.items() if name not in _ENVELOPE}
        if not isinstance(body, dict):
            raise RowUnusable(
                Sentence(
                    "The line has no request: give it a body with messages, or give a template for "
                    "its other fields."
                ),
                column="body",
            )
        if value.get("method", "POST") != "POST":
            raise RowUnusable("method must be POST.", column="method")
        url = value.get("url") or self.endpoint or _url_of(body)
        if url not in URLS:
            raise RowUnusable(f"url must be {' or '.join(URLS)}.", column="url")
        if self.endpoint is not None and url != self.endpoint:
            raise RowUnusable(
                f"The url is {url}, but the batch is for {self.endpoint}; make two batches of it.",
                column="url",
            )
        if self.system is not None and isinstance(body.get("messages"), list):
            body = {**body, "messages": [_system(self.system), *body["messages"]]}
        return self._checked(custom_id, body, url)

    def _chat(self, prompt: str) -> Body:
        system = [] if self.system is None else [_system(self.system)]
        return {"messages": [*system, {"role": "user", "content": prompt}]}

    def _checked(self, custom_id: str, body: Body, url: str = CHAT_URL) -> RowRequest:
        if len(custom_id) > MAX_ID_CHARS:
            raise RowUnusable(
                f"custom_id is longer than {MAX_ID_CHARS} characters.", column="custom_id"
            )
        if not _is_text(custom_id):
            raise RowUnusable("custom_id is not valid Unicode text.", column="custom_id")
        whole = {**self.parameters, **body}
        whole.pop("stream", None)  # there is nobody to stream to
        whole.pop("stream_options", None)
        try:
            self.check(url, whole)
        except EngineError as error:
            raise RowUnusable(str(error), column=getattr(error, "param", None)) from error
        return RowRequest(custom_id, url, whole)


_ENVELOPE: Final = frozenset({"custom_id", "method", "url", "body"})


def prompt_column(names: Mapping[str, str] | tuple[str, ...]) -> str | None:
    """The column that is the prompt when there is no template."""
    return next((name for name in PROMPT_COLUMNS if name in names), None)


def _default_id(line: int) -> str:
    return f"line-{line}"


def _is_text(text: str) -> bool:
    """Whether it can be encoded: JSON can smuggle in half a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


def _url_of(body: Body) -> str:
    return COMPLETIONS_URL if "prompt" in body and "messages" not in body else CHAT_URL


def _parse(text: str) -> object:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise RowUnusable(
            Sentence(
                "The line is not valid JSON: {reason} at character {place}.",
                reason=error.msg,
                place=error.colno,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise RowUnusable(
            "The line is not acceptable JSON: a number is too long or lists are nested too deeply."
        ) from error
    return value


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
