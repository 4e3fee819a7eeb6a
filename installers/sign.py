"""For those who publish Shoal: keys, and the signed list that tells every installation of a new version.

    .venv/bin/python installers/sign.py keys KEY.pem --url https://…/shoal.json
    .venv/bin/python installers/sign.py list KEY.pem dist/shoal.json dist/*.deb dist/*.run dist/*.exe

`keys` makes a key pair once: the private half into KEY.pem, which stays with you, the public half and
the list's address into `engine/updates/channel.json`, which goes into every build. `list` describes and
signs the packages of this version; to publish, put the packages beside the list, then the list itself
at its address. Sign again before it expires, also when there is nothing new.
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine import __version__
from engine.core.clock import SystemClock
from engine.core.protocol_window import OURS
from engine.updates.channel import CHANNEL_FILE
from engine.updates.manifest import Manifest, PackageFile, opened, public_text, sign

KINDS = {".deb": "deb", ".run": "run", ".exe": "setup"}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
DAYS = 90
_SCRIPT_BYTES = 65536


def main(arguments: list[str] | None = None) -> int:
    """Obey the command line; returns the exit status (0 done, 1 failed, 2 usage)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    keys = actions.add_parser("keys", help="make a key pair")
    keys.add_argument("key", type=Path)
    keys.add_argument("--url", required=True, help="where the list will lie")
    keys.add_argument("--channel", type=Path, default=CHANNEL_FILE)
    keys.add_argument("--keep", action="store_true", help="go on believing the keys there were")
    keys.set_defaults(run=_make_keys)
    lists = actions.add_parser("list", help="describe and sign the packages of this version")
    lists.add_argument("key", type=Path)
    lists.add_argument("to", type=Path)
    lists.add_argument("packages", type=Path, nargs="+", help="*.deb, *.run, *.exe")
    lists.add_argument("--version", default=__version__)
    lists.add_argument(
        "--base-url", default="", help="where packages lie (default: beside the list)"
    )
    lists.add_argument("--days", type=float, default=DAYS, help="until it must be signed again")
    lists.add_argument("--summary", default="", help="what a person gains, a sentence or two")
    lists.add_argument("--page", default="", help="https address with more")
    lists.set_defaults(run=_sign_list)
    for action in (keys, lists):
        action.add_argument("--no-passphrase", action="store_true", help="the key has none")
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (OSError, ValueError) as error:
        print(f"sign.py: {error}", file=sys.stderr)
        return 1
    return 0


def _make_keys(options: argparse.Namespace) -> None:
    key, secret = Ed25519PrivateKey.generate(), _passphrase(options, "Passphrase for the new key: ")
    locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if secret is not None:
        locked = serialization.BestAvailableEncryption(secret)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    with os.fdopen(os.open(options.key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    old = json.loads(options.channel.read_text("utf-8"))["keys"] if options.keep else []
    content = {"url": options.url, "keys": [public_text(key.public_key()), *old]}
    options.channel.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    print(f"{options.key}: keep it, and a copy of it, where nobody else can read it")
    print(f"{options.channel}: commit it, it goes into every build")


def _sign_list(options: argparse.Namespace) -> None:
    secret = _passphrase(options, f"Passphrase of {options.key}: ")
    key = serialization.load_pem_private_key(options.key.read_bytes(), secret)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{options.key} is no Ed25519 key")
    now_s = SystemClock().unix_s()
    manifest = Manifest(
        version=options.version,
        signed_unix_s=now_s,
        expires_unix_s=now_s + options.days * 86400,
        protocol=OURS.newest,
        oldest_protocol=OURS.oldest,
        summary=options.summary,
        page=options.page,
        files=tuple(_described(path, options) for path in options.packages),
    )
    data = sign(manifest, key)
    opened(data, [public_text(key.public_key())], str(options.to))
    options.to.write_bytes(data)
    for file in manifest.files:
        print(f"{file.sha256}  {file.url}  ({file.kind}, {file.machine}, {file.size_bytes} bytes)")
    print(f"{options.to}: Shoal {options.version}, to be signed again within {options.days:g} days")


def _described(path: Path, options: argparse.Namespace) -> PackageFile:
    words = re.split(r"[-_.]", path.name.replace("x86_64", "amd64"))
    machine = next((MACHINES[word] for word in words if word in MACHINES), "x86_64")
    if path.suffix not in KINDS:
        raise ValueError(f"{path} is none of {', '.join(KINDS)}")
    if options.version not in path.name:
        raise ValueError(f"{path} is not of version {options.version} by its name")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return PackageFile(
        kind=KINDS[path.suffix],
        machine=machine,
        url=f"{options.base_url.rstrip('/')}/{path.name}" if options.base_url else path.name,
        size_bytes=path.stat().st_size,
        sha256=digest,
        installed_bytes=_installed_bytes(path),
    )


def _installed_bytes(path: Path) -> int:
    """What a package takes on the disk once it is installed, as it says itself; 0 where none does.

    Raises:
        ValueError: There is no program here that reads the package.
    """
    if path.suffix == ".deb":
        command = ["dpkg-deb", "--field", str(path), "Installed-Size"]
        try:
            asked = subprocess.run(command, capture_output=True, text=True, check=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise ValueError(
                f"dpkg-deb cannot say what {path} takes installed ({error})"
            ) from error
        return int(asked.stdout) * 1024
    with path.open("rb") as file:  # what makeself packs begins with a script
        found = re.search(rb"Uncompressed size: (\d+) KB", file.read(_SCRIPT_BYTES))
    return int(found[1]) * 1024 if found and path.suffix == ".run" else 0


def _passphrase(options: argparse.Namespace, question: str) -> bytes | None:
    return None if options.no_passphrase else getpass.getpass(question).encode() or None


if __name__ == "__main__":
    sys.exit(main())
