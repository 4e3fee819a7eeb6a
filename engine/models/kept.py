"""The models on this computer's disk: what each takes, and how to be rid of one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from engine.core.errors import ModelError, ModelNotFound
from engine.models.storage import MANIFEST, writing

_HUB_PREFIX = "models--"


@dataclass(frozen=True, slots=True)
class KeptModel:
    """One model on disk."""

    name: str
    """A Hub id, or the folder's name."""
    num_bytes: int
    folder: Path
    note: Path | None = None
    """What we know of a Hub model, beside the Hub's own cache."""


def kept(models_dir: Path) -> tuple[KeptModel, ...]:
    """All models that Shoal has fetched or made, by name; blocks for as long as the disk takes."""
    return tuple(sorted(_converted(models_dir) + _of_the_hub(models_dir), key=lambda m: m.name))


def kept_bytes(models_dir: Path) -> int:
    """What they take together; the file that a converted one was made from counts too."""
    loose = sum(_size(file) for file in _children(models_dir) if file.is_file())
    return loose + sum(model.num_bytes for model in kept(models_dir))


def delete(models_dir: Path, name: str, in_use: Path | None) -> None:
    """Remove a model from the disk; it can be fetched again.

    Args:
        models_dir: Where models are kept.
        name: As `kept` has it.
        in_use: The folder of the model that runs now.

    Raises:
        ModelNotFound: There is none of this name.
        ModelError: It runs now, or may not be removed.
    """
    model = next((model for model in kept(models_dir) if model.name == name), None)
    if model is None:
        raise ModelNotFound(f"There is no model {name} on this computer.")
    if in_use is not None and in_use.is_relative_to(model.folder):
        raise ModelError(f"{name} runs now; choose another model before you delete this one.")
    with writing(model.folder.parent):
        # Renamed first: what is removed half must not look like a model.
        aside = model.folder.with_name(f".{model.folder.name}.deleted")
        shutil.rmtree(aside, ignore_errors=True)
        model.folder.rename(aside)
        shutil.rmtree(aside)
        if model.note is not None:
            model.note.unlink(missing_ok=True)


def _converted(models_dir: Path) -> list[KeptModel]:
    return [
        KeptModel(folder.name, _tree_size(folder), folder)
        for folder in _children(models_dir)
        if folder.is_dir() and (folder / MANIFEST).exists()  # others are not ours to delete
    ]


def _of_the_hub(models_dir: Path) -> list[KeptModel]:
    """Those of the Hub's cache that we have asked for; others belong to other programs."""
    found = []
    for note in _children(models_dir / "hub"):
        folder = Path(constants.HF_HUB_CACHE) / note.stem
        if note.suffix == ".json" and note.stem.startswith(_HUB_PREFIX) and folder.is_dir():
            name = note.stem.removeprefix(_HUB_PREFIX).replace("--", "/", 1)
            found.append(KeptModel(name, _tree_size(folder), folder, note))
    return found


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _tree_size(folder: Path) -> int:
    """Of regular files; the Hub's cache links to each of its files once more."""
    return sum(
        _size(Path(directory) / name) for directory, _, names in os.walk(folder) for name in names
    )


def _size(file: Path) -> int:
    try:
        return 0 if file.is_symlink() else file.stat().st_size
    except OSError:
        return 0  # gone meanwhile
