"""Archives that do not tell when, where and by whom they were made."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from installers.package.plan import Build


def plain_tar(build: Build, folder: Path, *, prefix: str = ".") -> bytes:
    """A tar archive of a folder: sorted, owned by root, every file as old as `build` says.

    Args:
        build: The run.
        folder: What to pack; modes are kept as 0755 or 0644.
        prefix: What its names begin with.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in [folder, *sorted(folder.rglob("*"), key=lambda path: path.as_posix())]:
            name = f"{prefix}/{path.relative_to(folder).as_posix()}".removesuffix("/.")
            entry = archive.gettarinfo(str(path), arcname=name or ".")
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = build.epoch_s
            if entry.issym():
                entry.mode = 0o777
                archive.addfile(entry)
                continue
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            if entry.isdir():
                archive.addfile(entry)
                continue
            entry.type = tarfile.REGTYPE  # a hard link would name a file by another's place
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return buffer.getvalue()


def gzipped(build: Build, content: bytes, *, best: bool = False) -> bytes:
    """Compressed with gzip, without a name or a time of its own."""
    level = 9 if best or not build.is_fast else 1
    return gzip.compress(content, compresslevel=level, mtime=0)


def compressed(build: Build, content: bytes) -> tuple[bytes, str]:
    """Compressed as well as dpkg can read it, or quickly; and the ending of its name."""
    if build.is_fast:
        return gzipped(build, content), ".gz"
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 9}]
    return lzma.compress(content, check=lzma.CHECK_CRC64, filters=filters), ".xz"


def settled_zip(build: Build, archive: Path) -> None:
    """Write a ZIP archive again: its members sorted, of one age and one mode."""
    moment = time.gmtime(build.epoch_s)[:6]
    with zipfile.ZipFile(archive) as source:
        members = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, date_time=moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix
            entry.external_attr = 0o100644 << 16
            target.writestr(entry, members[name])


def ar(build: Build, members: Sequence[tuple[str, bytes]]) -> bytes:
    """An archive of Unix' oldest kind, in which a .deb keeps its parts."""
    parts = [b"!<arch>\n"]
    for name, content in members:
        head = f"{name:<16}{build.epoch_s:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        parts += [head.encode("ascii"), content, b"\n" * (len(content) % 2)]
    return b"".join(parts)
