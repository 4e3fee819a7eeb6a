"""`python -m app [--engine-command COMMAND] [INVITE] [-- ARGUMENTS OF THE ENGINE]`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from app.needs import what_is_missing
from engine.localapi.running import Home

LONGEST_INVITE = 8192


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the tray. Returns the exit code: 0 done, 1 failed, 2 usage."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    own, for_engine = given, []
    if "--" in given:
        split = given.index("--")
        own, for_engine = given[:split], given[split + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m app",
        description="Shoal's tray icon and windows. What follows -- is handed to the engine.",
    )
    parser.add_argument(
        "--engine-command",
        metavar="COMMAND",
        help="how to start an engine (default: this Python with `-m engine engine`)",
    )
    parser.add_argument(
        "invite", nargs="?", metavar="INVITE", help="shoal://… or a .shoal file: offer to join"
    )
    options = parser.parse_args(own)
    invite = "" if options.invite is None else read_invite(options.invite)
    if invite is None:
        return _fail(
            f"{options.invite[:200]} is neither an invite (shoal://…) nor a .shoal file.", 2
        )
    if problem := what_is_missing():
        return _fail(problem)
    from app.application import run  # imports Qt, whose absence was to be told first
    from app.engine_start import engine_start
    from app.language import TranslationsDamaged

    home = Home.from_environment()
    command = shlex.split(options.engine_command) if options.engine_command else None
    try:
        return run(home, engine_start(home, command, for_engine), invite)
    except TimeoutError:
        return _fail("Another Shoal runs but does not answer; end it, then start Shoal again.")
    except TranslationsDamaged as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(
            f"Shoal cannot write to {home.state_dir} ({error.strerror}); "
            "free space or correct the folder's rights."
        )


def read_invite(text_or_file: str) -> str | None:
    """The invite itself; None if it is none."""
    text = text_or_file.strip()
    if not text.startswith("shoal://"):
        try:
            with _path(text_or_file).open("rb") as file:
                text = file.read(LONGEST_INVITE).decode().strip()
        except (OSError, UnicodeDecodeError, ValueError):
            return None
    is_one_line = len(text.split()) == 1 and len(text) <= LONGEST_INVITE
    return text if text.startswith("shoal://") and is_one_line else None


def _path(text: str) -> Path:
    """Of a file; desktops may name it as a URL."""
    if text.startswith("file://"):
        return Path(url2pathname(urlsplit(text).path))
    return Path(text)


def _fail(problem: str, code: int = 1) -> int:
    if sys.stderr is not None:
        sys.stderr.write(f"shoal: {problem}\n")
    elif sys.platform == "win32":  # started without a console, from the start menu
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, problem, "Shoal", 0x30)  # MB_ICONWARNING
    return code


if __name__ == "__main__":
    sys.exit(main())
