"""All that Shoal says to `wsl.exe`: its own distribution on Windows, from import to removal.

Standard library only, and nothing of Windows is imported: the setup uses this module before anything
is installed, and a test hands in another program than `wsl.exe`.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from app.wsl_troubles import OVER_LIMIT, Trouble, sentence, trouble_in

DISTRIBUTION = "Shoal"
USER = "shoal"
HOME = f"/home/{USER}"
PLACE = "/opt/shoal"
"""Where everything of ours is in the distribution, apart from what is the person's."""

LOOK_LIMIT_S = 60.0
"""The first call after a start of the computer starts a service."""
CALL_LIMIT_S = 300.0
IMPORT_LIMIT_S = 1800.0
_LOOK_EVERY_S = 0.2
NO_WINDOW = 0x08000000
"""CREATE_NO_WINDOW: else a console flashes up for every call."""


_LISTED = re.compile(r"^[\s*]*(?P<name>\S+)\s+(?P<state>\S.*?)\s+(?P<version>[12])\s*$")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to."""

    code: int
    text: str

    @property
    def trouble(self) -> Trouble | None:
        """Why it failed; None if it did not."""
        return trouble_in(self.code, self.text)


class CallStopped(Exception):
    """The person does not want to wait for the end of a call."""


@dataclass(frozen=True, slots=True)
class Look:
    """What there is."""

    trouble: Trouble | None
    """About WSL itself."""
    version: int | None
    """Of our distribution: 1 or 2; None without one."""


class WslFailed(Exception):
    """WSL did not do what it was asked; the text says why and what to do."""

    def __init__(self, trouble: Trouble, answer: str) -> None:
        super().__init__(sentence(trouble, detail=answer))
        self.trouble = trouble


def program() -> str:
    """Windows' own `wsl.exe`, and no other that a folder in PATH may hold."""
    return str(PureWindowsPath(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "wsl.exe"))


def environment(forwarded: Sequence[str] = ()) -> dict[str, str]:
    """The variables for a call: answers in UTF-8, and `forwarded` handed on into Linux."""
    variables = {**os.environ, "WSL_UTF8": "1"}
    kept = [name for name in forwarded if variables.get(name)]
    if kept:
        variables["WSLENV"] = ":".join([*filter(None, [variables.get("WSLENV")]), *kept])
    return variables


def in_distribution(*command: str, user: str = USER) -> tuple[str, ...]:
    """Arguments that run `command` in our distribution, without a shell in between."""
    return ("--distribution", DISTRIBUTION, "--user", user, "--cd", "/", "--exec", *command)


def place_of(version: str) -> str:
    """Where the engine of a version of Shoal is in the distribution."""
    return f"{PLACE}/versions/{version}"


def start_of(version: str) -> str:
    """What starts it; its standard output is the ready line and nothing else."""
    return f"{place_of(version)}/start-engine"


def engine_command(version: str, *arguments: str) -> tuple[str, ...]:
    """What starts the engine; the distribution stays awake for as long as this process runs."""
    return (program(), *in_distribution(start_of(version), "engine", *arguments))


def windows_path(linux_path: str) -> str:
    """Where Windows' programs find a file of our distribution."""
    return rf"\\wsl.localhost\{DISTRIBUTION}" + linux_path.replace("/", "\\")


def decoded(output: bytes) -> str:
    """What `wsl.exe` printed: older ones know UTF-16 alone."""
    if b"\0" in output:
        return output.decode("utf-16-le", "replace").removeprefix("\ufeff")
    return output.decode("utf-8", "replace")


