"""What is believed of a list of versions, and what is refused, with the sentence that a person reads."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.core.errors import ConfigError, UpdateRefused
from engine.updates.manifest import Manifest, PackageFile, check, numbers, opened, public_text, sign

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
OURS = [public_text(KEY.public_key())]
PLACE = "https://shoal.example/list.json"
NOW = 1_800_000_000.0
DAY = 86400.0


def manifest(**fields) -> Manifest:
    file = PackageFile(kind="deb", machine="x86_64", url="a.deb", size_bytes=9, sha256="0" * 64)
    base = {"version": "0.2.0", "signed_unix_s": NOW, "expires_unix_s": NOW + 90 * DAY}
    return Manifest(**{"protocol": 2, "oldest_protocol": 1, "files": (file,), **base, **fields})


def judged(found: Manifest, running="0.1.0", seen=0.0, now=NOW) -> None:
    check(found, running=running, seen_unix_s=seen, now_unix_s=now, place=PLACE)


def test_a_signed_list_is_read_as_it_was_written():
    found = opened(sign(manifest(summary="Faster."), KEY), OURS, PLACE)
    assert found == manifest(summary="Faster.")
    assert found.file_for("deb", "x86_64") == manifest().files[0]
    assert found.file_for("deb", "aarch64") is None
    judged(found)


def test_either_of_two_keys_is_believed_while_one_replaces_the_other():
    keys = [public_text(OTHER.public_key()), *OURS]
    for key in (KEY, OTHER):
        assert opened(sign(manifest(), key), keys, PLACE) == manifest()


@pytest.mark.parametrize("field", ["signed", "key", "signature"])
def test_a_list_that_was_altered_anywhere_is_refused(field):
    whole = json.loads(sign(manifest(), KEY))
    whole[field] = json.loads(sign(manifest(version="0.3.0"), OTHER))[field]
    with pytest.raises(UpdateRefused, match="does not carry the signature"):
        opened(json.dumps(whole).encode(), OURS, PLACE)


def test_every_flipped_bit_of_what_was_signed_is_noticed():
    whole = json.loads(sign(manifest(), KEY))
    for at in range(0, len(whole["signed"]), 7):
        text = whole["signed"]
        flipped = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
        with pytest.raises(UpdateRefused):
            opened(json.dumps({**whole, "signed": flipped}).encode(), OURS, PLACE)


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b'{"signed": 1}', b"\xff\xfe"])
def test_what_is_no_list_says_where_to_look(data):
    with pytest.raises(UpdateRefused, match=r"no list of Shoal's versions; check updates\.url"):
        opened(data, OURS, PLACE)


def test_fields_and_packages_of_later_versions_are_ignored():
    later = manifest(
        files=(*manifest().files, manifest().files[0].model_copy(update={"kind": "flatpak"}))
    )
    text = json.loads(later.model_dump_json()) | {"colour": "blue"}
    signed = KEY.sign(b"shoal updates 1\n" + json.dumps(text).encode())
    whole = {"signed": json.dumps(text), "key": OURS[0]}
    whole["signature"] = base64.b64encode(signed).decode()
    assert opened(json.dumps(whole).encode(), OURS, PLACE).version == "0.2.0"


def test_a_downgrade_is_refused():
    with pytest.raises(UpdateRefused, match=r"offers Shoal 0\.2\.0, which is older than 0\.10\.0"):
        judged(manifest(), running="0.10.0")
    judged(manifest(version="0.10.0"), running="0.2.0")
    assert numbers("0.10.0") > numbers("0.9.9")


def test_an_older_list_than_one_that_was_seen_is_refused():
    with pytest.raises(UpdateRefused, match="a newer one of 2027-01-25 has been seen"):
        judged(manifest(), seen=NOW + 10 * DAY, now=NOW + 11 * DAY)
    judged(manifest(), seen=NOW)


def test_a_list_that_nobody_renews_is_refused():
    with pytest.raises(UpdateRefused, match="nobody has renewed it"):
        judged(manifest(), now=NOW + 91 * DAY)


@pytest.mark.parametrize("key", ["", "AAAA", "not base64!", "A" * 43])
def test_a_key_that_is_none_names_the_setting(key):
    with pytest.raises(ConfigError, match=r"updates\.key"):
        opened(sign(manifest(), KEY), [key], PLACE)
