"""What happens to every request: the checks of `security`, and errors as OpenAI's objects."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from engine.core.errors import EngineError
from engine.http.errors import engine_error_text, error_text, status_of
from engine.http.security import has_token, is_loopback_origin, is_our_host

logger = logging.getLogger(__name__)


def error_response(
    message: str, status: int, *, code: str | None, headers: dict[str, str] | None = None
) -> web.Response:
    """An answer that carries OpenAI's error object."""
    return web.Response(
        text=error_text(message, status, code=code),
        status=status,
        content_type="application/json",
        headers=headers,
    )


def describe_error(error: Exception) -> tuple[int, str]:
    """HTTP status and JSON for an error; what we did not expect goes to the log."""
    if isinstance(error, EngineError):
        status = status_of(error)
        if status >= 500:
            logger.warning("Request failed with %s: %s", error.code, error)
        return status, engine_error_text(error)
    logger.error("a request failed unexpectedly", exc_info=error)
    text = "Something went wrong inside the engine; its log says where."
    return 500, error_text(text, 500, code="internal_error")


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure into OpenAI's error object."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _http_error(request, error)
    except Exception as error:  # noqa: BLE001 - the top of a request's task; logged in there
        status, text = describe_error(error)
        return web.Response(text=text, status=status, content_type="application/json")


def guard(token: str) -> Middleware:
    """The middleware that lets only our own callers through."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = _refusal(request, token)
        return await handler(request) if refusal is None else refusal

    return check


def _refusal(request: web.Request, token: str) -> web.Response | None:
    hosts = request.headers.getall("Host", [])
    if len(hosts) != 1 or not is_our_host(hosts[0], _own_port(request)):
        return error_response(
            "The Host header must name 127.0.0.1 or localhost with the API's port.",
            403,
            code="forbidden_host",
        )
    if not all(is_loopback_origin(origin) for origin in request.headers.getall("Origin", [])):
        return error_response(
            "Web pages from other hosts may not use this API.", 403, code="forbidden_origin"
        )
    if not has_token(request.headers.get("Authorization"), token):
        return error_response(
            "The API token is missing or wrong: send the contents of Shoal's token file as "
            "'Authorization: Bearer TOKEN' (`shoal status` shows where the file is).",
            401,
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return None


def _own_port(request: web.Request) -> int:
    transport = request.transport
    if transport is None:
        return -1
    return int(transport.get_extra_info("sockname")[1])


def _http_error(request: web.Request, error: web.HTTPException) -> web.Response:
    where = f"{request.method} {request.path}"
    if error.status == 404:
        text, code = f"There is no {where} in this API.", "unknown_url"
    elif error.status == 405:
        text, code = f"{where} is not allowed; try another method.", "method_not_allowed"
    elif error.status == 413:
        text, code = "The request's body is larger than this API accepts.", "body_too_large"
    else:
        text, code = f"{where} was refused: {error.reason}.", "invalid_request"
    return error_response(text, error.status, code=code)
