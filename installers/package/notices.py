"""Licences of everything that an installer carries from others, in full."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from installers.package import tools
from installers.package.plan import Build, BuildFailed

LICENSES = Path(__file__).parents[1] / "licenses"
_RULE = "=" * 78
_HEAD = """\
Shoal {version} is licensed under the Apache License 2.0, see LICENSE.

This file is about what its installers carry from others: Python, Qt for Python, a few packages of
Python for the window, and uv. The engine's own packages are not in here: they are fetched from the
package index when Shoal is set up, each with its licence beside it, and are listed in sbom.cdx.json.

Qt and Qt for Python (PySide6, Shiboken6) are used under the GNU Lesser General Public License,
version 3, whose text and that of the GNU General Public License, to which it refers, are at the end.

You may replace them. They are shared libraries in files of their own: on Linux in
_internal/PySide6 and _internal/shiboken6 beside the program shoal-app, on Windows in the folder
site-packages of the window's Python. Put a build of yours there that has the same interface, and the
programs use it; nothing checks or prevents that. Their sources, in the very versions that are carried
({qt}), are at https://download.qt.io/official_releases/QtForPython/ and
https://download.qt.io/official_releases/qt/; whoever publishes an installer must offer them as long
as the installer is offered. You may also do what is needed to find errors in your own changes, reverse
engineering included.

The programs shoal-app and shoal-setup begin with the start program of PyInstaller, whose licence, the
GNU General Public License 2, has an exception for this use: programs made with it may be under any
licence.
"""


def notices(build: Build) -> str:
    """The whole text.

    Raises:
        BuildFailed: A licence that must be there is not found.
    """
    programs = tools.environment(build, "tools", build.locks / "tools.txt")
    window = tools.environment(build, "gui", build.locks / "gui.txt")
    packages = build.run(
        *(programs / "pip-licenses", "--python", window / "python", "--from=mixed"),
        *("--format=plain-vertical", "--with-license-file", "--with-notice-file"),
        *("--no-license-path", "--with-urls", "--ignore-packages", "pip", "setuptools"),
        purpose="collect the licences of the window's packages",
    )
    uv = tools.uv(build).parent
    parts = [
        ("Packages of the window", packages),
        ("Python", _python_licence()),
        ("uv", (uv / "LICENSE-MIT").read_text("utf-8")),
        ("GNU Lesser General Public License, version 3", (LICENSES / "LGPL-3").read_text("utf-8")),
        ("GNU General Public License, version 3", (LICENSES / "GPL-3").read_text("utf-8")),
    ]
    pins = tools.pins_of(build.locks / "gui.txt", "pyside6-essentials")
    qt = pins.split(maxsplit=1)[0]
    text = _HEAD.format(version=build.version, qt=qt)
    return text + "".join(f"\n{_RULE}\n{title}\n{_RULE}\n\n{body}\n" for title, body in parts)


def _python_licence() -> str:
    library = Path(sysconfig.get_path("stdlib"))
    for file in (library / "LICENSE.txt", Path("/usr/share/doc/python3") / "copyright"):
        if file.exists():
            return file.read_text("utf-8", errors="replace")
    raise BuildFailed(
        f"This Python has no licence text in {library}; build with a Python from python.org, pyenv or "
        "uv, which has one."
    )