class Wsl:
    """Calls of `wsl.exe`.

    Args:
        command: Another program than Windows' own.
        say: Takes each line that a call prints, when it is printed.
        stopped: Whether the person wants to wait no longer; asked a few times a second.
        forwarded: Variables that commands in Linux get, such as those of a proxy.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        say: Callable[[str], None] = lambda line: None,
        stopped: Callable[[], bool] = lambda: False,
        forwarded: Sequence[str] = (),
    ) -> None:
        self._command = tuple(command or (program(),))
        self._say = say
        self._stopped = stopped
        self._forwarded = tuple(forwarded)

    def look(self) -> Look:
        """What there is; starts no distribution."""
        try:
            status = self.call("--status", limit_s=LOOK_LIMIT_S)
        except FileNotFoundError:
            return Look(Trouble.ABSENT, None)
        trouble = status.trouble
        if trouble is not None and trouble not in (Trouble.UNKNOWN, Trouble.NO_DISTRIBUTION):
            return Look(trouble, None)
        # Without any distribution both calls fail; a WSL that does not work fails in what follows.
        listing = self.call("--list", "--verbose", limit_s=LOOK_LIMIT_S)
        version = version_listed(listing.text)
        found = listing.trouble
        if found in (Trouble.ABSENT, Trouble.NEEDS_RESTART, Trouble.TIMED_OUT):
            return Look(found, None)
        return Look(Trouble.VERSION_1 if version == 1 else None, version)

    def install(self) -> tuple[str, ...]:
        """The command that turns WSL on. It needs an administrator's rights, so others run it."""
        return (*self._command, "--install", "--no-distribution")

    def update(self) -> tuple[str, ...]:
        """The command that brings the kernel. It asks for an administrator's rights by itself."""
        return (*self._command, "--update")

    def import_from(self, root_file_system: Path, folder: Path) -> None:
        """Make our distribution.

        Args:
            root_file_system: An archive that tar can read.
            folder: Where its disk will be.

        Raises:
            WslFailed: It could not be made.
        """
        self._must(
            self.call(
                *("--import", DISTRIBUTION, str(folder), str(root_file_system), "--version", "2"),
                limit_s=IMPORT_LIMIT_S,
            )
        )

    def to_version_2(self) -> None:
        """Change our distribution from WSL 1 to WSL 2.

        Raises:
            WslFailed: It could not be changed.
        """
        self._must(self.call("--set-version", DISTRIBUTION, "2", limit_s=IMPORT_LIMIT_S))

    def unregister(self) -> None:
        """Remove our distribution with all that is in it; fine when there is none.

        Raises:
            WslFailed: It is still there.
        """
        self.terminate()
        answer = self.call("--unregister", DISTRIBUTION)
        gone = answer.trouble in (None, Trouble.NO_DISTRIBUTION, Trouble.ABSENT)
        if not gone and version_listed(self.call("--list", "--verbose").text) is not None:
            self._must(answer)

    def terminate(self) -> None:
        """End our distribution and every process in it; fine when it does not run."""
        self.call("--terminate", DISTRIBUTION)

    def run(
        self,
        *command: str,
        user: str = USER,
        limit_s: float = CALL_LIMIT_S,
        input_file: Path | None = None,
        output_file: Path | None = None,
    ) -> Answer:
        """Run a command in our distribution.

        Args:
            command: What to run, without a shell.
            user: As whom.
            limit_s: How long it may take.
            input_file: What it reads; this way no path of Windows has to be translated.
            output_file: Where its output goes, instead of into the answer.
        """
        return self.call(
            *in_distribution(*command, user=user),
            limit_s=limit_s,
            input_file=input_file,
            output_file=output_file,
        )

    def call(
        self,
        *arguments: str,
        limit_s: float = CALL_LIMIT_S,
        input_file: Path | None = None,
        output_file: Path | None = None,
    ) -> Answer:
        """Call `wsl.exe` and wait.

        Raises:
            CallStopped: The person wants to wait no longer.
            FileNotFoundError: There is no `wsl.exe`.
            OSError: A file cannot be opened.
        """
        ended_by: list[Exception | None] = []
        ended = threading.Event()
        with (
            Path(input_file or os.devnull).open("rb") as source,
            Path(output_file or os.devnull).open("wb") as target,
            subprocess.Popen(
                [*self._command, *arguments],
                stdin=source,
                stdout=target if output_file else subprocess.PIPE,
                stderr=subprocess.PIPE if output_file else subprocess.STDOUT,
                env=environment(self._forwarded),
                creationflags=NO_WINDOW if os.name == "nt" else 0,
            ) as process,
        ):
            watch = threading.Thread(target=self._watch, args=(process, limit_s, ended, ended_by))
            watch.start()
            printed = b""
            lines = process.stderr if output_file else process.stdout
            assert lines is not None
            try:
                for line in lines:
                    printed += line
                    self._say(line.replace(b"\0", b"").decode("utf-8", "replace").rstrip())
                code = process.wait()
            finally:
                ended.set()
                watch.join()
        if ended_by:
            if ended_by[0] is not None:
                raise ended_by[0]
            code = OVER_LIMIT
        return Answer(code, decoded(printed))

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        limit_s: float,
        ended: threading.Event,
        ended_by: list[Exception | None],
    ) -> None:
        limit = time.monotonic() + limit_s
        while not ended.wait(_LOOK_EVERY_S):
            if time.monotonic() > limit or self._stopped():
                ended_by.append(CallStopped() if time.monotonic() <= limit else None)
                process.kill()
                return

    @staticmethod
    def _must(answer: Answer) -> None:
        if (trouble := answer.trouble) is not None:
            raise WslFailed(trouble, answer.text)


def version_listed(listing: str) -> int | None:
    """Under which version of WSL our distribution runs; None if `listing` does not have it."""
    for line in listing.splitlines():
        if (match := _LISTED.match(line)) and match["name"].lower() == DISTRIBUTION.lower():
            return int(match["version"])
    return None
