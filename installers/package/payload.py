"""The folder that every Linux installer installs: the frozen app, and what sets the engine up."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from installers.package import freeze, notices, sbom, tools, wheel
from installers.package.plan import Build


@functools.cache
def payload(build: Build) -> Path:
    """Put it together, once a run; returns the folder.

    Raises:
        BuildFailed: A part could not be made.
    """
    folder = build.work / "payload"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(freeze.freeze(build), folder, symlinks=True)
    engine = folder / "engine"
    engine.mkdir()
    shutil.copy(tools.uv(build), engine / "uv")
    for name in ("engine.txt", "torch.txt", "torch-cpu.txt"):
        shutil.copy(build.locks / name, engine / name)
    shutil.copy(wheel.wheel(build), engine)
    (folder / "THIRD-PARTY-NOTICES.txt").write_text(notices.notices(build), "utf-8")
    (folder / "LICENSE").write_bytes((build.root / "LICENSE").read_bytes())
    (folder / "sbom.cdx.json").write_text(sbom.sbom(build), "utf-8")
    return folder


def filled(build: Build, name: str, **values: str) -> str:
    """A file of `installers/linux` with its places, `@NAME@`, filled in."""
    text = (build.root / "installers" / "linux" / name).read_text("utf-8")
    for place, value in values.items():
        text = text.replace(f"@{place}@", value)
    return text
