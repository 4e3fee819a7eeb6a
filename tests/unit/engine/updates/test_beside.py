"""A version is put beside the one that runs, and what nobody needs any more goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import __version__
from engine.core.errors import UpdateError
from engine.localapi import versions
from engine.updates.beside import put_beside

INSTALLS = '#!/bin/sh\nmkdir -p "$3/versions/9.0.0" && echo {} > "$3/versions/9.0.0/start.json"\n'


async def test_old_versions_go_but_never_the_one_that_runs(tmp_path: Path) -> None:
    for version in ("0.0.1", __version__, "8.0.0"):
        versions.folder_of(tmp_path, version).mkdir(parents=True)
    versions.adopt(tmp_path, "8.0.0")  # installed by hand while we run
    package = tmp_path / "package.run"
    package.write_text(INSTALLS)
    await put_beside(package, tmp_path, "9.0.0", {})
    left = {folder.name for folder in (tmp_path / "versions").iterdir()}
    assert left == {__version__, "8.0.0", "9.0.0"}


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (
            'echo "shoal: 900 MB are needed in /home, but only 3 MB are free; free some space." >&2; exit 1',
            r"could not be installed, so this version stays. It said: shoal: 900 MB are needed",
        ),
        ("exit 0", r"The package of Shoal 9.0.0 did not install it; get it by hand."),
    ],
)
async def test_a_package_that_does_not_install_itself_leaves_this_version_as_it_was(
    does: str, told: str, tmp_path: Path
) -> None:
    versions.folder_of(tmp_path, __version__).mkdir(parents=True)
    versions.adopt(tmp_path, __version__)
    before = versions.read(tmp_path)
    package = tmp_path / "package.run"
    package.write_text(f"#!/bin/sh\n{does}\n")
    with pytest.raises(UpdateError, match=told):
        await put_beside(package, tmp_path, "9.0.0", {})
    assert versions.read(tmp_path) == before
