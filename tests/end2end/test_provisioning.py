"""The engine's environment made by the real uv and pip, over networks and on disks that fail.

The package indexes are names that a proxy leads to a server of ours: it has a few tiny packages that
stand for PyTorch and what else the engine needs.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from installers.package import tools
from installers.package.plan import Build, BuildFailed
from installers.setup_steps import installed
from installers.setup_steps.installed import Installed, Parts
from installers.setup_steps.report import Report, SetupFailed
from installers.setup_steps.torch_build import TorchBuild
from tests.support.fake_proxy import FakeProxy, certificate_for
from tests.support.loopback import Loopback
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.end2end

ROOT = Path(__file__).parents[2]
CPU = TorchBuild("cpu", "No NVIDIA card was found, so PyTorch for CPUs is used.")
PYPI, PYTORCH = "pypi.org", "download.pytorch.org"
MODULES = {"torch": "torch.py", "hivemind": "hivemind.py", "shoal": "engine/cli/program.py"}
TORCH_BYTES = 400_000
NOBODY = "http://127.0.0.1:9"


def wheel(folder: Path, name: str, version: str, ballast_bytes: int = 0) -> Path:
    """A package that can be imported, and no more."""
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    files = {
        MODULES[name]: b"",
        f"{name}.bin": os.urandom(ballast_bytes),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in (*files.items(), (f"{info}/RECORD", record.encode())):
            archive.writestr(file, data)
    return path


def wheel_of_pip(folder: Path) -> Path:
    """The pip of this environment, packed again."""
    package = importlib.metadata.distribution("pip")
    path = folder / f"pip-{package.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in package.files or ():
            if ".." not in file.parts and file.suffix != ".pyc" and file.name != "INSTALLER":
                archive.write(str(file.locate()), str(file))
    return path


def pin(path: Path) -> str:
    name, version = path.name.split("-")[:2]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n"


@dataclass
class Index:
    """Serves wheels as an index does; a transfer of torch breaks once."""

    wheels: Path
    port: int = 0
    ranges: list[str] = field(default_factory=list)
    cut_after: int = 0

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        word = request.path.rstrip("/").rpartition("/")[2]
        path = self.wheels / word
        if not path.is_file():
            names = [file.name for file in self.wheels.glob(f"{word}-*.whl")]
            page = "".join(f'<a href="/files/{name}">{name}</a>' for name in names).encode()
            self._send(request, 200 if names else 404, page, "text/html", len(page))
            return
        data, start = path.read_bytes(), 0
        if asked := request.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), int(last or len(data) - 1) + 1
            self.ranges.append(f"{path.name} {asked}")
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
            request.send_header("Content-Length", str(end - start))
            request.end_headers()
            request.wfile.write(data[start:end])
            return
        cut, self.cut_after = (
            (self.cut_after, 0) if word.startswith("torch") else (0, self.cut_after)
        )
        self._send(request, 200, data[: cut or None], "application/zip", len(data))

    @staticmethod
    def _send(
        request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str, length: int
    ) -> None:
        request.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(length)),
            ("Accept-Ranges", "bytes"),
            ("ETag", '"1"'),
        ):
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)
        request.close_connection = len(body) < length


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """What an installer carries, with small lists."""
    work = tmp_path_factory.mktemp("build")
    try:
        uv = tools.uv_program(Build(ROOT, work, work, "0", 0), "linux")
    except BuildFailed as error:
        pytest.skip(f"needs uv ({error})")
    folder = tmp_path_factory.mktemp("programs of Zoë") / "engine"
    folder.mkdir()
    (folder / "uv").symlink_to(uv)
    wheels = folder.parent / "index"
    wheels.mkdir()
    listed = (wheel_of_pip(wheels), wheel(wheels, "hivemind", "1"))
    (folder / "engine.txt").write_text("".join(map(pin, listed)))
    torch = pin(wheel(wheels, "torch", "2", TORCH_BYTES))
    for name in ("torch.txt", "torch-cpu.txt"):
        (folder / name).write_text(torch)
    wheel(folder, "shoal", "1")
    return Parts(folder)


@pytest.fixture
def index(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index behind the names of PyPI and PyTorch, whose certificate is a company's own."""
    for name in [*os.environ]:
        if re.match(r"(?i)(UV|PIP)_|SSL_CERT|REQUESTS_CA|(https?|all|no)_proxy$", name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setattr(installed, "PAUSE_S", 0.0)
    monkeypatch.setattr(installed, "NEEDED_BYTES", {"cpu": 1000, "cuda": 1000})
    served = Index(parts.folder.parent / "index")
    file, tls = certificate_for(PYPI, PYTORCH, folder=tmp_path)
    for name in ("PIP_CERT", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, str(file))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def do_HEAD(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None:
            """Tests have output of their own."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with Loopback(server) as loopback:
        served.port = loopback.port
        yield served


def test_the_engine_is_set_up_through_a_proxy_and_a_cut_download_goes_on(
    parts: Parts, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.cut_after = 150_000
    engine = Installed(parts, tmp_path / "home of Zoë" / "shoal", Report())
    with FakeProxy(index.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        engine.prepare(CPU)
    assert engine.is_ready("cpu")
    assert {*proxy.hosts} == {PYPI, PYTORCH}
    assert index.ranges == ["torch-2-py3-none-any.whl bytes=150000-"]


def told(engine: Installed) -> str:
    """The one sentence with which setting up fails."""
    with pytest.raises(SetupFailed) as failed:
        engine.prepare(CPU)
    sentence = str(failed.value)
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert not engine.is_ready()
    return sentence


@pytest.mark.usefixtures("index")
def test_no_network_and_a_dead_proxy_are_told_apart(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Installed(parts, tmp_path / "shoal", Report())
    monkeypatch.setenv("HTTPS_PROXY", NOBODY.replace("//", "//zoe:secret@"))
    sentence = told(engine)
    assert f"because the package index cannot be reached through the proxy {NOBODY}; " in sentence
    assert "check the internet connection (and the proxy, if there is one)" in sentence
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{NOBODY}/simple")
    assert "because the package index cannot be reached; check the internet" in told(engine)


def test_a_full_disk_and_one_that_is_read_only_are_told_apart(
    parts: Parts, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProxy(index.port) as proxy, small_disk(tmp_path / "disk", "700k") as disk:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        engine = Installed(parts, disk.folder / "shoal", Report())
        assert "because the disk is full; free some space" in told(engine)
        disk.set_read_only(read_only=True)
        sentence = told(engine)
        assert "Setup could not write to" in sentence
        assert "(Read-only file system); free some space or correct the folder's rights" in sentence
        disk.set_read_only(read_only=False)
