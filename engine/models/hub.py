"""Models on the Hugging Face Hub, kept in the Hub's own cache, which other programs share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import constants, hf_hub_download, hf_hub_url
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import (  # type: ignore[attr-defined] # public, but not in __all__
    build_hf_headers,
    validate_repo_id,
)

from engine.core.errors import ModelCorrupt, ModelError, ModelNotFound, ModelUnavailable
from engine.core.plans import Span
from engine.core.sentences import Sentence
from engine.localapi.schema import Progress
from engine.models.download import download, part_bytes
from engine.models.hub_client import take_turns
from engine.models.hub_listing import (
    Listing,
    RemoteFile,
    cached_listing,
    find_listing,
    hub_errors,
    noted_listing,
    storage,
)
from engine.models.kept import kept_bytes
from engine.models.layout import (
    CONFIG,
    HASHES,
    SMALL_FILES,
    TOKENIZER,
    WEIGHTS,
    WEIGHTS_INDEX,
    ModelFiles,
    check_family,
    content_hash,
    read_spec,
    weight_files,
)
from engine.models.storage import (
    NO_LIMITS,
    FetchLimits,
    HashCache,
    check_safetensors,
    locked,
    require_free,
    writing,
)

_log = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]


def resolve_hub(
    source: str, models_dir: Path, on_progress: OnProgress, limits: FetchLimits = NO_LIMITS
) -> ModelFiles:
    """Find a repository and fetch its small files; its identity needs none of the weights.

    Without a network, what an earlier call noted, or what the Hub's cache holds, is used.

    Raises:
        ModelNotFound: No such model, or no access to it.
        ModelUnavailable: The Hub cannot be reached, and the cache does not have enough.
        ModelError: A family or a format that we do not read.
        ModelCorrupt: The repository or the cache makes no sense.
    """
    try:
        validate_repo_id(source)
    except HFValidationError as error:
        raise ModelNotFound(
            f"{source!r} is neither a folder here nor a model's name on the Hub (owner/name)."
        ) from error
    on_progress(Progress.of(Sentence("Looking up {model}", model=source), 0, 0))
    take_turns(limits.take)
    with writing(Path(constants.HF_HUB_CACHE)), writing(models_dir):
        listing = find_listing(source, models_dir)
        _check_formats(listing)
        directory = storage(source) / "snapshots" / listing.commit
        for name in SMALL_FILES:
            if name in listing.files:
                _fetch_small_file(listing, name)
        check_family(directory)
        hashes = _hashes(listing, directory, HashCache(models_dir / HASHES))
    spec = read_spec(directory, f"{source}@{content_hash(hashes)}")
    return ModelFiles(spec, directory, source, listing.commit)


def fetch_hub_weights(
    files: ModelFiles,
    span: Span,
    models_dir: Path,
    on_progress: OnProgress,
    *,
    verify: bool = False,
    limits: FetchLimits = NO_LIMITS,
) -> None:
    """See that the shards with the span's tensors are in the Hub's cache, whole and right.

    A file is hashed when it has not been before, or has changed, or `verify` asks for it. One that
    is wrong steps aside and is fetched once more.

    Raises:
        ModelUnavailable: A file must be fetched, and the Hub cannot be reached.
        ModelCorrupt: A file stays wrong.
        DiskFull: There is no room.
    """
    listing = noted_listing(files.source, models_dir)
    if listing is None or listing.commit != files.revision:
        listing = cached_listing(files.source, files.revision or "")
    take_turns(limits.take)
    hash_cache = HashCache(models_dir / HASHES)
    wanted = weight_files(files.directory, span)
    with writing(Path(constants.HF_HUB_CACHE)), writing(models_dir):
        needed = []
        for name in wanted:
            path, file = files.directory / name, listing.files.get(name)
            if not path.exists() or not _is_right(path, file, hash_cache, on_progress, verify):
                needed.append((name, _known(file, name, files.source)))
        blobs = storage(files.source) / "blobs"
        total_bytes = sum(file.size_bytes for _, file in needed)
        here_bytes = sum(part_bytes(blobs / (file.sha256 or "")) for _, file in needed)
        cache = Path(constants.HF_HUB_CACHE)
        require_free(cache, total_bytes - here_bytes, limits, kept_bytes(models_dir))
        before_bytes = 0
        for name, file in needed:

            def on_bytes(count: int, before: int = before_bytes) -> None:
                done = before + count
                what = Sentence("Downloading {model}", model=files.source)
                on_progress(Progress.of(what, done, total_bytes, "bytes"))

            if file.sha256 is not None:
                with locked(models_dir / "hub" / f"{file.sha256}.lock"):
                    _fetch_blob(listing, name, file, hash_cache, on_bytes)
            with hub_errors(files.source):
                # Links the blob that is there now into the commit's directory.
                hf_hub_download(files.source, name, revision=listing.commit)
            before_bytes += file.size_bytes
    for name in wanted:
        check_safetensors(files.directory / name)


def _check_formats(listing: Listing) -> None:
    if CONFIG not in listing.files:
        raise ModelNotFound(f"{listing.repo} is not a model for transformers: no {CONFIG}.")
    if WEIGHTS not in listing.files and WEIGHTS_INDEX not in listing.files:
        raise ModelError(
            f"{listing.repo} has no weights as safetensors ({WEIGHTS}); other formats can run "
            "code or need converting, so choose another model."
        )
    if TOKENIZER not in listing.files:
        raise ModelError(f"{listing.repo} has no {TOKENIZER}, so it cannot be run; choose another.")


def _fetch_small_file(listing: Listing, name: str) -> None:
    """Fetch a file whole, unless it is there and right."""
    file = listing.files[name]
    for _ in range(2):
        with hub_errors(listing.repo):
            path = Path(hf_hub_download(listing.repo, name, revision=listing.commit))
        if file.is_content(path):
            _aside(path.resolve()).unlink(missing_ok=True)
            return
        _set_aside(path)
    raise ModelCorrupt(
        f"The file {name} of {listing.repo} is not what its repository promises; try again later."
    )


def _hashes(listing: Listing, directory: Path, hash_cache: HashCache) -> dict[str, str]:
    """SHA-256 of everything that makes the model what it is, by file name."""
    hashes = {name: hash_cache.sha256(directory / name) for name in (CONFIG, TOKENIZER)}
    for name in weight_files(directory):
        file = _known(listing.files.get(name), name, listing.repo)
        if file.sha256 is None:  # so small that git holds it, or a cache without links
            _fetch_small_file(listing, name)
        hashes[name] = file.sha256 or hash_cache.sha256(directory / name)
    return hashes


def _known(file: RemoteFile | None, name: str, source: str) -> RemoteFile:
    if file is None:
        raise ModelUnavailable(
            f"The file {name} of {source} is neither in the cache nor known to the Hub; connect to "
            "the network, or choose another model."
        )
    return file


def _is_right(
    path: Path,
    file: RemoteFile | None,
    hash_cache: HashCache,
    on_progress: OnProgress,
    verify: bool,
) -> bool:
    """Whether the cached file is what the repository holds; a wrong one steps aside."""
    done_bytes, total_bytes = 0, path.stat().st_size

    def on_bytes(count: int) -> None:
        nonlocal done_bytes
        done_bytes += count
        what = Sentence("Checking {model}", model=path.name)
        on_progress(Progress.of(what, done_bytes, total_bytes, "bytes"))

    try:
        check_safetensors(path)
        if file is None or file.sha256 is None:
            return file is None or file.is_content(path)
        known = None if verify else hash_cache.known(path)
        if (known or hash_cache.fresh(path, on_bytes)) == file.sha256:
            return True
    except ModelCorrupt as error:
        _log.warning("%s", error)
    _set_aside(path)
    return False


def _set_aside(path: Path) -> None:
    """Take a damaged file, and the blob that it links to, out of the way."""
    blob = path.resolve()
    _log.warning("The cached file %s is damaged; fetching it again", blob)
    blob.replace(_aside(blob))
    path.unlink(missing_ok=True)


def _aside(blob: Path) -> Path:
    return blob.with_name(f"{blob.name}.damaged")


def _fetch_blob(
    listing: Listing,
    name: str,
    file: RemoteFile,
    hash_cache: HashCache,
    on_bytes: Callable[[int], None],
) -> None:
    assert file.sha256 is not None
    blob = storage(listing.repo) / "blobs" / file.sha256
    if blob.exists():
        if hash_cache.sha256(blob) == file.sha256:
            return
        _set_aside(blob)
    blob.parent.mkdir(parents=True, exist_ok=True)
    url = hf_hub_url(listing.repo, name, revision=listing.commit)
    with hub_errors(listing.repo):
        download(
            url,
            blob,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            on_bytes=on_bytes,
            headers=build_hf_headers(),
        )
    hash_cache.remember(blob, file.sha256)
    _aside(blob).unlink(missing_ok=True)
