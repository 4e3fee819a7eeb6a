"""What a person is told of the proxy: its address, never a name or password."""

from __future__ import annotations

import pytest

from engine.models.way_out import through_proxy
from installers.setup_steps.proxies import proxy_in_use


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("http://proxy:3128", "http://proxy:3128"),
        ("proxy:3128", "proxy:3128"),
        ("ada:secret@proxy:3128", "proxy:3128"),
        ("http://ada:se@cret@proxy:3128", "http://proxy:3128"),
        ("http://ada:sec/ret@proxy:3128", "http://proxy:3128"),
    ],
)
def test_name_and_password_of_a_proxy_are_told_to_nobody(
    said: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", said)
    assert proxy_in_use() == shown
    assert through_proxy("https://example.org/") == f" through the proxy {shown}"
