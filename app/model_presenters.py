"""From the engine's catalogue to the models that the picker shows. Pure, as `presenters` is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from app.words import Tr, counted, number, size
from engine.localapi.catalogue import Catalogue, CatalogueModel, Standing


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model that Shoal offers."""

    source: str
    name: str
    about: str
    facts: str
    standing: str
    """Whether it runs, could run, or what is missing."""
    is_running: bool
    can_use: bool


@dataclass(frozen=True, slots=True)
class ModelsView:
    """The models that Shoal offers."""

    rows: tuple[ModelRow, ...]
    note: str
    """What is true of all of them."""


def models_view(catalogue: Catalogue | None, tr: Tr) -> ModelsView:
    """The models for the picker."""
    if catalogue is None:
        return ModelsView((), tr("The list of models comes when the engine is ready."))
    note = (
        tr("Another model is loaded for all conversations on this computer.")
        if catalogue.can_choose
        else tr("A swarm runs the model that it was founded with; leave it to choose another.")
    )
    return ModelsView(tuple(_model_row(model, catalogue, tr) for model in catalogue.models), note)


def _model_row(model: CatalogueModel, catalogue: Catalogue, tr: Tr) -> ModelRow:
    facts = [
        model.licence,
        size(model.needed_bytes, tr),
        counted(model.blocks, tr("{n} block|{n} blocks"), tr),
        tr("context of {n} tokens").format(n=number(model.context_tokens, tr)),
    ]
    match model.standing:
        case Standing.RUNNING:
            standing = tr("All conversations here use it.")
        case Standing.POSSIBLE:
            standing = counted(
                catalogue.computers,
                tr(
                    "This computer has room for it."
                    "|The {n} computers that are known have room for it."
                ),
                tr,
            )
        case Standing.TOO_LARGE:
            standing = tr(
                "{size} more room is needed. It usually takes {n} computers that give 8 GB each."
            ).format(size=size(model.missing_bytes, tr), n=max(model.minimum_swarm, 2))
        case _:
            assert_never(model.standing)
    return ModelRow(
        source=model.source,
        name=model.name,
        about=tr(model.about),
        facts=" · ".join(facts),
        standing=standing,
        is_running=model.standing is Standing.RUNNING,
        can_use=catalogue.can_choose and model.standing is Standing.POSSIBLE,
    )
