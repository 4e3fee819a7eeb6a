"""Read only the tensors that a stage needs, and never go on without one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.core.errors import ModelCorrupt
from engine.core.plans import Span
from engine.models.layout import (
    CONFIG,
    EMBEDDING,
    LM_HEAD,
    WEIGHTS,
    block_index,
    in_span,
    is_tied,
    read_json,
    weight_map,
)

NamesWanted = Span | Collection[str] | Callable[[str], bool]
"""A stage's span; or exact names; or a predicate over the names that the files hold."""


def load_tensors(
    directory: Path,
    names_wanted: NamesWanted,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> dict[str, Tensor]:
    """Read tensors from the safetensors files of `directory`, by their Hugging Face names.

    A span means its blocks, the embedding if it starts at block 0, and final norm and LM head if
    it ends at the last block. In a model with tied embeddings, `lm_head.weight` is the same tensor
    as `model.embed_tokens.weight`, whether or not the files hold one.

    Args:
        directory: Model directory; files that hold none of the wanted tensors may be absent.
        names_wanted: See `NamesWanted`.
        device: Where the tensors go.
        dtype: Converted to this; None keeps what the files hold.

    Returns:
        Name → tensor, each with memory of its own (files may change or vanish afterwards).

    Raises:
        ModelCorrupt: A wanted tensor or its file is missing or unreadable; the text names it.
    """
    files = tensor_files(directory)
    tied = is_tied(read_json(directory / CONFIG))
    wanted = _wanted_names(directory, files, names_wanted, tied)
    stored = {EMBEDDING if tied and name == LM_HEAD else name for name in wanted}
    if missing := sorted(stored - files.keys()):
        raise ModelCorrupt(
            f"The model in {directory} lacks {_listing(missing)}, so it cannot be run; "
            "fetch it again."
        )
    by_file: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(stored):
        by_file[files[name]].append(name)
    tensors: dict[str, Tensor] = {}
    for file, names in sorted(by_file.items()):
        tensors |= _read(directory / file, names, device, dtype)
    if tied and LM_HEAD in wanted:
        tensors[LM_HEAD] = tensors[EMBEDDING]
    return {name: tensors[name] for name in sorted(wanted)}


def tensor_files(directory: Path) -> dict[str, str]:
    """Which file holds which tensor, for every tensor of the model.

    Raises:
        ModelCorrupt: The only weights file is missing or unreadable.
    """
    entries = weight_map(directory)
    if entries is not None:
        return entries
    try:
        with safe_open(directory / WEIGHTS, framework="pt") as opened:
            return dict.fromkeys(opened.keys(), WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise _unreadable(directory / WEIGHTS, error) from error


def _wanted_names(
    directory: Path, files: dict[str, str], names_wanted: NamesWanted, tied: bool
) -> set[str]:
    if isinstance(names_wanted, Span):
        return _names_of_span(directory, files, names_wanted, tied)
    if callable(names_wanted):
        names = {name for name in files if names_wanted(name)}
        if tied and names_wanted(LM_HEAD):
            names.add(LM_HEAD)
        return names
    return set(names_wanted)


def _names_of_span(directory: Path, files: dict[str, str], span: Span, tied: bool) -> set[str]:
    """All names that the span must have: a block has what the other blocks have."""
    num_hidden_layers = int(read_json(directory / CONFIG)["num_hidden_layers"])
    names = {
        name
        for name in files
        if in_span(name, span, num_hidden_layers=num_hidden_layers, tied=tied)
    }
    within_block = {
        name.split(".", 3)[3]
        for name in files
        if block_index(name) is not None and not name.endswith(".rotary_emb.inv_freq")
    } or {"input_layernorm.weight"}
    for block in range(span.start, span.end):
        names |= {f"model.layers.{block}.{rest}" for rest in within_block}
    if span.start == 0:
        names.add(EMBEDDING)
    if span.end == num_hidden_layers:
        names |= {"model.norm.weight", LM_HEAD}
        if tied and span.start != 0:
            names.discard(EMBEDDING)
    return names


def _read(
    path: Path, names: list[str], device: torch.device | str, dtype: torch.dtype | None
) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as opened:
            held = set(opened.keys())
            if missing := sorted(set(names) - held):
                raise ModelCorrupt(
                    f"The file {path} lacks {_listing(missing)}, which the model's index "
                    "promises; fetch the model again."
                )
            # A copy, because what safetensors returns is a view of the mapped file.
            return {
                name: opened.get_tensor(name).to(device=device, dtype=dtype, copy=True)
                for name in names
            }
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ModelCorrupt:
    return ModelCorrupt(
        f"The weights in {path} cannot be read ({error}); remove the file and fetch the model "
        "again."
    )


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more tensors"
