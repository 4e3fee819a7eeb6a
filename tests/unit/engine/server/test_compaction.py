"""When a worker brings together what is kept of a tree: a trace of its calls, over a real socket."""

from __future__ import annotations

import dataclasses
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import msgpack
import numpy as np
import pytest

from engine.core.sampling_params import SamplingParams
from engine.kv.cache import SequenceCache
from engine.models.block_stack import BlockStack
from engine.models.layout import read_spec
from engine.protocol.frames import Dtype
from engine.protocol.rows import RowFlags
from engine.server.link import SharedRegions, WorkerSocket
from engine.server.worker import Worker
from tests.support.tiny_models import save_tiny

CALLS: dict[CodeType, str] = {
    BlockStack.forward.__code__: "pass",
    WorkerSocket.send.__code__: "answer",
    SequenceCache.move.__code__: "move",
}
TREE = (-1, -1, 1, 2)
"""Its fourth token is at the end of a path that leaves the first one out."""
SESSION = 5


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


def row(position: int, count: int, parents: Sequence[int] = (), accepted: int = 0) -> Any:
    return (SESSION, position, count, int(RowFlags.SAMPLE), list(parents), accepted)


def work(model: Path, rows: Sequence[Any], kv_offload: float) -> list[str]:
    """What a worker does to compute these rows, pass by pass, all handed to it at once."""
    spec = read_spec(model, "tiny@0")
    num_blocks = spec.num_hidden_layers
    ours, theirs = socket.socketpair()
    regions = SharedRegions.create(1 << 16)

    def messages() -> Iterator[dict[str, Any]]:
        yield {
            "op": "load", "directory": str(model), "spec": dataclasses.asdict(spec),
            "span": (0, num_blocks), "dtype": int(Dtype.FLOAT32), "device": "cpu", "threads": 0,
            "kv_dtype": "auto", "kv_budget_bytes": 1 << 20, "emulate": None, "pruners": {},
        }  # fmt: skip
        sequence = {
            "session": SESSION, "capacity_tokens": 100, "prompt_tokens": 9, "draft_tokens": 4,
            "kv_offload": kv_offload, "sampling": dataclasses.asdict(SamplingParams()),
        }  # fmt: skip
        yield {"op": "open", "span": (0, num_blocks), "sequences": [sequence]}
        for each in rows:
            ids = np.arange(3, 3 + each[2], dtype=np.int32)
            yield {"op": "forward", "slot": 0, "rows": [each], "ids": ids.tobytes(),
                   "dtype": int(Dtype.NONE), "width": 0}  # fmt: skip

    with ours:
        for message in messages():
            body = msgpack.packb(message)
            ours.sendall(struct.pack("<I", len(body)) + body)
        ours.shutdown(socket.SHUT_WR)
        with Trace() as trace:
            Worker(WorkerSocket(theirs.detach()), regions).run()
    regions.close()
    return trace.calls[trace.calls.index("pass") :]


ROUNDS = [row(0, 9), row(9, 5, TREE), row(13, 5, TREE, 4), row(17, 5, TREE, 4)]


def test_what_is_kept_of_a_tree_is_brought_together_when_the_next_pass_has_been_answered(
    model: Path,
) -> None:
    calls = work(model, ROUNDS, 0.0)
    assert calls == [*["pass", "answer"] * 2, *["pass", "answer", "move"] * 2]


@pytest.mark.parametrize(
    ("rows", "kv_offload"),
    [([*ROUNDS[:2], row(13, 1, (), 4)], 0.0), (ROUNDS[:3], 0.5)],
    ids=["no tree follows", "two tiers"],
)
def test_where_the_next_pass_cannot_do_without_it_comes_before(
    model: Path, rows: list[Any], kv_offload: float
) -> None:
    calls = work(model, rows, kv_offload)
    assert calls == [*["pass", "answer"] * 2, "move", "pass", "answer"]


def test_path_that_lies_together_is_not_moved(model: Path) -> None:
    rows = [*ROUNDS[:2], row(11, 5, TREE, 1)]
    assert "move" not in work(model, rows, 0.0)
