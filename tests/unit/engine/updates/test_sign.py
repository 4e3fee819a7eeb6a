"""What the list says of packages: read from real ones."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.updates.manifest import opened
from installers import sign

NUM_KB = 300


def packed_deb(folder: Path) -> Path:
    control = folder / "tree" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: shoal\nVersion: 7.0.0\nArchitecture: amd64\nMaintainer: Zoe <z@z.invalid>\n"
        f"Installed-Size: {NUM_KB}\nDescription: a shoal\n"
    )
    package = folder / "shoal_7.0.0_amd64.deb"
    subprocess.run(
        ["dpkg-deb", "--build", folder / "tree", package], check=True, capture_output=True
    )
    return package


def packed_run(folder: Path) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    (tree / "data").write_bytes(bytes(NUM_KB * 1024))
    package = folder / "shoal-7.0.0-x86_64.run"
    command = ["makeself", "--quiet", "--tar-quietly", "--nox11", tree, package, "Shoal", "true"]
    subprocess.run(command, check=True, capture_output=True)
    return package


@pytest.mark.parametrize(
    ("program", "packed"), [("dpkg-deb", packed_deb), ("makeself", packed_run)]
)
def test_the_list_says_what_a_package_takes_once_it_is_installed(tmp_path, program, packed):
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    key, channel, to = tmp_path / "key.pem", tmp_path / "channel.json", tmp_path / "shoal.json"
    more = ["--no-passphrase"]
    words = ["keys", key, "--url", "https://x.example/shoal.json", "--channel", channel, *more]
    assert sign.main([*map(str, words)]) == 0
    package = packed(tmp_path)
    words = ["list", key, to, package, "--version", "7.0.0", *more]
    assert sign.main([*map(str, words)]) == 0
    keys = sign.json.loads(channel.read_text())["keys"]
    (file,) = opened(to.read_bytes(), keys, "here").files
    assert NUM_KB * 1024 <= file.installed_bytes <= (NUM_KB + 64) * 1024
