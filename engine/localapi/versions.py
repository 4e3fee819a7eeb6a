"""Several versions of Shoal beside one another, and the program that starts the right one.

An installation that updates itself is a folder that holds a copy of this file, `start.py`, which its
shortcuts, services and commands run, and which needs nothing but Python:

```
start.py
versions.json                     which version runs, which is to be tried, which has failed
versions/0.2.0/start.json         {"command": ["{here}/shoal"]}: what to run; the rest is the version's own
```

A new version is put beside the others and `staged`. The next start tries it, watched: once it has said
that it works (`mark_healthy`) it is the one that runs, and the one before is kept. If it ends with an
error before that, says nothing for too long, or has been begun three times in vain, as when it takes
the computer down with it, the version before runs again, and learns of it (`ROLLED_BACK_FROM`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

RESTART_EXIT = 85
"""What a program ends with that wants to be started again, perhaps as another version."""
ROLLED_BACK_FROM = "SHOAL_ROLLED_BACK_FROM"
"""Variable with the version that was given up, for the one before it that runs instead."""
HEALTHY_WITHIN_S = 240.0
"""Libraries from a cold disk take tens of seconds to load; this is beyond doubt."""
MAX_STARTS = 3
_ENDS_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.2
_TRIES = 40
_T = TypeVar("_T")
_LONG_RUNNING = ("start", "engine")
"""Commands that run for long, so that a new version is tried with them; so does none at all."""


@dataclass(frozen=True)
class Versions:
    """`versions.json`: names of folders in `versions`, empty where there is none."""

    current: str = ""
    previous: str = ""
    """What ran before, kept in case."""
    staged: str = ""
    """To be tried."""
    starts: int = 0
    """How often that has begun."""
    failed: str = ""
    """What was tried last and given up."""


def read(root: Path) -> Versions:
    """What holds now; nothing where nothing can be read."""
    try:
        found = json.loads(_patiently(lambda: (root / "versions.json").read_text("utf-8")))
        names = (str(found.get(name, "")) for name in ("current", "previous", "staged", "failed"))
        current, previous, staged, failed = names
        return Versions(current, previous, staged, int(found.get("starts", 0)), failed)
    except (OSError, ValueError, TypeError, AttributeError):
        return Versions()


def _write(root: Path, versions: Versions) -> None:
    fresh = root / f".versions.json.{os.getpid()}"
    with fresh.open("w", encoding="utf-8") as file:
        json.dump(asdict(versions), file)
        file.flush()
        os.fsync(file.fileno())
    _patiently(lambda: fresh.replace(root / "versions.json"))


def _patiently(work: Callable[[], _T]) -> _T:
    """Do what Windows refuses while another process has the file open, which is over in a moment."""
    for _ in range(_TRIES if os.name == "nt" else 0):
        try:
            return work()
        except PermissionError:
            time.sleep(_LOOK_EVERY_S / 4)
    return work()


def folder_of(root: Path, version: str) -> Path:
    """Where a version lies, or shall.

    Raises:
        ValueError: That is no version's name.
    """
    if not re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,31}", version):
        raise ValueError(f"{version!r} is no version")
    return root / "versions" / version


def adopt(root: Path, version: str) -> None:
    """Let a version run from now on, untried, as after a first installation."""
    now = read(root)
    previous = now.previous if now.current == version else now.current
    _write(root, Versions(current=version, previous=previous))


def stage(root: Path, version: str) -> None:
    """Try a version at the next start."""
    _write(root, replace(read(root), staged=version, starts=0, failed=""))


def mark_healthy(root: Path, version: str) -> None:
    """The version that is tried says that it works; nothing happens if it is not tried."""
    now = read(root)
    if now.staged == version:
        _write(root, Versions(current=version, previous=now.current))


def forget_failed(root: Path, version: str) -> None:
    """The version that took over from one that has failed works, so nothing is left to be done."""
    now = read(root)
    if now.failed == version:
        _write(root, replace(now, failed=""))


def excuse(root: Path, version: str) -> None:
    """The version that is tried says that it cannot begin now, and is not to blame."""
    now = read(root)
    if now.staged == version:
        _write(root, replace(now, starts=0))


def _give_up(root: Path) -> None:
    now = read(root)
    _write(root, replace(now, staged="", starts=0, failed=now.staged))


def run(root: Path, words: list[str], healthy_within_s: float = HEALTHY_WITHIN_S) -> int:
    """Run the right version with the command's words, and again as often as it asks for it.

    Returns:
        The exit code; on Linux a command that ends soon takes this process over instead.
    """
    long_running = not words or words[0] in _LONG_RUNNING or words[0].startswith("-")
    child = _Child()
    while True:
        now = read(root)
        on_trial = bool(long_running and now.staged)
        if on_trial and now.starts >= MAX_STARTS:
            _give_up(root)
            continue
        version = now.staged if on_trial else now.current
        try:
            command = _command(root, version)
        except (OSError, ValueError, KeyError, TypeError) as error:
            if on_trial:
                _give_up(root)
                continue
            _say(f"Shoal is not whole ({error}); install it again.", waits=True)
            return 1
        environment = _environment(root, now, version if on_trial else "")
        if on_trial:
            _write(root, replace(now, starts=now.starts + 1))
        elif not long_running and os.name != "nt":
            os.execve(command[0], command + words, environment)  # noqa: S606 - by its full path
        code = child.run(command + words, environment, root if on_trial else None, healthy_within_s)
        if code == RESTART_EXIT and not child.was_stopped:
            continue
        if on_trial and code == 0:  # as when another window was raised instead
            excuse(root, version)
        after = read(root)
        gone_wrong = on_trial and after.staged == version and after.starts > 0
        if not gone_wrong or child.was_stopped:
            return code
        _give_up(root)
        _say(f"Shoal {version} did not start, so {now.current} runs again.")


def _command(root: Path, version: str) -> list[str]:
    here = folder_of(root, version)
    words = json.loads((here / "start.json").read_text("utf-8"))["command"]
    places = (("{here}", str(here)), ("{root}", str(root)))
    command = []
    for word in words:
        for place, path in places:
            word = word.replace(place, path)
        command.append(word)
    if not Path(command[0]).exists():
        raise ValueError(f"{command[0]} is missing")
    return command


def _environment(root: Path, now: Versions, trial: str) -> dict[str, str]:
    environment = dict(os.environ, SHOAL_VERSIONS=str(root))
    for name, value in (("SHOAL_TRIAL", trial), (ROLLED_BACK_FROM, now.failed)):
        environment.pop(name, None)
        if value:
            environment[name] = value
    return environment


def _say(text: str, *, waits: bool = False) -> None:
    """Tell a person; `waits` for them where only a window can, because nothing else will tell."""
    if sys.stderr is not None:
        sys.stderr.write(f"shoal: {text}\n")
        sys.stderr.flush()
    elif sys.platform == "win32" and waits:  # started without a console, from the start menu
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, text, "Shoal", 0x30)  # MB_ICONWARNING


class _Child:
    """The program that runs; what ends us ends it first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.was_stopped = False
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def run(
        self,
        command: list[str],
        environment: dict[str, str],
        trial: Path | None,
        healthy_within_s: float,
    ) -> int:
        """Run it to its end; on trial, end it when it has not said in time that it works."""
        try:
            self._process = subprocess.Popen(command, env=environment)
        except OSError as error:
            _say(
                f"{command[0]} cannot be started ({error}); install Shoal again.",
                waits=trial is None,
            )
            return 1
        if trial is not None:
            deadline_s = time.monotonic() + healthy_within_s
            while self._process.poll() is None and read(trial).staged:
                if time.monotonic() > deadline_s and not self.was_stopped:
                    return self._end()
                time.sleep(_LOOK_EVERY_S)
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def _end(self) -> int:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return 1

    def _on_signal(self, number: int, _frame: object) -> None:
        self.was_stopped = True
        # Ctrl-C reaches everything on the terminal by itself.
        if number != signal.SIGINT and self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def main() -> int:
    """`start.py [WORDS OF shoal]`; installers also say `start.py --adopt VERSION`."""
    root, words = Path(__file__).resolve().parent, sys.argv[1:]
    if len(words) == 2 and words[0] == "--adopt":
        adopt(root, words[1])
        return 0
    return run(root, words)


if __name__ == "__main__":
    sys.exit(main())
