from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.layout import ModelFiles
from engine.models.sources import resolve
from tests.support.tiny_models import save_tiny


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    """A tiny model to draft for."""
    directory = tmp_path_factory.mktemp("target")
    return files_of(save_tiny("llama", directory / "tiny", tie=True))


def files_of(directory: Path) -> ModelFiles:
    return resolve(str(directory), directory.parent, "float32", lambda progress: None)
