import stat

import pytest

from engine.core.errors import ConfigError
from engine.localapi.token import ensure_token


def test_the_token_is_long_private_and_stays_the_same(tmp_path):
    path = tmp_path / "data" / "api-token"
    token = ensure_token(path)
    assert len(token) >= 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ensure_token(path) == token
    assert [file.name for file in path.parent.iterdir()] == ["api-token"]


def test_two_homes_have_different_tokens(tmp_path):
    assert ensure_token(tmp_path / "a") != ensure_token(tmp_path / "b")


def test_a_token_file_that_others_may_read_is_closed_again(tmp_path):
    path = tmp_path / "api-token"
    token = ensure_token(path)
    path.chmod(0o644)
    assert ensure_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_token_file_cut_short_is_replaced(tmp_path):
    path = tmp_path / "api-token"
    path.write_text("abc\n")
    assert len(ensure_token(path)) >= 43


def test_a_folder_in_its_place_is_a_clear_error(tmp_path):
    with pytest.raises(ConfigError, match="remove the file"):
        ensure_token(tmp_path)
