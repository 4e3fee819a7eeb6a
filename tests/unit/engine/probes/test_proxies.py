import sys

import pytest

from engine.config import Config, ModelConfig
from engine.node.fetching import fetch_limits
from engine.probes.proxies import desktop_proxy
from tests.support.private_bus import private_bus

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
PORTAL = "org.freedesktop.portal.Desktop"
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture
def bus(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with private_bus(monkeypatch) as bus:
        yield bus


@pytest.mark.parametrize(
    ("told", "proxy"),
    [
        (["http://proxy:3128"], "http://proxy:3128"),
        (["socks5://proxy:1080", "http://proxy:3128"], "http://proxy:3128"),
        (["direct://"], ""),
        (["direct://", "http://proxy:3128"], ""),
        ([], ""),
    ],
)
def test_the_desktops_proxy_is_the_one_that_its_portal_names(bus, told, proxy):
    bus.own(PORTAL)
    bus.answers[PORTAL, "Lookup"] = ("as", told)
    assert desktop_proxy() == proxy


def test_without_a_desktop_there_is_no_proxy(bus):
    assert desktop_proxy() == ""


def test_settings_come_before_the_environment_and_that_before_the_desktop(bus, monkeypatch):
    bus.own(PORTAL)
    bus.answers[PORTAL, "Lookup"] = ("as", ["http://desktop:1"])
    assert fetch_limits(Config()).proxy == "http://desktop:1"
    monkeypatch.setenv("https_proxy", "http://environment:1")
    assert fetch_limits(Config()).proxy == ""  # the processes read it themselves
    own = Config(model=ModelConfig(proxy="http://settings:1"))
    assert fetch_limits(own).proxy == "http://settings:1"
