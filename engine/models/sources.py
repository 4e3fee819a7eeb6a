"""Where a model comes from: `starter`, a folder here, or the Hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from engine.core.errors import ModelCorrupt, ModelError, ModelNotFound
from engine.core.plans import Span
from engine.core.sentences import Sentence
from engine.localapi.schema import Progress
from engine.models.layout import (
    CONFIG,
    HASHES,
    TOKENIZER,
    WEIGHTS,
    WEIGHTS_INDEX,
    Dtype,
    ModelFiles,
    check_family,
    content_hash,
    read_spec,
    weight_files,
)
from engine.models.starter import ensure_starter, starter_model_id
from engine.models.storage import NO_LIMITS, FetchLimits, HashCache, check_safetensors, writing

STARTER = "starter"
_UNSAFE_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def resolve(
    source: str,
    models_dir: Path,
    dtype: Dtype,
    on_progress: Callable[[Progress], None],
    *,
    limits: FetchLimits = NO_LIMITS,
) -> ModelFiles:
    """Find a model and tell its sizes and identity, fetching no more than that needs.

    Args:
        source: `starter`, a folder, or a Hub id (`owner/name`); a folder that exists comes first.
        models_dir: Where Shoal keeps converted models and its notes.
        dtype: What the model will be computed in; the starter has files for two of them.
        on_progress: Hears of everything that takes a while.
        limits: What fetching may take.

    Raises:
        ModelNotFound: The source leads to no model, or to one that we may not have.
        ModelUnavailable: It is elsewhere, and the network does not reach there.
        ModelError: A family or format that we do not read.
        ModelCorrupt: Files that make no sense.
        DiskFull: No room.
    """
    if source == STARTER:
        directory = ensure_starter(models_dir, dtype, on_progress, limits=limits)
        return ModelFiles(read_spec(directory, starter_model_id()), directory, source)
    directory = Path(source).expanduser()
    if directory.is_dir():
        return _resolve_directory(source, directory.absolute(), models_dir, on_progress)
    if directory.is_file():
        raise ModelNotFound(
            f"{source} is a file; name the folder that holds {CONFIG} and the weights."
        )
    if directory.is_absolute() or re.match(r"[.~]", source) or source.count("/") > 1:
        raise ModelNotFound(f"There is no folder {source}; correct the path.")
    from engine.models.hub import resolve_hub  # its client takes long to import

    return resolve_hub(source, models_dir, on_progress, limits)


def fetch_weights(
    files: ModelFiles,
    span: Span,
    on_progress: Callable[[Progress], None],
    *,
    models_dir: Path,
    verify: bool = False,
    limits: FetchLimits = NO_LIMITS,
) -> None:
    """See that every tensor that a stage with `span` needs is on disk and whole.

    Of a Hub model only the shards with these tensors are fetched. Damaged files are fetched or
    converted again once, where there is something to do that from.

    Args:
        files: What `resolve` returned.
        span: The stage's blocks.
        on_progress: Hears of downloads and checks.
        models_dir: As for `resolve`.
        verify: Hash all files again, even those that look untouched.
        limits: What fetching may take.

    Raises:
        ModelCorrupt: Files that are damaged and stay so.
        ModelUnavailable: Something must be fetched, and the network does not reach there.
        DiskFull: No room.
    """
    if files.source == STARTER:
        bfloat16 = files.directory.name.endswith("bfloat16")
        dtype: Dtype = "bfloat16" if bfloat16 else "float32"
        ensure_starter(models_dir, dtype, on_progress, verify=verify, limits=limits)
    elif files.revision is not None:
        from engine.models.hub import fetch_hub_weights

        fetch_hub_weights(files, span, models_dir, on_progress, verify=verify, limits=limits)
    for name in weight_files(files.directory, span):
        check_safetensors(files.directory / name)


def _resolve_directory(
    source: str, directory: Path, models_dir: Path, on_progress: Callable[[Progress], None]
) -> ModelFiles:
    check_family(directory)
    if not (directory / WEIGHTS).exists() and not (directory / WEIGHTS_INDEX).exists():
        if any(path for pattern in _UNSAFE_WEIGHTS for path in directory.glob(pattern)):
            raise ModelError(
                f"{source} has its weights in a format that can run code when it is loaded; "
                "convert them to safetensors."
            )
        raise ModelNotFound(f"{source} has no weights: neither {WEIGHTS} nor {WEIGHTS_INDEX}.")
    if not (directory / TOKENIZER).exists():
        raise ModelNotFound(f"{source} has no {TOKENIZER}, so it cannot be run.")
    names = (CONFIG, TOKENIZER, *weight_files(directory))
    for name in names[2:]:
        check_safetensors(directory / name)
    hash_cache = HashCache(models_dir / HASHES)
    total_bytes = sum((directory / name).stat().st_size for name in names)
    done_bytes = 0

    def on_bytes(count: int) -> None:
        nonlocal done_bytes
        done_bytes += count
        what = Sentence("Checking {model}", model=directory.name)
        on_progress(Progress.of(what, done_bytes, total_bytes, "bytes"))

    with writing(models_dir):
        hashes = {name: hash_cache.sha256(directory / name, on_bytes) for name in names}
    if not directory.name:
        raise ModelCorrupt(f"{source} cannot be a model's folder: it has no name.")
    spec = read_spec(directory, f"{directory.name}@{content_hash(hashes)}")
    return ModelFiles(spec, directory, source)
