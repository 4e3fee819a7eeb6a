"""Running uv: its chatter goes to a log, a person sees progress, and failures get one sentence."""

from __future__ import annotations

import configparser
import contextlib
import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from installers.setup_steps.proxies import UNREACHABLE, proxy_in_use, why
from installers.setup_steps.report import Report, SetupFailed

_DOWNLOADING = re.compile(r"\s*Downloading (\S+) \(([\d.]+\s?[KMG]iB)\)")
_DONE = re.compile(r"\s*Downloaded (\S+)")
_KEPT_LINES = 400
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")

# What uv's output shows → why it failed, what to do. The first that fits counts.
_CAUSES = (
    (
        r"No space left on device|Disk quota exceeded|os error (?:28|122)\b",
        "the disk is full",
        "free some space and start it again; what was downloaded is kept",
    ),
    (
        r"invalid peer certificate|certificate verify failed|UnknownIssuer",
        "the package index could not prove who it is",
        "check the clock and the proxy of this machine and start it again",
    ),
    (
        r"[Hh]ash mismatch",
        "a file from the package index is not the one that was tested",
        "start it again, and if that does not help, report it",
    ),
    (
        r"No interpreter found|no interpreter|No Python",
        "there is no Python that it can use",
        "install Python 3.11 or newer (`python3`) and start it again",
    ),
    (
        r"dns error|[Cc]onnect|timed? ?out|error sending request|network|[Pp]roxy|broken pipe"
        r"|unexpected EOF|end of file|error decoding response body|HTTP status",
        UNREACHABLE,
        "check the internet connection (and the proxy, if there is one) and start it again; "
        "what was downloaded is kept",
    ),
    (
        r"Read-only file system|Permission denied|os error (?:13|30)\b",
        "a folder cannot be written to",
        "correct its rights and start it again",
    ),
)


def run_uv(
    uv: Path, arguments: Sequence[str], *, purpose: str, log: Path, cache: Path, report: Report
) -> None:
    """Run uv, which ends with us.

    Args:
        uv: The program.
        arguments: Its own, subcommand first.
        purpose: What for, as the middle of a sentence: `install Shoal`.
        log: Where everything it says is appended.
        cache: Where it keeps what it has downloaded.
        report: Where a person sees how far it is.

    Raises:
        SetupFailed: uv failed.
    """
    lines: deque[str] = deque(maxlen=_KEPT_LINES)
    under_way: dict[str, str] = {}
    begun = done = 0
    with (
        log.open("a", encoding="utf-8") as kept,
        subprocess.Popen(
            [str(uv), "--color", "never", *arguments],
            env=own_variables(os.environ, cache),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            close_fds=False,  # the lock on the folder goes along
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                kept.write(line)
                lines.append(line)
                if match := _DOWNLOADING.match(line):
                    under_way[match[1]] = match[2]
                    begun += 1
                elif (match := _DONE.match(line)) and under_way.pop(match[1], None):
                    done += 1
                else:
                    continue
                what = f"downloading {next(iter(under_way))}" if under_way else "unpacking"
                more = f" and {len(under_way) - 1} more" if len(under_way) > 1 else ""
                report.progress(f"  {what}{more}", done / begun)
        except BaseException:  # a person's Ctrl-C, or whoever listened has gone: leave nothing
            process.send_signal(signal.SIGTERM)
            raise
    if process.returncode:
        said, proxy = "".join(lines), proxy_in_use()
        raise SetupFailed(explain(said, purpose=purpose, log=log, proxy=proxy))


def explain(output: str, *, purpose: str, log: Path, proxy: str = "") -> str:
    """Turn uv's output into one sentence: what happened, why, and what to do."""
    for pattern, cause, what_to_do in _CAUSES:
        if re.search(pattern, output):
            reason = why(cause, proxy)
            return f"Setup could not {purpose}, because {reason}; {what_to_do} (details in {log})."
    said = [line.strip() for line in output.splitlines() if line.strip()]
    reason = f"uv said “{said[-1].rstrip('.')}”" if said else "uv ended without saying why"
    return f"Setup could not {purpose}, because {reason}; look into {log} and start it again."


def own_variables(environment: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Variables for uv: what a person has told pip about index and certificates holds for it, too.

    Args:
        environment: The process's.
        cache: Where uv keeps what it has downloaded; a Python that it must fetch lies beside that, so
            that it goes with everything else.
    """
    variables = dict(environment)
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX"):
        variables.pop(name, None)
    variables |= {
        "UV_CACHE_DIR": str(cache),
        "UV_PYTHON_INSTALL_DIR": str(cache.parent / "python"),
        "UV_NO_PROGRESS": "0",
    }
    variables.setdefault("UV_HTTP_RETRIES", "10")
    variables.setdefault("UV_HTTP_TIMEOUT", "60")
    # Every file is checked against the list, so it does not matter which index has it.
    variables.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    told = _pip_settings(environment)
    for ours, theirs in (
        ("UV_DEFAULT_INDEX", "index-url"),
        ("UV_INDEX", "extra-index-url"),
        ("UV_FIND_LINKS", "find-links"),
        ("SSL_CERT_FILE", "cert"),
    ):
        if told.get(theirs) and ours not in variables:
            variables[ours] = " ".join(told[theirs].split())
    if "UV_FIND_LINKS" in variables:
        variables["UV_FIND_LINKS"] = variables["UV_FIND_LINKS"].replace(" ", ",")
    # A company's certificates are in the system's store; without one, uv brings its own.
    if any(Path(bundle).exists() for bundle in _BUNDLES):
        variables.setdefault("UV_SYSTEM_CERTS", "1")
    return variables


def _pip_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What pip is told: by its files, the more particular last, and by its variables."""
    home = environment.get("HOME", "/")
    config = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    files = ["/etc/pip.conf", f"{home}/.pip/pip.conf", f"{config}/pip/pip.conf"]
    if named := environment.get("PIP_CONFIG_FILE"):
        files = [] if named == os.devnull else [*files, named]
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    # pip itself, which is started later, says what is wrong with a file.
    with contextlib.suppress(configparser.Error, UnicodeDecodeError):
        parser.read(files, encoding="utf-8")
    settings = dict(parser["global"]) if parser.has_section("global") else {}
    for name in ("index-url", "extra-index-url", "find-links", "cert"):
        if value := environment.get("PIP_" + name.upper().replace("-", "_")):
            settings[name] = value
    return settings
