import pytest

from engine.models.tokenizer import ChatTokenizer
from tests.support.api_backend import tiny_tokenizer


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> ChatTokenizer:
    return tiny_tokenizer(tmp_path_factory.mktemp("tokenizer"))
