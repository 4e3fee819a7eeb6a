"""What fetching a model may take, by the settings and by what the desktop says of proxies."""

from __future__ import annotations

from engine.config import Config
from engine.models.storage import MARGIN_BYTES, FetchLimits
from engine.models.way_out import has_proxy
from engine.probes.proxies import desktop_proxy


def fetch_limits(config: Config) -> FetchLimits:
    """Those of the settings. Blocks for as long as a question to the desktop takes."""
    proxy = config.model.proxy
    if not proxy and not has_proxy():
        proxy = desktop_proxy()
    return FetchLimits(
        disk_free_bytes=max(config.limits.disk_free_bytes, MARGIN_BYTES),
        models_bytes=config.limits.models_bytes,
        proxy=proxy,
        ca_file=config.model.ca_file,
    )
