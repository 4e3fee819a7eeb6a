from __future__ import annotations

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError, InviteInvalid
from engine.swarm import invites
from engine.swarm.invites import Invite, parse

PEER = "QmSynGbBny7aT8FHraxczBL6Si93eK7hgfsKz36DVSfKkr"
BOOTSTRAP = (f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}", f"/dns4/shoal.example/tcp/1/p2p/{PEER}")


def invite(*, private: bool = False, name: str = "Friends") -> Invite:
    return invites.found(name, BOOTSTRAP, "starter", "starter@0123456789ab", private=private)


@pytest.mark.parametrize("private", [False, True])
def test_invite_is_the_same_after_being_handed_on(private):
    given_out = invite(private=private, name="Žluťoučký kůň 🐟")
    assert parse(given_out.text()) == given_out
    assert (given_out.membership.key is not None) is private


def test_line_breaks_and_blanks_of_mail_do_no_harm():
    text = invite(private=True).text()
    assert parse(f"  {text[:60]}\r\n  {text[60:90]}\n{text[90:]} \n") == parse(text)


def test_key_is_never_shown_in_messages():
    private = invite(private=True)
    assert private.key is not None
    assert private.key.hex() not in repr(private)
    assert repr(private.key) not in repr(private)
    assert "key" not in repr(private.membership)


def test_two_swarms_of_one_name_are_different():
    assert invite().swarm_id != invite().swarm_id


@pytest.mark.parametrize("length", [9, 12, 20, 60, -40, -3, -1])
def test_truncated_invite_says_so(length):
    with pytest.raises(InviteInvalid, match="cut short"):
        parse(invite(private=True).text()[:length])


@given(st.integers(0, 200), st.characters(codec="ascii", categories=["L", "N"]))
def test_altered_character_is_noticed(at, character):
    text = _FIXED.text()
    at += len("shoal://v1/")
    if text[at] == character:
        return
    with pytest.raises(InviteInvalid):
        parse(text[:at] + character + text[at + 1 :])


@pytest.mark.parametrize("tail", ["A", "AAAA", "\x00\x00", "€", "/x?y=1"])
def test_text_behind_the_invite_is_noticed(tail):
    with pytest.raises(InviteInvalid):
        parse(invite().text() + tail)


def test_invite_of_a_later_version_says_to_update():
    with pytest.raises(InviteInvalid, match="update Shoal"):
        parse(invite().text().replace("/v1/", "/v2/"))


@pytest.mark.parametrize("text", ["", "hello", "https://example.org/", "magnet:?xt=1", "shoal:"])
def test_anything_else_is_not_an_invite(text):
    with pytest.raises(InviteInvalid, match="not an invite"):
        parse(text)


@pytest.mark.parametrize(
    "bad",
    [
        {"bootstrap": ()},
        {"bootstrap": ("/ip4/1.2.3.4/tcp/4001",)},
        {"bootstrap": ("/ip4/1.2.3.400/tcp/4001/p2p/" + PEER,)},
        {"bootstrap": ("/ip4/1.2.3.4/tcp/99999/p2p/" + PEER,)},
        {
            "bootstrap": (
                "/ip4/1.2.3.4/tcp/4001/p2p/12D3KooWKRyzVWW6ChFjQjK4miCty85Niy49tpPV95XdKu1",
            )
        },
        {"name": " "},
        {"name": "two\nlines"},
        {"name": "n" * 65},
        {"source": ""},
    ],
    ids=str,
)
def test_invite_that_would_not_work_is_not_made(bad):
    whole = invite()
    fields = {name: getattr(whole, name) for name in Invite.__slots__} | bad
    with pytest.raises(ConfigError, match="cannot be made"):
        Invite(**fields).text()


def test_file_holds_the_line_and_is_private_when_the_swarm_is(tmp_path):
    for private, mode in ((False, 0o644), (True, 0o600)):
        path = tmp_path / "config" / f"{private}.shoal"
        whole = invite(private=private)
        invites.save(path, whole)
        assert path.read_text() == whole.text() + "\n"
        assert invites.load(path) == whole
        assert stat.S_IMODE(path.stat().st_mode) & ~mode == 0
        assert list(path.parent.glob(".*")) == []


def test_absent_file_is_solo_and_a_broken_one_is_an_error(tmp_path):
    path = tmp_path / "swarm.shoal"
    assert invites.load(path) is None
    path.write_text(invite().text()[:50])
    with pytest.raises(InviteInvalid, match="cut short"):
        invites.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InviteInvalid):
        invites.load(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        invites.load(path)


_FIXED = invite(private=True)
