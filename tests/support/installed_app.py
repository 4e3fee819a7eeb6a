"""An installed Shoal: its packages as they are built, the engine that it starts, and how long things take."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def build(folder: Path, *targets: str) -> Path:
    """Build packages quickly into `folder`."""
    words = (*targets, "--fast", "--out", str(folder))
    done = subprocess.run(
        [sys.executable, ROOT / "installers" / "build.py", *words],
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@dataclass
class Engine:
    """The engine of the person whose home this is."""

    home: Path

    def ready(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads((self.home / ".local/state/shoal/engine.json").read_text()))
        except (OSError, ValueError):
            return None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        ready = self.ready()
        assert ready is not None
        token = (self.home / ".local/share/shoal/api-token").read_text().strip()
        request = urllib.request.Request(
            ready["url"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def can_chat(self) -> bool:
        return self.ready() is not None and bool(self.ask("/shoal/v1/status")["can_chat"])


@dataclass
class Watch:
    """How long each step of an installation took; printed for whoever wants to know (`-rP`)."""

    took_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started_s = time.monotonic()
        yield
        self.took_s[name] = time.monotonic() - started_s

    def tell(self, title: str) -> None:
        print(title)
        for name, seconds in self.took_s.items():
            print(f"{seconds:7.1f} s  {name}")
