"""What a repository on the Hugging Face Hub holds, asked of it, noted, or seen in its cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name

from engine.core.errors import ModelNotFound, ModelUnavailable
from engine.core.whole_file import write_whole
from engine.models.storage import sha256_of_file
from engine.models.way_out import through_proxy

_log = logging.getLogger(__name__)

_LISTING_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository."""

    size_bytes: int
    sha256: str | None = None
    """Of large files."""
    git_sha1: str | None = None
    """Of small files, which git holds itself."""

    def is_content(self, path: Path) -> bool:
        """Whether the file at `path` has this content; True when we do not know its hash."""
        if self.sha256 is not None:
            return sha256_of_file(path) == self.sha256
        if self.git_sha1 is not None:
            content = path.read_bytes()
            named = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
            return named.hexdigest() == self.git_sha1
        return True


@dataclass(frozen=True, slots=True)
class Listing:
    """One commit of a repository."""

    repo: str
    commit: str
    files: dict[str, RemoteFile]


def find_listing(source: str, models_dir: Path) -> Listing:
    """Ask the Hub; without it, take what it said before, or what its cache holds.

    Raises:
        ModelNotFound: No such model, or no access to it.
        ModelUnavailable: The Hub cannot be reached, and nothing is known of the model.
    """
    try:
        with hub_errors(source):
            listing = _ask_hub(source)
    except ModelUnavailable as error:
        noted = noted_listing(source, models_dir)
        ref = storage(source) / "refs" / "main"
        if noted is None and not ref.is_file():
            raise ModelUnavailable(f"{error} The model is not in the cache either.") from error
        _log.warning("%s Going on with the cached files of %s.", error, source)
        return noted or cached_listing(source, ref.read_text(encoding="utf-8").strip())
    note = {
        "commit": listing.commit,
        "files": {
            name: [file.size_bytes, file.sha256, file.git_sha1]
            for name, file in listing.files.items()
        },
    }
    write_whole(_note_file(source, models_dir), json.dumps(note).encode())
    return listing


def _ask_hub(source: str) -> Listing:
    try:
        info = HfApi().model_info(source, files_metadata=True, timeout=_LISTING_TIMEOUT_S)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelUnavailable(
            f"What answers at {constants.ENDPOINT} is no Hub ({error}); check HF_ENDPOINT and the "
            "network."
        ) from error
    if info.sha is None or not re.fullmatch(r"[0-9a-f]{40}", info.sha):
        raise ModelUnavailable(f"The Hub at {constants.ENDPOINT} does not say what {source} holds.")
    files = {
        file.rfilename: RemoteFile(file.size or 0, file.lfs.sha256)
        if file.lfs
        else RemoteFile(file.size or 0, git_sha1=file.blob_id)
        for file in info.siblings or ()
    }
    return Listing(source, info.sha, files)


def noted_listing(source: str, models_dir: Path) -> Listing | None:
    """What the Hub said last of the model."""
    try:
        note = json.loads(_note_file(source, models_dir).read_bytes())
        files = {name: RemoteFile(*entry) for name, entry in note["files"].items()}
        return Listing(source, str(note["commit"]), files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def cached_listing(source: str, commit: str) -> Listing:
    """What the Hub's cache holds of a commit; its blobs are named by their hashes."""
    directory = storage(source) / "snapshots" / commit
    files = {}
    for path in directory.iterdir() if directory.is_dir() else ():
        if path.is_file():
            blob = path.resolve().name
            files[path.name] = RemoteFile(
                path.stat().st_size,
                sha256=blob if re.fullmatch(r"[0-9a-f]{64}", blob) else None,
                git_sha1=blob if re.fullmatch(r"[0-9a-f]{40}", blob) else None,
            )
    return Listing(source, commit, files)


def storage(source: str) -> Path:
    """The repository's folder in the Hub's cache: `blobs`, `refs`, `snapshots`."""
    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=source, repo_type="model")


def _note_file(source: str, models_dir: Path) -> Path:
    return models_dir / "hub" / f"{repo_folder_name(repo_id=source, repo_type='model')}.json"


@contextlib.contextmanager
def hub_errors(source: str) -> Iterator[None]:
    """Translate what the Hub's client raises into sentences for a person."""
    hub = constants.ENDPOINT
    try:
        yield
    except GatedRepoError as error:
        raise ModelNotFound(
            f"{source} is only for people who accepted its terms: do so at {hub}/{source}, then "
            "log in with `hf auth login`."
        ) from error
    except RepositoryNotFoundError as error:
        raise ModelNotFound(
            f"There is no model {source} at {hub}, or it is private; check the name, or log in "
            "with `hf auth login`."
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise ModelNotFound(
                f"The Hub refuses access to {source} ({status}); log in again with `hf auth login`."
            ) from error
        if status == 404:
            raise ModelNotFound(f"The Hub has no such file of {source}; try again.") from error
        raise ModelUnavailable(
            f"The Hub at {hub} answers with error {status}; try again later."
        ) from error
    except OfflineModeIsEnabled as error:
        raise ModelUnavailable(
            "The Hub is switched off by HF_HUB_OFFLINE; unset it to fetch models."
        ) from error
    except (httpx2.HTTPError, LocalEntryNotFoundError, FileMetadataError) as error:
        cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
        raise ModelUnavailable(
            f"The Hub at {hub} cannot be reached{through_proxy(hub)} ({cause or error}); check the "
            "network, or model.proxy in the settings."
        ) from error
