"""`shoal_VERSION_amd64.deb`, for Debian from 12 on, Ubuntu from 24.04 on, and what is made from them."""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

from installers.package import archives, tools
from installers.package.desktop_files import desktop_files
from installers.package.payload import filled, payload
from installers.package.plan import Build
from installers.setup_steps.system_packages import QT_LIBRARIES

HERE = "/usr/lib/shoal"
_RENAMED = {"libglib2.0-0": "libglib2.0-0t64 | libglib2.0-0"}
"""Newer releases call it otherwise."""
_CONTROL = """\
Package: shoal
Version: {version}
Architecture: amd64
Maintainer: {maintainer}
Installed-Size: {size_kb}
Depends: {depends}
Recommends: {recommends}
Section: net
Priority: optional
Description: lend your GPU to large language models, and use the shoal's
 Shoal cuts a large language model into pieces that volunteers' computers hold,
 each a few layers. This package has the window and the tray icon, and sets up
 the engine, which computes, in every person's own folder at the first start:
 it then downloads about 0.4 GB, or about 3 GB with an NVIDIA card.
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: shoal

Files: *
Copyright: 2026 The Shoal project
License: Apache-2.0
 On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/shoal/_internal/* usr/lib/shoal/engine/uv
Copyright: 1990-2026 their authors, see /usr/lib/shoal/THIRD-PARTY-NOTICES.txt
License: various
 Python, Qt, Qt for Python (LGPL-3), packages of Python, and uv. All texts are in
 /usr/lib/shoal/THIRD-PARTY-NOTICES.txt, and the LGPL and the GPL in
 /usr/share/common-licenses.
"""


def build(build: Build) -> list[Path]:
    """Build the package; returns the files that were made in `build.out`.

    Raises:
        BuildFailed: A part could not be made.
    """
    tree = build.work / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    shutil.copytree(payload(build), tree / HERE[1:], symlinks=True)
    for name in ("shoal", "shoal-engine"):
        launcher = filled(build, "launcher.sh", HERE=HERE, NAME=name)
        _write(tree / HERE[1:] / name, launcher, mode=0o755)
        (tree / "usr" / "bin").mkdir(exist_ok=True)
        (tree / "usr" / "bin" / name).symlink_to(f"../lib/shoal/{name}")
    desktop_files(
        build,
        tree / "usr" / "share",
        commands={"SHOAL": "/usr/bin/shoal", "SHOAL_ENGINE": "/usr/bin/shoal-engine"},
        units=tree / "usr" / "lib" / "systemd" / "user",
    )
    _documents(build, tree)
    size_kb = sum(file.stat().st_size for file in _files(tree)) // 1024
    control = {
        "control": _CONTROL.format(
            version=build.version,
            maintainer=build.maintainer,
            size_kb=size_kb,
            depends=", ".join(_depends()),
            recommends="dbus-user-session, fonts-noto-core | fonts-dejavu-core, xdg-utils",
        ),
        "md5sums": "".join(
            f"{hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()}  "
            f"{file.relative_to(tree)}\n"
            for file in _files(tree)
        ),
        "postrm": filled(build, "postrm"),
    }
    parts = build.work / "deb-control"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    for name, text in control.items():
        (parts / name).write_text(text, "utf-8")
        (parts / name).chmod(0o755 if name == "postrm" else 0o644)
    head = archives.compressed(build, archives.plain_tar(build, parts))
    body = archives.compressed(build, archives.plain_tar(build, tree))
    package = build.out / f"shoal_{build.version}_amd64.deb"
    members = [
        ("debian-binary", b"2.0\n"),
        (f"control.tar{head[1]}", head[0]),
        (f"data.tar{body[1]}", body[0]),
    ]
    package.write_bytes(archives.ar(build, members))
    return [package]


def _depends() -> list[str]:
    qt = [_RENAMED.get(name, name) for name in QT_LIBRARIES.values()]
    system = ("ca-certificates", "libc6 (>= 2.35)", "libgcc-s1", "libstdc++6 (>= 12)")
    wayland = ("libwayland-cursor0", "libwayland-egl1")
    return sorted([*system, *qt, *wayland, "python3 (>= 3.11)", "python3 (<< 3.15)"])


def _documents(build: Build, tree: Path) -> None:
    documents = tree / "usr" / "share" / "doc" / "shoal"
    _write(documents / "copyright", _COPYRIGHT)
    moment = datetime.fromtimestamp(build.epoch_s, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    entry = (
        f"shoal ({build.version}) stable; urgency=medium\n\n  * See changes.md.\n\n"
        f" -- {build.maintainer}  {moment}\n"
    )
    _write_packed(build, documents / "changelog.gz", entry)
    changes = (build.root / "resources" / "CHANGELOG.md").read_text("utf-8")
    _write_packed(build, documents / "changes.md.gz", changes)
    overrides = filled(build, "lintian-overrides")
    _write(tree / "usr" / "share" / "lintian" / "overrides" / "shoal", overrides)
    manual = tree / "usr" / "share" / "man" / "man1"
    _write_packed(build, manual / "shoal.1.gz", manual_page(build))
    (manual / "shoal-engine.1.gz").symlink_to("shoal.1.gz")


def manual_page(build: Build) -> str:
    """The manual page of `shoal`, from what its commands say of themselves.

    Raises:
        BuildFailed: It could not be made.
    """
    programs = tools.environment(
        build, "manual", build.locks / "engine.txt", build.locks / "manual.txt"
    )
    return build.run(
        programs / "argparse-manpage",
        *("--module", "engine.cli.program", "--function", "parser", "--prog", "shoal"),
        *("--project-name", "shoal", "--version", build.version),
        *("--manual-title", "Shoal", "--format", "single-commands-section"),
        *("--description", "lend your GPU to large language models, and use the shoal's"),
        purpose="make the manual page",
        PYTHONPATH=str(build.root),
        COLUMNS="10000",  # what reads the page breaks its lines
    )


def _files(tree: Path) -> list[Path]:
    files = (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(files, key=lambda path: path.as_posix())


def _write(file: Path, text: str, *, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    file.chmod(mode)


def _write_packed(build: Build, file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(archives.gzipped(build, text.encode(), best=True))
