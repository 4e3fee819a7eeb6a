"""When a stage brings together what is kept of a tree: a trace of its calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Self

import numpy as np
import pytest

from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.kv.cache import SequenceCache
from engine.models.block_stack import BlockStack
from engine.protocol.rows import Row, RowFlags
from tests.support.stages import ENDLESS, stage
from tests.support.tiny_models import save_tiny

CALLS: dict[CodeType, str] = {
    BlockStack.forward.__code__: "pass",
    SequenceCache.move.__code__: "move",
}
TREE = (-1, -1, 1, 2)
"""Its fourth token is at the end of a path that leaves the first one out."""
SESSION = SessionId(5)


class Trace:
    """The calls of interest, in the order of their beginnings."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in CALLS:
            self.calls.append(CALLS[frame.f_code])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny("llama", tmp_path_factory.mktemp("tiny"))


def row(position: int, count: int, parents: tuple[int, ...] = (), accepted: int = 0) -> Row:
    return Row(SESSION, position, count, 0, RowFlags.SAMPLE, parents, accepted)


def work(model: Path, rows: Sequence[Row], kv_offload: float = 0.0) -> list[str]:
    """What a stage does to compute these rows, pass by pass, as a worker asks it to.

    After a pass comes its answer, and then what need not come before it.
    """
    part = stage(model)
    part.open(SESSION, Span(0, 4), 100, 9, ENDLESS, kv_offload=kv_offload, draft_tokens=4)
    with Trace() as trace:
        for each in rows:
            part.forward([each], np.arange(3, 3 + each.count, dtype=np.int32), None)
            trace.calls.append("answer")
            part.tidy()
    return trace.calls


ROUNDS = [row(0, 9), row(9, 5, TREE), row(13, 5, TREE, 4), row(17, 5, TREE, 4)]


def test_what_is_kept_of_a_tree_is_brought_together_when_the_next_pass_has_been_answered(
    model: Path,
) -> None:
    calls = work(model, ROUNDS)
    assert calls == [*["pass", "answer"] * 2, *["pass", "answer", "move"] * 2]


@pytest.mark.parametrize(
    ("rows", "kv_offload"),
    [([*ROUNDS[:2], row(13, 1, (), 4)], 0.0), (ROUNDS[:3], 0.5)],
    ids=["no tree follows", "two tiers"],
)
def test_where_the_next_pass_cannot_do_without_it_comes_before(
    model: Path, rows: list[Row], kv_offload: float
) -> None:
    calls = work(model, rows, kv_offload)
    assert calls == [*["pass", "answer"] * 2, "move", "pass", "answer"]


def test_path_that_lies_together_is_not_moved(model: Path) -> None:
    assert "move" not in work(model, [*ROUNDS[:2], row(11, 5, TREE, 1)])
