"""Shoal's own wheel: what every installer installs into the engine's environment."""

from __future__ import annotations

import shutil
from pathlib import Path

from installers.package import archives, tools
from installers.package.plan import Build

_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "engine", "app", "resources")


def wheel(build: Build) -> Path:
    """Build `shoal-VERSION-py3-none-any.whl`; returns where it is.

    Raises:
        BuildFailed: It could not be built.
    """
    folder = build.folder("wheel")
    shutil.rmtree(folder)
    sources = folder / "sources"  # setuptools leaves files beside what it packs
    sources.mkdir(parents=True)
    for name in _SOURCES:
        if (build.root / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(build.root / name, sources / name, ignore=ignored)
        else:
            shutil.copy(build.root / name, sources / name)
    build.run(
        *(tools.uv(build), "build", "--quiet", "--wheel", "--require-hashes"),
        *("--build-constraints", build.locks / "engine.txt", "--out-dir", folder, sources),
        purpose="build Shoal's wheel",
    )
    (built,) = folder.glob("shoal-*.whl")
    archives.settled_zip(build, built)
    shutil.rmtree(sources)
    return built
