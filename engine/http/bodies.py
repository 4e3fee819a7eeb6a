"""Bodies of `/shoal/v1`: requests checked by their models, answers as JSON."""

from __future__ import annotations

from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from engine.core.errors import RequestError

B = TypeVar("B", bound=BaseModel)


async def read_body(request: web.Request, model: type[B]) -> B:
    """The request's body; an empty one has every default.

    Raises:
        RequestError: It is not what `model` asks; the text names the field.
    """
    try:
        return model.model_validate_json(await request.read() or b"{}")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        raise RequestError(f"{param or 'The body'}: {first['msg']}.", param=param) from error


def json_response(answer: BaseModel) -> web.Response:
    """An answer."""
    return web.Response(text=answer.model_dump_json(), content_type="application/json")
