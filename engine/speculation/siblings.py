"""Smaller models on this computer that speak the target's language. Loads no torch."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from engine.core.errors import ModelError
from engine.core.model_spec import ModelSpec
from engine.models.layout import CONFIG, TOKENIZER, ModelFiles, read_spec, weight_files
from engine.speculation.same_tokenizer import check_same_tokenizer

logger = logging.getLogger(__name__)

_MOST_SHARE: Final = 0.25
"""Of the target's weights; a larger sibling takes too long to save anything."""


def find_sibling(target: ModelFiles, folders: Iterable[Path]) -> ModelFiles | None:
    """The smallest whole model that can draft for a target; blocks for as long as the disk takes.

    Args:
        target: With its tokenizer on disk.
        folders: Of models, as we or the Hub's cache keep them.

    Returns:
        None: There is none. Models that cannot be read or that differ are passed over.
    """
    found = [model for folder in folders if (model := _fitting(folder, target)) is not None]
    return min(found, key=lambda model: num_weights(model.spec), default=None)


def num_weights(spec: ModelSpec) -> int:
    """Of blocks, embedding and head."""
    ends = spec.vocab_size * spec.hidden_size * (1 if spec.tie_word_embeddings else 2)
    return spec.num_hidden_layers * spec.block_parameters + ends


def _fitting(folder: Path, target: ModelFiles) -> ModelFiles | None:
    for directory in (folder, *sorted(folder.glob("snapshots/*"))):
        if not ((directory / CONFIG).exists() and (directory / TOKENIZER).exists()):
            continue
        try:
            spec = read_spec(directory, folder.name)
            whole = all((directory / name).exists() for name in weight_files(directory))
            if whole and num_weights(spec) <= _MOST_SHARE * num_weights(target.spec):
                check_same_tokenizer(directory, target.directory)
                return ModelFiles(spec, directory, str(directory))
        except ModelError as error:
            logger.debug("no draft: %s", error)
    return None
