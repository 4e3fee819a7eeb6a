from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.support.desktop.shown_chat import ShownChat


@pytest.fixture
def chat(qtbot: QtBot, tmp_path: Path) -> ShownChat:
    return ShownChat(qtbot, tmp_path)
