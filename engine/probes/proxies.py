"""The proxy that the desktop is set to use, where the environment names none."""

from __future__ import annotations

import sys
from typing import Final

_PORTAL: Final = (
    "org.freedesktop.portal.Desktop",
    "/org/freedesktop/portal/desktop",
    "org.freedesktop.portal.ProxyResolver",
)
_ASKED_FOR: Final = "https://huggingface.co"


def desktop_proxy() -> str:
    """Such as `http://proxy:3128`; empty: none, or nobody can tell.

    On Linux the desktop portal says it, which knows GNOME's and KDE's settings. Elsewhere Python finds
    the system's own by itself, as if the environment named it.
    """
    if sys.platform != "linux":
        return ""
    from engine.probes.dbus import Bus

    bus = Bus("SESSION")
    try:
        found = bus.call(*_PORTAL, "Lookup", _ASKED_FOR)
    finally:
        bus.close()
    proxies = found if isinstance(found, list) else []
    if not proxies or proxies[0] == "direct://":
        return ""
    return next((str(proxy) for proxy in proxies if str(proxy).startswith("http")), "")
