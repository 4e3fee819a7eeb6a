"""Who may call: programs on this machine that can read the token file, and no web page.

A page in a browser can send requests to 127.0.0.1, and through DNS rebinding even read the
answers. It cannot read the token, and its requests carry its own `Origin` and `Host`.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlsplit

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})


def is_our_host(host: str, port: int) -> bool:
    """Whether a `Host` header names this server by a loopback name."""
    name, host_port = _split(f"http://{host}")
    return name in LOOPBACK_HOSTS and (80 if host_port is None else host_port) == port


def is_loopback_origin(origin: str) -> bool:
    """Whether an `Origin` header is that of a page served from this machine."""
    scheme = origin.partition("://")[0]
    return scheme in ("http", "https") and _split(origin)[0] in LOOPBACK_HOSTS


def has_token(authorization: str | None, token: str) -> bool:
    """Whether an `Authorization` header carries the token; takes the same time for any guess."""
    scheme, _, given = (authorization or "").partition(" ")
    matches = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    return scheme.lower() == "bearer" and matches


def _split(url: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(url)
        if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
            return None, None
        return parts.hostname, parts.port
    except ValueError:
        return None, None
