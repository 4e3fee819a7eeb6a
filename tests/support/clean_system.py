"""A minimal Debian of its own, as a person's new computer is, with a desktop to show windows on.

Everything that is mounted into it is mounted for one command only, in a namespace that ends with it:
whatever kills a test, nothing of this machine is ever inside the folder that is removed afterwards.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest

PROGRAMS = ("mmdebstrap", "dpkg-deb", "unshare", "chroot", "apt-get")
MIRROR = "http://deb.debian.org/debian"
PERSON, PERSONS_HOME = "zoe", "/home/Zoë Fisch"
_LIMIT_S = 420.0
_NETWORK_LOST = re.compile(
    r"Temporary failure (?:resolving|in name resolution)|Could not (?:resolve|connect)|Unable to connect"
    r"|Connection (?:failed|refused|reset|timed out)|Network is unreachable|dns error"
    r"|error sending request|Failed to establish a new connection"
)
"""How apt, uv and pip say that there is no way to where they fetch from."""
_HANDED_ON = (
    "PIP_",
    "UV_",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
)


def require_clean_systems() -> None:
    """Skip where no Debian can be unpacked."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"needs root on Debian with {', '.join(missing or PROGRAMS)}")
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("this machine lets nobody mount")


def skip_if_the_network_is_lost(said: str) -> None:
    """Skip with the line that tells it: what cannot be fetched says nothing about our packages.

    Args:
        said: What a program that failed had to say.
    """
    for line in said.splitlines():
        if _NETWORK_LOST.search(line):
            pytest.skip(f"the network is lost: {line.strip()}")


@functools.cache
def package_folders() -> list[Path]:
    """Folders of this machine in which its pip looks for packages, as it is told by its settings."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    found = set()
    for line in asked.stdout.splitlines():
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key not in ("find-links", "index-url", "extra-index-url"):
            continue
        for word in str(ast.literal_eval(value)).split():
            folder = Path(unquote(word.removeprefix("file://")))
            if key != "find-links":
                folder = folder.parent  # an index names files beside it
            if folder.is_absolute() and folder.is_dir() and folder != Path("/"):
                found.add(folder)
    return sorted(found)


@dataclass
class CleanSystem:
    """A Debian in a folder, and a person who uses it."""

    folder: Path
    shared: Mapping[str, Path] = field(default_factory=dict)
    """Folders of this machine that it sees, by their place in there."""

    @classmethod
    def unpack(cls, folder: Path, release: str, shared: Mapping[str, Path]) -> CleanSystem:
        """Install the smallest Debian there is."""
        # The lists of packages stay, so that they need not be fetched twice.
        options = ["--variant=minbase", "--mode=root", "--skip=cleanup/apt/lists"]
        done = subprocess.run(
            ["mmdebstrap", *options, release, str(folder), MIRROR],
            capture_output=True, text=True, timeout=_LIMIT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            skip_if_the_network_is_lost(done.stdout + done.stderr)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        system = cls(folder, shared)
        shutil.copy("/etc/resolv.conf", folder / "etc" / "resolv.conf")
        if Path("/etc/pip.conf").exists():
            shutil.copy("/etc/pip.conf", folder / "etc" / "pip.conf")
        # What a power cut would lose is of no use here.
        (folder / "etc/dpkg/dpkg.cfg.d/quick").write_text("force-unsafe-io\n")
        home = ["--create-home", "--home-dir", PERSONS_HOME, "--shell", "/bin/sh"]
        system.root("useradd", *home, PERSON)
        return system

    def root(self, *command: str) -> str:
        """Run something as the administrator; returns what it said."""
        done = subprocess.run(
            self._command(command, as_root=True), capture_output=True, text=True, timeout=_LIMIT_S,
            env=self._environment({"DEBIAN_FRONTEND": "noninteractive"}), check=False,
        )  # fmt: skip
        if done.returncode and command[0] == "apt-get":
            skip_if_the_network_is_lost(done.stdout + done.stderr)
        assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def person(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run something as the person."""
        return subprocess.run(
            self._command(command, as_root=False), capture_output=True, text=True,
            timeout=_LIMIT_S, env=self._environment(more), check=False,
        )  # fmt: skip

    def start(self, *command: str, log: Path, **more: str) -> subprocess.Popen[bytes]:
        """Start something as the person."""
        with log.open("ab") as output:
            return subprocess.Popen(
                self._command(command, as_root=False), env=self._environment(more),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def files(self) -> set[str]:
        """Every path that is in there."""
        found = set()
        for folder, folders, names in os.walk(self.folder):
            inside = folder.removeprefix(str(self.folder))
            found |= {f"{inside}/{name}" for name in (*folders, *names)}
        return found

    def _command(self, command: Sequence[str], *, as_root: bool) -> list[str]:
        mounts = ["mount -t proc proc proc", "mount --rbind /dev dev"]
        bundle = (
            "etc/ssl/certs/ca-certificates.crt"  # a company's, or a test machine's, certificates
        )
        mounts.append(f"if [ -e {bundle} ]; then mount --bind /{bundle} {bundle}; fi")
        places = {**self.shared, **{str(folder): folder for folder in package_folders()}}
        for place, path in places.items():
            inside = shlex.quote(place.lstrip("/"))
            mounts.append(f"mkdir -p {inside} && mount --bind {shlex.quote(str(path))} {inside}")
        who = [] if as_root else [f"--userspec={PERSON}:{PERSON}"]
        enter = shlex.join(["chroot", *who, ".", "/bin/sh", "-c", 'cd "$HOME"; exec "$@"', "sh"])
        script = (
            f'set -e; cd {shlex.quote(str(self.folder))}; {"; ".join(mounts)}; exec {enter} "$@"'
        )
        return ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", *command]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        handed_on = {
            name: value for name, value in os.environ.items() if name.startswith(_HANDED_ON)
        }
        home = "/root" if "DEBIAN_FRONTEND" in more else PERSONS_HOME
        return (
            handed_on
            | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LC_ALL": "C.UTF-8"}
            | dict(more)
        )
