from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tiny_models import save_tiny


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of four blocks and random weights, with room for 2048 tokens."""
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory, max_position_embeddings=2048)
    return directory
