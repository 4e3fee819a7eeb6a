import pytest

from engine.models.tokenizer import ChatTokenizer
from tests.support.api_backend import tiny_tokenizer


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(autouse=True)
def home_root(tmp_path, monkeypatch):
    """No command may touch the user's own files."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SHOAL_MODELS", raising=False)
    return tmp_path / "home"
