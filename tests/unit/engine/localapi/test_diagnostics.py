import io
import json
import zipfile
from pathlib import Path

import pytest

from engine.localapi import diagnostics
from engine.localapi.running import Home


@pytest.fixture
def person(monkeypatch):
    monkeypatch.setattr(diagnostics.getpass, "getuser", lambda: "wilhelmine")
    monkeypatch.setattr(diagnostics.socket, "gethostname", lambda: "minnies-pc")
    monkeypatch.setattr(diagnostics.Path, "home", lambda: Path("/home/wilhelmine"))
    monkeypatch.delenv("SHOAL_HOME", raising=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in /home/wilhelmine/models on minnies-pc", "in ~/models on <computer>"),
        ("owner wilhelmine", "owner <user>"),
        ("at /ip4/203.0.113.7/tcp/31330", "at /ip4/<address>/tcp/31330"),
        ("http://127.0.0.1:8080 and 0.0.0.0", "http://127.0.0.1:8080 and 0.0.0.0"),
        ("from 2001:db8::1 and fe80:1:2:3:4:5:6:7", "from <address> and <address>"),
        ("mac 00:1b:44:11:3a:b7", "mac <address>"),
        ("join shoal://abc123def?key=456 now", "join shoal://… now"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer …"),
        ('{"token": "abcdefghijklmnop"}', '{"token": …"}'),
        ("hf_abcdefghijklmno", "hf_…"),
        ("http://me:secret@proxy:3128", "http://…@proxy:3128"),
        ("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N", "…7DWjhx5N"),
        ("2026-11-30 14:55:51,123 INFO engine: 12 tokens", None),
        ("loaded blocks 0-29 at 10.5 GB/s, version 1.2.3", None),
    ],
)
def test_what_tells_who_and_where_is_taken_out(person, text, expected):
    found = diagnostics.redact(text)
    if expected is not None and expected.startswith("…"):
        assert found.startswith("…")
        assert len(found) < 12
    else:
        assert found == (text if expected is None else expected)


def test_the_archive_holds_what_the_preview_shows_and_no_secret(person, tmp_path):
    home = Home.under(tmp_path)
    home.state_dir.mkdir()
    home.config_dir.mkdir()
    home.data_dir.mkdir()
    home.log_file.write_text("2026-11-30 INFO joined at 198.51.100.9\n" * 3)
    home.settings_file.write_text('[model]\nproxy = "http://me:secret@proxy:1"\n')
    home.token_file.write_text("the-token")
    home.identity_file.write_bytes(b"the-key")
    home.swarm_file.write_text("shoal://the-invite")
    files = diagnostics.entries(home, "1.0", {"status": {"reason": "on minnies-pc"}})
    with zipfile.ZipFile(io.BytesIO(diagnostics.archive(files))) as packed:
        held = {name.split("/")[1]: packed.read(name).decode() for name in packed.namelist()}
    assert held == {file.name: file.text for file in files}
    assert set(held) == {"machine.json", "status.json", "settings.toml", "engine.log"}
    assert json.loads(held["machine.json"])["shoal"] == "1.0"
    for secret in ("198.51", "secret", "the-token", "the-key", "the-invite", "minnies", "wilhel"):
        assert all(secret not in text for text in held.values())


def test_a_long_log_is_cut_at_a_line_and_a_missing_one_is_empty(person, tmp_path, monkeypatch):
    home = Home.under(tmp_path)
    assert diagnostics.log_tail(home, 10) == ()
    home.state_dir.mkdir()
    home.log_file.write_text("".join(f"line {n}\n" for n in range(1000)))
    assert diagnostics.log_tail(home, 2) == ("line 998", "line 999")
    monkeypatch.setattr(diagnostics, "MAX_LOG_BYTES", 20)
    assert diagnostics.log_tail(home, 10) == ("line 998", "line 999")
