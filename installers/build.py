"""Build Shoal's installers: `python installers/build.py {deb,run,windows,all}`.

The same sources give the same bytes, whenever and wherever they are built, as long as the build's
Python and system are the same. `lock` makes the lists of packages and their hashes anew.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine import __version__  # noqa: E402 - found by the line above
from installers.package import deb, locks, run, windows  # noqa: E402
from installers.package.plan import Build, BuildFailed, source_date_s  # noqa: E402
from installers.setup_steps.report import Report  # noqa: E402
from installers.setup_steps.state_files import alone  # noqa: E402

TARGETS: dict[str, Callable[[Build], list[Path]]] = {
    "deb": deb.build,
    "run": run.build,
    "windows": windows.build,
}
"""Name → what builds it and tells the files that it made in `Build.out`."""
SUMS = "SHA256SUMS"


def main(arguments: Sequence[str] | None = None) -> int:
    """Obey the command line; returns the exit status (0 done, 1 failed, 2 usage)."""
    parser = argparse.ArgumentParser(prog="installers/build.py", description=__doc__)
    parser.add_argument("targets", nargs="+", choices=[*TARGETS, "all", "lock"])
    parser.add_argument("--fast", action="store_true", help="compress quickly, for tests")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "installers", metavar="FOLDER"
    )
    options = parser.parse_args(arguments)
    try:
        build = Build(
            root=ROOT,
            work=options.work.absolute(),
            out=options.out.absolute(),
            version=__version__,
            epoch_s=source_date_s(ROOT),
            is_fast=options.fast,
        )
        if "lock" in options.targets:
            locks.make(build)
            return 0
        build.out.mkdir(parents=True, exist_ok=True)
        chosen = list(TARGETS) if "all" in options.targets else options.targets
        with alone(build.folder("."), Report()):
            for target in chosen:
                for made in TARGETS[target](build):
                    print(f"{made} ({made.stat().st_size / 1e6:.1f} MB)")
        write_sums(build.out)
    except BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def write_sums(out: Path) -> None:
    """Write `SHA256SUMS` of everything in `out`, as `sha256sum --check` reads it."""
    lines = []
    for file in sorted(out.iterdir()):
        if file.is_file() and file.name != SUMS:
            with file.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            lines.append(f"{digest}  {file.name}\n")
    (out / SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
