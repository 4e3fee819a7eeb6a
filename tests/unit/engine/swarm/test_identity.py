from __future__ import annotations

import stat

import pytest
from hivemind.p2p import P2P, PeerID

from engine.core.errors import ConfigError
from engine.swarm.identity import load_or_create, peer_id_of


def test_new_identity_is_private_and_stays_the_same(tmp_path):
    path = tmp_path / "data" / "identity.key"
    made = load_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["identity.key"]
    assert load_or_create(path).peer_id == made.peer_id
    assert made.peer_id.startswith("Qm")


def test_identity_is_the_one_that_hivemind_sees_in_the_file(tmp_path):
    path = tmp_path / "identity.key"
    P2P.generate_identity(str(path))
    assert load_or_create(path).peer_id == PeerID.from_identity(path.read_bytes()).to_base58()


def test_peer_id_follows_from_the_public_key_of_its_records(tmp_path):
    identity = load_or_create(tmp_path / "identity.key")
    assert peer_id_of(identity.signing_key.get_public_key().to_bytes()) == identity.peer_id
    assert peer_id_of(b"ssh-rsa AAAA") is None
    assert peer_id_of(b"") is None


def test_readable_identity_is_closed_to_others(tmp_path):
    path = tmp_path / "identity.key"
    load_or_create(path)
    path.chmod(0o644)
    load_or_create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:200], lambda data: b"x" + data]
)
def test_damaged_identity_says_what_to_do_and_is_not_replaced(tmp_path, damage):
    path = tmp_path / "identity.key"
    load_or_create(path)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(ConfigError, match="damaged; restore it"):
        load_or_create(path)
    assert path.read_bytes() == damaged


def test_folder_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError):
        load_or_create(tmp_path / "file" / "identity.key")
