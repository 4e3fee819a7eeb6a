"""A place on loopback that publishes versions of Shoal as a maintainer would, and can misbehave."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from installers import sign
from tests.support.loopback import Loopback


class UpdateSite(Loopback):
    """Serves a folder; use as a context manager.

    Attributes:
        url: Of the list of versions.
        key: The public key that signs it.
        cut_after: Bytes after which a transfer breaks, once, by file name.
        ranges: `Range` headers received.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cut_after: dict[str, int] = {}
        self.ranges: list[str] = []
        (folder / "site").mkdir()
        handler = partial(_Handler, self, directory=str(folder / "site"))
        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        self.url = f"http://127.0.0.1:{self.port}/shoal.json"
        self._private = folder / "private.pem"
        channel = folder / "channel.json"
        self._sign("keys", self._private, "--url", self.url, "--channel", channel)
        self.key: str = sign.json.loads(channel.read_text())["keys"][0]

    def publish(self, version: str, package: bytes, **options: str) -> Path:
        """Sign and serve a `.run` package; returns its file."""
        file = self.folder / "site" / f"shoal-{version}-x86_64.run"
        file.write_bytes(package)
        more = [word for name, value in options.items() for word in (f"--{name}", value)]
        to = self.folder / "site" / "shoal.json"
        self._sign("list", self._private, to, file, "--version", version, *more)
        return file

    def _sign(self, *words: object) -> None:
        assert sign.main([*map(str, words), "--no-passphrase"]) == 0


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, site: UpdateSite, *args: object, **fields: object) -> None:
        self._site = site
        super().__init__(*args, **fields)

    def do_GET(self) -> None:
        path = Path(self.translate_path(urlsplit(self.path).path))  # a proxy asks with the host
        if not path.is_file():
            self.send_error(404)
            return
        data, start = path.read_bytes(), 0
        if asked := self.headers.get("Range"):
            self._site.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        cut = self._site.cut_after.pop(path.name, None)
        self.wfile.write(data[start:cut])
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Tests have output of their own."""
