"""Whether a draft speaks the target's language: decided by what tokenizers hold, never by names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine.core.errors import ModelError
from engine.models.layout import TOKENIZER, read_json

_PARTS: Final = {
    "vocabulary": "the tokens they have",
    "merges": "how letters join to tokens",
    "special tokens": "their special tokens",
    "normaliser": "how text is normalised",
    "splitting": "how text is split into words",
}


def check_same_tokenizer(draft: Path, target: Path) -> None:
    """See that equal text becomes equal ids in both models.

    Args:
        draft: Directory of the draft.
        target: Directory of the target.

    Raises:
        ModelError: They differ; the text says in what.
        ModelCorrupt: A tokenizer cannot be read.
    """
    ours, theirs = (_parts(read_json(path / TOKENIZER)) for path in (draft, target))
    differing = [text for part, text in _PARTS.items() if ours[part] != theirs[part]]
    if differing:
        raise ModelError(
            f"The model in {draft} cannot draft for the one in {target}, because their tokenizers "
            f"differ in {' and in '.join(differing)}; choose a draft of the same family, or train "
            "one with `shoal draft train`."
        )


def _parts(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    """What decides on ids, in a form that does not depend on the library's version."""
    model = tokenizer.get("model") or {}
    vocabulary = model.get("vocab") or {}
    if isinstance(vocabulary, list):  # of SentencePiece's unigrams, with their scores
        vocabulary = {entry[0]: (place, entry[1]) for place, entry in enumerate(vocabulary)}
    merges = [
        tuple(merge.split(" ", 1)) if isinstance(merge, str) else tuple(merge)
        for merge in model.get("merges") or ()
    ]
    added = tokenizer.get("added_tokens") or ()
    # A token may be listed among the added ones alone, or in the vocabulary too.
    words = dict(vocabulary) | {
        entry["content"]: entry["id"] for entry in added if entry["content"] not in vocabulary
    }
    return {
        "vocabulary": words,
        "merges": merges,
        "special tokens": sorted(
            (entry["id"], entry["content"]) for entry in added if entry.get("special")
        ),
        "normaliser": _plain(tokenizer.get("normalizer")),
        "splitting": (
            _plain(tokenizer.get("pre_tokenizer")),
            {name: model.get(name) or None for name in ("type", "byte_fallback", "unk_token")},
        ),
    }


def _plain(part: Any) -> Any:
    """Without settings that are absent, which some versions write as null."""
    if isinstance(part, dict):
        return {name: _plain(value) for name, value in part.items() if value is not None}
    return [_plain(value) for value in part] if isinstance(part, list) else part
