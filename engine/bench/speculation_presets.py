"""What `shoal bench speculation` measures unless it is told otherwise, and the ways to draft by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from engine.bench.speculation_prompts import PromptKind
from engine.core.generation import DraftMode, DraftModeWish, Pipelined, Speculation

TableName = Literal["dc", "bb"]
DraftName = Literal["ngram", "model", "tree", "auto"]
DRAFT_NAMES: Final[tuple[DraftName, ...]] = ("ngram", "model", "tree", "auto")
MODES: Final[dict[str, DraftModeWish]] = {
    "shared": DraftMode.SHARED,
    "dsd": DraftMode.DSD,
    "dssd": DraftMode.DSSD,
    "disco": DraftMode.DISCO,
    "auto": "auto",
}
"""By the names that reports give them."""
TREE: Final = Speculation("model", 13, width=4)
TREE_BESIDE: Final = Speculation("model", 32, width=8, pipelined="beside")
"""Of it only what goes on from the next token is verified."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Of one table, or of none; every field can be set on the command line instead."""

    drafts: dict[PromptKind, tuple[DraftName, ...]]
    draft_tokens: tuple[int, ...] = (4,)
    pipelined: dict[DraftName, tuple[Pipelined, ...]] = field(default_factory=dict)
    """By draft; `auto` where it says nothing."""
    modes: tuple[str, ...] = ("shared",)
    """If others than the first are among them: compared, all of them, on drawn chains of a model."""
    mode_tokens: tuple[int, ...] = ()
    """How long chains are that modes are compared on; empty: `draft_tokens`."""
    unpruned: tuple[Speculation, ...] = ()
    """Ways to draft questions' answers that are measured without pruning, too."""
    stages: int = 3
    batch: tuple[int, ...] = (1,)
    new_tokens: int = 64
    repeat: int = 6
    answer_s: float = 0.0


_ANY: Final = Preset({"chat": ("ngram",), "copy": ("ngram",)})
_TABLES: Final[dict[TableName, Preset]] = {
    "dc": Preset(
        {"chat": ("model", "tree", "auto"), "copy": ("ngram", "auto")},
        draft_tokens=(4,),
        pipelined={"tree": ("beside",)},
        modes=tuple(MODES),
        mode_tokens=(2, 4, 8),
        stages=1,
        new_tokens=32,
        repeat=2,
        answer_s=1.2,
    ),
    "bb": Preset(
        {"chat": ("model", "tree", "auto"), "copy": ("ngram", "auto")},
        draft_tokens=(4,),
        unpruned=(TREE,),
        pipelined={"ngram": ("off", "on"), "auto": ("auto", "off"), "tree": ("auto", "beside")},
        new_tokens=32,
        repeat=2,
        answer_s=5.0,
    ),
}
_NEVER_SLOWER: Final[dict[TableName, Preset]] = {
    "dc": Preset(
        {"chat": ("auto",), "copy": ("auto",)},
        stages=1,
        batch=(1, 8, 32),
        new_tokens=32,
        repeat=4,
        answer_s=1.2,
    ),
    "bb": Preset(
        {"chat": ("auto",), "copy": ("auto",)},
        batch=(1, 8, 32),
        new_tokens=32,
        repeat=3,
        answer_s=4.0,
    ),
}


def preset_for(table: TableName | None, *, never_slower: bool) -> Preset:
    """What is measured for a table, or without one."""
    if table is None:
        return _ANY
    return (_NEVER_SLOWER if never_slower else _TABLES)[table]


def ways(
    drafts: Sequence[DraftName],
    draft_tokens: Sequence[int],
    pipelined: Sequence[Pipelined] | None,
    preset: Preset = _ANY,
) -> tuple[Speculation, ...]:
    """The ways to draft that a command names.

    Args:
        drafts: Their names.
        draft_tokens: Of each that does not decide it itself, how many for a round.
        pipelined: For look-up and `auto`, and of what a model drafts whether it is beside the ring; None:
            as the preset says.
        preset: Of the table.
    """
    made: list[Speculation] = []
    for draft in drafts:
        flows = pipelined or preset.pipelined.get(draft, ("auto",))
        match draft:
            case "tree":
                made += [TREE_BESIDE if f == "beside" else TREE for f in _beside_or_not(flows)]
            case "auto":
                made += [Speculation("auto", pipelined=flow) for flow in flows]
            case "ngram":
                made += [Speculation("ngram", n, pipelined=f) for f in flows for n in draft_tokens]
            case "model":
                made += [
                    Speculation("model", n, pipelined=f)
                    for f in _beside_or_not(flows)
                    for n in draft_tokens
                ]
    return tuple(made)


def _beside_or_not(flows: Sequence[Pipelined]) -> list[Pipelined]:
    """A model's drafts know no chunks: of `on`, `off` and `auto` one is as good as another."""
    return list(dict.fromkeys("beside" if flow == "beside" else "auto" for flow in flows))


def mode_ways(modes: Sequence[str], draft_tokens: Sequence[int]) -> tuple[Speculation, ...]:
    """Chains of a model in several modes; none where there is only shared noise's.

    In `auto`, what the controller makes of all of them, and of other drafts.
    """
    if tuple(modes) == ("shared",):
        return ()
    chains = tuple(
        Speculation("model", num_tokens, mode=MODES[mode])
        for mode in modes
        if mode != "auto"
        for num_tokens in draft_tokens
    )
    return (*chains, Speculation("auto", mode="auto")) if "auto" in modes else chains
