"""`shoal-VERSION-x86_64.run`: for one person, on Linux distributions without .deb packages."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from installers.package.desktop_files import desktop_files
from installers.package.payload import filled, payload
from installers.package.plan import Build

START = Path("engine") / "localapi" / "versions.py"
"""What starts the right one of several versions; needs nothing but Python."""


def build(build: Build) -> list[Path]:
    """Build the archive, which unpacks and installs itself; returns it.

    Raises:
        BuildFailed: A part could not be made.
    """
    folder = build.work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(payload(build), folder / "payload", symlinks=True)
    shutil.copy(build.root / START, folder / "start.py")
    desktop_files(
        build,
        folder / "share",
        commands={"SHOAL": "@BIN@/shoal", "SHOAL_ENGINE": "@BIN@/shoal-engine"},
        units=folder / "share" / "systemd" / "user",
    )
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    needed_kb = sum(file.stat().st_size for file in files) // 1024
    values = {"VERSION": build.version, "NEEDED_KB": str(needed_kb)}
    for name in ("install.sh", "uninstall.sh"):
        (folder / name).write_text(filled(build, name, **values), "utf-8")
        (folder / name).chmod(0o755)
    name = f"shoal-{build.version}-x86_64.run"
    day = datetime.fromtimestamp(build.epoch_s, UTC).date().isoformat()
    # Not gzip, which writes into its output when that was made.
    compression = ("--zstd", "--complevel", "1") if build.is_fast else ("--xz", "--complevel", "9")
    build.run(
        *("makeself", "--quiet", "--tar-quietly", "--sha256", "--nox11", *compression),
        *("--packaging-date", day, "--tar-format", "gnu", "--tar-extra"),
        f"--sort=name --mtime=@{build.epoch_s} --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw",
        # Its own command line is in the archive, so that must name no folders of ours.
        *(folder.name, name, f"Shoal {build.version}", "./install.sh"),
        purpose="pack the .run",
        cwd=folder.parent,
    )
    return [Path(shutil.move(folder.parent / name, build.out / name))]
