import pytest

from engine.core.errors import RequestError
from engine.swarm.identity import load_or_create
from engine.swarm.identity_backup import back_up, restore

PASSPHRASE = "correct horse"


def test_an_identity_comes_back_on_another_machine(tmp_path):
    old, new = tmp_path / "old.key", tmp_path / "new.key"
    peer, backup = back_up(old, PASSPHRASE)
    assert b"PRIVATE" not in backup.encode()
    before = load_or_create(new).peer_id
    assert before != peer
    # Line breaks of a mail program do no harm.
    assert restore(new, "\n".join([backup[:60], backup[60:]]), PASSPHRASE) == peer
    assert load_or_create(new).peer_id == peer
    assert new.read_bytes() == old.read_bytes()
    assert new.stat().st_mode & 0o777 == 0o600
    kept = tmp_path / "new.key.before"
    assert load_or_create(kept).peer_id == before


@pytest.mark.parametrize("damage", ["passphrase", "cut", "nonsense"])
def test_what_cannot_be_opened_changes_nothing(tmp_path, damage):
    path = tmp_path / "key"
    peer, backup = back_up(path, PASSPHRASE)
    wrong = {"passphrase": backup, "cut": backup[:-40], "nonsense": "Hello!"}[damage]
    with pytest.raises(RequestError, match="does not open the backup"):
        restore(path, wrong, "another one" if damage == "passphrase" else PASSPHRASE)
    assert load_or_create(path).peer_id == peer
