"""When a stage brings together what is kept of trees, and that its caches then are as if at once."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import numpy as np
import pytest
import torch

from engine.core.generation import CompactionUse
from engine.core.ids import SessionId
from engine.core.kv_room import KvDtype
from engine.core.plans import Span
from engine.kv.cache import SequenceCache
from engine.models.block_stack import BlockStack
from engine.protocol.rows import Row, RowFlags, is_chain, path_to
from engine.server.link import SharedRegions, WorkerSocket
from engine.server.stage import Stage
from engine.server.worker import Worker
from tests.support.caches import held
from tests.support.stages import ENDLESS, stage
from tests.support.tiny_models import save_tiny

CALLS: dict[CodeType, str] = {
    BlockStack.forward.__code__: "pass",
    SequenceCache.move.__code__: "move",
    WorkerSocket.send.__code__: "answer",
}
TREE = (-1, -1, 1, 2)
"""Its fourth token is at the end of a path that leaves the first one out."""
SESSION = SessionId(5)
SPAN = Span(0, 4)


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


def forward(each: Row) -> dict[str, Any]:
    """What an agent asks a worker for."""
    fields = (each.session, each.position, each.count, int(each.flags), each.parents)
    return {
        "op": "forward",
        "slot": 0,
        "rows": [(*fields, each.accepted, each.mode.value, each.weights, each.kept)],
        "ids": np.arange(3, 3 + each.count, dtype=np.int32).tobytes(),
        "width": 0,
        "thresholds": [],
    }


def work(
    model: Path, rows: Sequence[Row], kv_offload: float = 0.0
) -> tuple[list[str], CompactionUse]:
    """What a worker does that is asked for one row after another, and what it tells of that.

    It tells of what it does behind an answer with the next one, so that it is asked for one row more.
    """
    ours, theirs = socket.socketpair()
    regions = SharedRegions.create(1 << 20)
    worker, agent = Worker(WorkerSocket(theirs.detach()), regions), WorkerSocket(ours.fileno())
    worker._stage = part = stage(model)
    part.open(SESSION, SPAN, 100, 9, ENDLESS, kv_offload=kv_offload, draft_tokens=4)
    for each in rows:
        agent.send(forward(each))
    agent.send(forward(row(0, 9)))
    ours.shutdown(socket.SHUT_WR)
    with Trace() as trace:
        worker.run()
    use = CompactionUse()
    for _ in (*rows, None):
        answer = agent.receive()
        assert answer is not None
        use += CompactionUse(*answer["compaction"])
    ours.detach()
    regions.close()
    assert trace.calls[-2:] == ["pass", "answer"]
    return trace.calls[:-2], use


ROUNDS = [row(0, 9), row(9, 5, TREE), row(13, 5, TREE, 4), row(17, 5, TREE, 4)]


def test_what_is_kept_of_a_tree_is_brought_together_when_the_next_pass_has_been_answered(
    model: Path,
) -> None:
    calls, use = work(model, ROUNDS)
    assert calls == [*["pass", "answer"] * 2, *["pass", "answer", "move"] * 2]
    assert (use.before, use.before_s, use.after) == (0, 0.0, 2)
    assert use.after_s > 0


@pytest.mark.parametrize(
    ("rows", "kv_offload"),
    [([*ROUNDS[:2], row(13, 1, (), 4)], 0.0), (ROUNDS[:3], 0.5)],
    ids=["no tree follows", "two tiers"],
)
def test_where_the_next_pass_cannot_do_without_it_comes_before(
    model: Path, rows: list[Row], kv_offload: float
) -> None:
    calls, use = work(model, rows, kv_offload)
    assert calls == [*["pass", "answer"] * 2, "move", "pass", "answer"]
    assert (use.before, use.after, use.after_s) == (1, 0, 0.0)
    assert use.before_s > 0


def test_path_that_lies_together_is_not_moved(model: Path) -> None:
    calls, use = work(model, [*ROUNDS[:2], row(11, 5, TREE, 1)])
    assert "move" not in calls
    assert use == CompactionUse()


def contents(part: Stage, session: SessionId, places: Sequence[int]) -> list[torch.Tensor]:
    """Keys and values of these positions, block by block."""
    cache = part._sessions[session].cache
    return [
        tensor[:, list(places)]
        for block in range(len(SPAN))
        for tensor in held(cache, block, max(places) + 1)
    ]


@pytest.mark.parametrize(("kv_dtype", "tolerance"), [("auto", 1e-4), ("8bit", 5e-2)])
def test_caches_of_a_batch_of_ragged_trees_hold_what_compaction_at_once_leaves(
    model: Path, kv_dtype: KvDtype, tolerance: float
) -> None:
    rng = np.random.default_rng(11)
    late, eager = (stage(model, kv_dtype=kv_dtype) for _ in range(2))
    eager._may_wait = False
    sessions = [SessionId(number) for number in range(1, 6)]
    ends = dict.fromkeys(sessions, 0)
    trees: dict[SessionId, tuple[int, ...]] = dict.fromkeys(sessions, ())
    for part in (late, eager):
        for session in sessions:
            part.open(session, SPAN, 150, 7, ENDLESS, draft_tokens=26)
    for turn in range(9):
        rows, places = [], {}
        # Not all of them take part in each round, and not all of those have a draft.
        for session in sessions if turn < 2 else rng.permutation(sessions)[:3].tolist():
            start, tree = ends[session], trees[session]
            accepted = int(rng.integers(0, len(tree) + 1))
            path = path_to(tree, accepted)
            own = 1 if turn else int(rng.integers(3, 8))
            drafted = int(rng.integers(0, 13))
            trees[session] = tuple(int(rng.integers(-1, node)) for node in range(drafted))
            row_start, count = start + len(path), own + drafted
            flags = RowFlags.SAMPLE
            rows.append(Row(session, row_start, count, 0, flags, trees[session], accepted))
            ends[session] = row_start + own
            is_late = path != tuple(range(len(path))) and not is_chain(trees[session])
            behind = start + len(tree) if is_late else row_start
            places[session] = (
                [start + node for node in path] if is_late else [*range(start, row_start)]
            )
            places[session] = [*range(start), *places[session], *range(behind, behind + count)]
        ids = rng.integers(3, 512, sum(each.count for each in rows)).astype(np.int32)
        for part in (late, eager):
            part.forward(rows, ids, None)
        moved = {session: contents(late, session, some) for session, some in places.items()}
        late.tidy()
        for session, before in moved.items():
            everything = range(len(places[session]))
            after = contents(late, session, everything)
            # Not a bit of what was written is another.
            assert all(map(torch.equal, after, before))
            # Passes over scattered tokens add in another order, but for those of the first block.
            at_once = contents(eager, session, everything)
            assert all(map(torch.equal, after[:2], at_once[:2]))
            for ours, theirs in zip(after, at_once, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
    assert late.take_compaction_use().after > 5
    assert eager.take_compaction_use().after == 0
