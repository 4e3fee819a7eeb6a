"""What can be said of a model without fetching anything."""

from __future__ import annotations

from pathlib import Path

from engine.core.model_spec import ModelSpec
from engine.models.layout import CONFIG, read_spec
from engine.models.sources import STARTER
from engine.models.starter import starter_model_id


def known_spec(source: str, models_dir: Path) -> ModelSpec | None:
    """A model's sizes, from files that are here; None when they are not.

    The id of the result says the source, not the content: nothing is hashed.

    Raises:
        ModelError: The files are here, and of a family or kind that we cannot run.
    """
    if source == STARTER:
        return starter_spec()
    folder = Path(source).expanduser()
    if (folder / CONFIG).is_file():
        return read_spec(folder.absolute(), folder.absolute().name)
    snapshot = _hub_snapshot(source, models_dir)
    return None if snapshot is None else read_spec(snapshot, source)


def starter_spec() -> ModelSpec:
    """The sizes of the built-in model, whether it has been converted yet or not."""
    return ModelSpec(
        model_id=starter_model_id(),
        family="llama",
        num_hidden_layers=30,
        hidden_size=576,
        num_attention_heads=9,
        num_key_value_heads=3,
        head_dim=64,
        intermediate_size=1536,
        vocab_size=49152,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_ids=(2,),
    )


def _hub_snapshot(source: str, models_dir: Path) -> Path | None:
    """The folder in the Hub's cache with the files that we have used last."""
    from engine.models.hub_listing import noted_listing, storage  # its client takes long to import

    try:
        noted = noted_listing(source, models_dir)
        folder = storage(source)
        commit = noted.commit if noted else (folder / "refs" / "main").read_text("utf-8").strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if (snapshot / CONFIG).is_file() else None
