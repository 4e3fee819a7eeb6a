from __future__ import annotations

from pathlib import Path

import pytest

from app.text_files import NotAttached, read_text_file


@pytest.mark.parametrize(
    "data",
    [
        "Äl\nzwei".encode(),
        "Äl\nzwei".encode("utf-8-sig"),
        "Äl\nzwei".encode("utf-16"),
        "Äl\r\nzwei".encode("cp1252"),
    ],
)
def test_texts_are_read_in_the_encodings_that_people_have(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "eel.txt"
    file.write_bytes(data)
    assert read_text_file(file, str).text == "Äl\nzwei"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0", b"\xff\xfe\x00", b"a\0b"])
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "eel.png"
    file.write_bytes(data)
    with pytest.raises(NotAttached, match=r"eel\.png is not a text file"):
        read_text_file(file, str)


def test_what_is_too_large_or_missing_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(NotAttached, match=r"more than 1\.0 MB"):
        read_text_file(large, str)
    with pytest.raises(NotAttached, match=r"cannot be read \(No such file"):
        read_text_file(tmp_path / "none.txt", str)
