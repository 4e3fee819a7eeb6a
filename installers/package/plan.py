"""What one run of `installers/build.py` builds from, and where it puts what."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

# The first moment that a ZIP archive can name, for sources that are no checkout.
_EARLIEST_S = 315_619_200


class BuildFailed(Exception):
    """An installer cannot be built; the text is one sentence: what happened, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Build:
    """One run: the same values here and the same sources give the same bytes."""

    root: Path
    """The checkout."""
    work: Path
    """Environments, downloads and intermediate files, kept between runs."""
    out: Path
    """Where installers are put."""
    version: str
    epoch_s: int
    """The time that every file in every archive bears."""
    is_fast: bool = False
    """Compress quickly instead of well, for tests."""

    @property
    def locks(self) -> Path:
        """The lists of packages with their hashes."""
        return self.root / "installers" / "locks"

    @property
    def maintainer(self) -> str:
        """Who answers for the packages, `NAME <ADDRESS>`, as `pyproject.toml` says."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text("utf-8"))["project"]
        (one,) = project["maintainers"]
        return f"{one['name']} <{one['email']}>"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for every program that a build starts."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        }
        return kept | {
            "SOURCE_DATE_EPOCH": str(self.epoch_s),
            "PYTHONHASHSEED": "1",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "UV_CACHE_DIR": str(self.work / "uv-cache"),
            "UV_NO_CONFIG": "1",
            "UV_LINK_MODE": "hardlink",  # nothing writes into these environments
        }

    def folder(self, name: str) -> Path:
        """A folder in `work`, made if it is not there."""
        path = self.work / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def run(
        self, *command: str | Path, purpose: str, cwd: Path | None = None, **variables: str
    ) -> str:
        """Run a program; returns its standard output.

        Args:
            command: The program and its arguments.
            purpose: What for, as the middle of a sentence: `freeze the app`.
            cwd: Where; default: `work`.
            variables: Added to its environment.

        Raises:
            BuildFailed: It is not there, or failed.
        """
        line = [str(word) for word in command]
        try:
            done = subprocess.run(
                line,
                cwd=cwd or self.folder("."),
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except FileNotFoundError as error:
            raise BuildFailed(
                f"The build could not {purpose}, because {line[0]} is missing; install it and "
                "run the same command again."
            ) from error
        if done.returncode:
            log = self.folder("logs") / f"{Path(line[0]).name}.log"
            log.write_text(done.stdout + done.stderr, encoding="utf-8")
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise BuildFailed(
                f"The build could not {purpose}, because {Path(line[0]).name} failed and said "
                f"“{said[:300]}”; look into {log}."
            )
        return done.stdout


def source_date_s(root: Path) -> int:
    """`SOURCE_DATE_EPOCH`, or else when the checkout's last commit was made.

    Raises:
        BuildFailed: The variable is no number.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        if not given.isdecimal():
            raise BuildFailed(
                f"SOURCE_DATE_EPOCH is {given!r}, which is no number of seconds; unset it or "
                "give it one."
            )
        return max(int(given), _EARLIEST_S)
    try:
        asked = subprocess.run(
            ["git", "-C", str(root), "log", "-1", "--format=%ct"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return _EARLIEST_S
    text = asked.stdout.strip()
    return int(text) if asked.returncode == 0 and text.isdecimal() else _EARLIEST_S
