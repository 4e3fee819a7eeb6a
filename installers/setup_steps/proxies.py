"""The proxy between this machine and package indexes, for the sentence that says why one is out of reach."""

from __future__ import annotations

import os
import re

UNREACHABLE = "the package index cannot be reached"
_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def proxy_in_use() -> str:
    """Such as `http://proxy:3128`, without a user's name or password; empty: none.

    uv and pip read the same variables; what pip's own settings say of a proxy only pip knows.
    """
    # Not by urllib, which would bring a TLS library into the frozen program.
    told = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    return without_user(told)


def without_user(proxy: str) -> str:
    """Its address without a user's name and password, however these are written."""
    scheme = re.match(r"[a-z0-9+.-]*://", proxy, re.IGNORECASE)
    return (scheme[0] if scheme and "@" in proxy else "") + proxy.rpartition("@")[2]


def why(cause: str, proxy: str) -> str:
    """The cause of a failure, with the proxy if it may be what failed."""
    return f"{cause} through the proxy {proxy}" if proxy and cause == UNREACHABLE else cause
