"""How each kind of error looks over HTTP: a status and OpenAI's error object."""

from __future__ import annotations

from typing import Final

from engine.core.errors import (
    CacheFull,
    ChatNotFound,
    ConfigError,
    DiskFull,
    EngineError,
    ModelNotFound,
    NoRoute,
    PeerError,
    ProtocolError,
    RequestError,
    ResourceError,
    UpdateError,
    UpdateUnavailable,
)
from engine.jobs.files import UploadTooLarge
from engine.jobs.job_table import JobNotFound
from engine.localapi.schema import ApiError, ApiErrorBody

# The first class that fits decides, so the special ones stand before the general ones.
_STATUSES: Final[tuple[tuple[type[EngineError], int], ...]] = (
    (JobNotFound, 404),
    (UploadTooLarge, 413),
    (RequestError, 400),
    (ConfigError, 400),
    (ModelNotFound, 404),
    (ChatNotFound, 404),
    (DiskFull, 507),
    (CacheFull, 429),
    (NoRoute, 503),
    (UpdateUnavailable, 503),
    (UpdateError, 409),
    (ResourceError, 503),
    (PeerError, 502),
    (ProtocolError, 502),
)


class TooManyRequests(ResourceError):
    """The local API already runs as many requests as it may."""

    code = "too_many_requests"


def status_of(error: EngineError) -> int:
    """The HTTP status for `error`."""
    if isinstance(error, TooManyRequests):
        return 429
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return 503 if error.retryable else 500


def error_type(status: int) -> str:
    """OpenAI's `type` for an HTTP status."""
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def error_text(message: str, status: int, *, code: str | None, param: str | None = None) -> str:
    """The JSON of OpenAI's error envelope."""
    body = ApiErrorBody(message=message, type=error_type(status), param=param, code=code)
    return ApiError(error=body).model_dump_json()


def engine_error_text(error: EngineError) -> str:
    """The JSON of OpenAI's error envelope for one of our errors."""
    param = error.param if isinstance(error, RequestError) else None
    return error_text(str(error), status_of(error), code=error.code, param=param)
