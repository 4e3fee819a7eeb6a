"""What tests of the setup for Windows share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from installers.windows import download
from tests.support.windows.installation import Pc, a_pc


@pytest.fixture
def pc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pc]:
    monkeypatch.setattr(download, "WAITS_S", (0.0, 0.0, 0.0))
    monkeypatch.setenv("HOME", str(tmp_path))
    with a_pc(tmp_path) as pc:
        yield pc
