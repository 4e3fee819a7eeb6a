from __future__ import annotations

from pathlib import Path

import pytest

from app.__main__ import read_invite

INVITE = "shoal://v1/abc"


def test_an_invite_comes_as_a_link_a_file_or_the_address_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my friends.shoal"
    file.write_text(f"{INVITE}\n")
    assert read_invite(INVITE) == INVITE
    assert read_invite(str(file)) == INVITE
    assert read_invite(file.as_uri()) == INVITE


@pytest.mark.parametrize(
    "text", ["", "https://example.org", "file:///nowhere.shoal", "shoal://a b"]
)
def test_anything_else_is_no_invite(text: str) -> None:
    assert read_invite(text) is None
