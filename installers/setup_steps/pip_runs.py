"""Running pip: its chatter goes to a log, a person sees progress, and failures get one sentence."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from installers.setup_steps.proxies import UNREACHABLE, proxy_in_use, why
from installers.setup_steps.report import Report, SetupFailed

_DOWNLOADING = re.compile(r"\s*Downloading (?:\S*/)?([\w.]+?)-\d\S* \(([\d.]+ [kMG]B)\)")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_KEPT_LINES = 400
_PROBE_LIMIT_S = 5.0

# What pip's output shows → why it failed, what to do. The first that fits counts: a missing
# network, for one, also makes pip say that no version of a package exists.
_CAUSES = (
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free some space and run the same command again",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|SSLError",
        "the package index could not prove who it is",
        "check the clock and the proxy of this machine and run the same command again",
    ),
    (
        r"DO NOT MATCH THE HASHES",
        "a file is not the one that this version of Shoal was tested with",
        "get the newest version and run the same command again",
    ),
    (
        r"NewConnectionError|NameResolutionError|Failed to resolve|ConnectTimeout|ReadTimeout"
        r"|Connection (?:refused|reset|aborted|to \S+ timed out)|timed out|ProxyError"
        r"|Network is unreachable|IncompleteRead|ProtocolError|download incomplete",
        UNREACHABLE,
        "check the internet connection (and the proxy, if there is one) and run the same command "
        "again; what was downloaded is kept",
    ),
    (
        r"Read-only file system|Permission denied",
        "a folder cannot be written to",
        "move Shoal to a folder of yours and run the same command again",
    ),
)


def run_pip(
    python: Path, arguments: Sequence[str], *, purpose: str, log: Path, report: Report
) -> None:
    """Run pip of the environment that `python` belongs to.

    Args:
        python: The environment's interpreter.
        arguments: pip's own, subcommand first.
        purpose: What for, as the middle of a sentence: `install Shoal`.
        log: Where pip appends everything it has to say.
        report: Where a person sees how far it is.

    Raises:
        SetupFailed: pip failed.
    """
    scratch = log.parent / "tmp"  # /tmp is often small and kept in memory
    scratch.mkdir(exist_ok=True)
    log_begin = log.stat().st_size if log.exists() else 0
    options = ("--no-input", "--disable-pip-version-check", "--log", str(log))
    process = subprocess.Popen(
        [str(python), "-I", "-m", "pip", *options, *arguments],
        env={**os.environ, "TMPDIR": str(scratch), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        close_fds=False,  # the lock on the checkout goes along
    )
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    with process:
        assert process.stdout is not None
        try:
            _follow(process.stdout, lines, report)
        except BaseException:  # a person's Ctrl-C, or whoever listened has gone: leave nothing
            process.terminate()
            process.wait()
            raise
    if process.returncode:
        # What pip's own children said is in the log alone.
        details = log.read_bytes()[log_begin:].decode(errors="replace") if log.exists() else ""
        said = "".join(lines) + details
        raise SetupFailed(explain(said, purpose=purpose, log=log, proxy=proxy_in_use()))


def _follow(output: Iterable[str], lines: deque[str], report: Report) -> None:
    """Show how far pip is, and keep in `lines` what else it says."""
    current = ""
    for line in output:
        if match := _PROGRESS.match(line):
            done, total = int(match[1]), int(match[2])
            if total:
                report.progress(f"  {current}: {100 * done // total} %", done / total)
            continue
        lines.append(line)
        if match := _DOWNLOADING.match(line):
            current = f"downloading {match[1]}, {match[2]}"
            report.progress(f"  {current}")
        elif line.startswith("Installing collected packages"):
            report.progress("  unpacking")


def explain(output: str, *, purpose: str, log: Path, proxy: str = "") -> str:
    """Turn pip's output into one sentence: what happened, why, and what to do."""
    for pattern, cause, what_to_do in _CAUSES:
        if re.search(pattern, output):
            reason = why(cause, proxy)
            return f"Setup could not {purpose}, because {reason}; {what_to_do} (details in {log})."
    if match := re.search(r"No matching distribution found for (\S+)", output):
        return (
            f"Setup could not {purpose}, because no build of {match[1]} fits this machine "
            f"(Python {platform.python_version()}, {platform.system()} {platform.machine()}); "
            f"try another Python from 3.11 on (details in {log})."
        )
    errors = re.findall(r"^ERROR: (.+?)\.?$", output, re.MULTILINE)
    reason = f"pip said “{errors[-1]}”" if errors else "pip ended without saying why"
    return f"Setup could not {purpose}, because {reason}; look into {log} and run it again."


def has_own_index(python: Path) -> bool:
    """Whether the person has told pip where packages come from; then we do not know better."""
    listing = subprocess.run(
        [python, "-I", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    own = {"index-url", "extra-index-url", "find-links", "no-index"}
    return any(line.partition("=")[0].rpartition(".")[2] in own for line in listing.splitlines())


def is_reachable(url: str, python: Path) -> bool:
    """Whether a web address answers within a few seconds, asked with the environment's Python."""
    ask = (
        "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], method='HEAD'), timeout="
    )
    done = subprocess.run(
        [python, "-I", "-c", f"{ask}{_PROBE_LIMIT_S})", url], capture_output=True, check=False
    )
    return done.returncode == 0
