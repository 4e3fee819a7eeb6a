"""A version is put beside the one that runs, and what nobody needs any more goes."""

from __future__ import annotations

from pathlib import Path

from engine import __version__
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
