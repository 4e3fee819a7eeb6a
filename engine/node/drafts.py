"""What drafts for the model that runs, on this computer."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from engine.client.drafter import Speed
from engine.config import Config
from engine.core.errors import ConfigError
from engine.models.kept import kept
from engine.models.layout import ModelFiles, weight_files
from engine.models.sources import resolve
from engine.node.compute import Compute
from engine.speculation.draft_files import DESCRIPTION, WEIGHTS, find_draft
from engine.speculation.siblings import find_sibling
from engine.speculation.worker_process import DraftOrder

_BYTES_PER_S: Final = {"cpu": 8e9, "cuda": 400e9}
"""How fast a small model's weights are read; until its time has been measured."""
_LEAST_S: Final = 0.002
"""A pass of the smallest model."""
_ROW_SHARE: Final = 0.1
"""Of a pass, what each sequence adds."""


def find_order(
    target: ModelFiles, config: Config, compute: Compute, models_dir: Path
) -> DraftOrder | None:
    """What shall draft for a model, and where; blocks for as long as the disk takes.

    Args:
        target: With its tokenizer on disk.
        config: May name a draft, which is taken whether it fits or not: starting it tells.
        compute: Where the stage computes.
        models_dir: Where models are kept.

    Returns:
        None: Nothing on this computer can, or a cap of the person's leaves it no RAM.

    Raises:
        ConfigError: What the settings name is no folder here.
        EngineError: The model in it cannot be read.
    """
    capped = compute.room_bytes is not None
    if capped and compute.device == "cpu":
        return None
    # A process of its own takes some hundred MB of a GPU for nothing but being there.
    on_cpu = capped or compute.device == "cpu"
    dtype = "float32" if on_cpu else compute.dtype_name
    named = config.client.draft_model
    draft: ModelFiles | Path | None
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():  # whose weights nobody would fetch
            raise ConfigError(
                f"There is no folder {named} to draft with; name one in client.draft_model that holds a "
                "model, or leave that empty."
            )
        is_distilled = (folder / DESCRIPTION).exists()
        draft = (
            folder
            if is_distilled
            else resolve(str(folder), models_dir, dtype, lambda progress: None)
        )
    else:
        draft = find_draft(target.spec.model_id)
        if draft is None:
            draft = find_sibling(target, [model.folder for model in kept(models_dir)])
    if draft is None:
        return None
    return DraftOrder(
        target,
        draft,
        dtype,
        "cpu" if on_cpu else compute.device,
        config.stage.threads,
        config.client.draft_place_s,
    )


def assumed_speed(order: DraftOrder) -> Speed:
    """How long its drafts should take, before that is measured."""
    if isinstance(order.draft, Path):
        weights = order.draft / WEIGHTS
        num_bytes = 2 * weights.stat().st_size if weights.exists() else 0
    else:
        names = weight_files(order.draft.directory)
        num_bytes = sum((order.draft.directory / name).stat().st_size for name in names)
    pass_s = _LEAST_S + num_bytes / _BYTES_PER_S[order.device.partition(":")[0]]
    return Speed(pass_s, _ROW_SHARE * pass_s)
