from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.whole_file import write_whole


def test_file_is_replaced_and_its_folder_made(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "note"
    for content in (b"old", b"new"):
        write_whole(target, content)
        assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["note"]


def test_private_file_is_its_owners_alone(tmp_path: Path) -> None:
    write_whole(tmp_path / "key", b"secret", 0o600)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_failed_replacement_keeps_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "note"
    target.mkdir()  # a directory cannot be replaced by a file
    with pytest.raises(OSError, match="directory"):
        write_whole(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["note"]
