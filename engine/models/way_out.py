"""How the processes that download reach the internet: proxy and certificates, by their environment.

The Hub's client and pip read the same variables, so one place serves both.
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from engine.core.errors import ConfigError
from engine.core.whole_file import write_whole

_SCHEMES: Final = ("http", "https", "all")
_PROXY_VARIABLES: Final = tuple(
    name for scheme in _SCHEMES for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper())
)
_CERTIFICATE_VARIABLES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_BUNDLE: Final = "certificates.pem"
_SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
)


def has_proxy() -> bool:
    """Whether the environment names one."""
    return any(getproxies().get(scheme) for scheme in _SCHEMES)


def through_proxy(url: str) -> str:
    """Which proxy stands between this process and `url`, for a sentence on why that cannot be reached.

    Returns:
        Such as ` through the proxy http://proxy:3128`, never with a user's name or password; empty: none.
    """
    told, place = getproxies(), urlsplit(url)
    proxy = told.get(place.scheme) or told.get("all") or ""
    if not proxy or proxy_bypass(place.hostname or ""):
        return ""
    return f" through the proxy {_without_user(proxy)}"


def _without_user(proxy: str) -> str:
    scheme = re.match(r"[a-z0-9+.-]*://", proxy, re.IGNORECASE)
    return (scheme[0] if scheme and "@" in proxy else "") + proxy.rpartition("@")[2]


def environment(proxy: str, ca_file: str, models_dir: Path) -> dict[str, str]:
    """What to add to the environment of a process that downloads.

    Args:
        proxy: Empty: what the environment says already.
        ca_file: Certificates to trust beside the system's; empty: none.
        models_dir: Where both together are kept, since clients read one file.

    Raises:
        ConfigError: They cannot be read, or are none.
    """
    added = dict.fromkeys(_PROXY_VARIABLES, proxy) if proxy else {}
    if ca_file:
        bundle = str(_bundle(Path(ca_file).expanduser(), models_dir))
        added |= dict.fromkeys(_CERTIFICATE_VARIABLES, bundle)
    return added


def _bundle(ca_file: Path, models_dir: Path) -> Path:
    """The system's certificates and ours in one file."""
    try:
        own = ca_file.read_text(encoding="ascii")
        ssl.create_default_context(cadata=own)
    except (OSError, UnicodeDecodeError, ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"The certificates in {ca_file} cannot be used ({error}); let model.ca_file name a PEM "
            "file, or leave it empty."
        ) from error
    named = os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile
    system = next(filter(os.path.isfile, (*filter(None, named), *_SYSTEM_BUNDLES)), None)
    trusted = "" if system is None else Path(system).read_text(encoding="utf-8", errors="replace")
    models_dir.mkdir(parents=True, exist_ok=True)
    bundle = models_dir / _BUNDLE
    write_whole(bundle, f"{trusted}\n{own}".encode())
    return bundle
