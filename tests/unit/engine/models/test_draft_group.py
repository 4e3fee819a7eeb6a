"""Which rows with drafts share an operation; that it computes the right thing, properties show."""

from __future__ import annotations

import torch

from engine.kv.cache import KvPool
from engine.models.attention import PackedRow
from engine.models.draft_group import DraftGroup, whole_operations

KV_HEADS, HEAD_DIM = 2, 8
CHAIN, TREE = (-1, 0, 1, 2), (-1, -1, 0, 0, 1)


def groups(*rows: tuple[int, tuple[int, ...]]) -> list[int]:
    """How many tokens each shared operation has, of rows with a position and a draft."""
    pool = KvPool(KV_HEADS, HEAD_DIM, dtype=torch.float32, device=torch.device("cpu"))
    packed, start = [], 0
    for position, parents in rows:
        cache = pool.reserve(1, 128, 0.0)
        count = 1 + len(parents) if position else 40
        packed.append(PackedRow(cache, start, count, position, parents if position else ()))
        start += count
    made = whole_operations(
        [row.on(row.cache.parts[0], row.start) for row in packed], torch.float32
    )
    drafts = [operation for operation in made if isinstance(operation, DraftGroup)]
    return [len(operation.of(torch.arange(start))) for operation in drafts]


def test_drafts_of_a_batch_share_one_operation_chains_and_trees_alike() -> None:
    assert groups((60, CHAIN), (70, TREE), (64, CHAIN[:2])) == [5 + 6 + 3]


def test_prompts_and_plain_rows_are_none_of_it() -> None:
    assert groups((0, ()), (60, CHAIN), (61, ()), (70, CHAIN)) == [5 + 5]


def test_rows_of_very_different_length_do_not_wait_for_each_other() -> None:
    assert not groups((100, CHAIN), (2, CHAIN[:1]), (3, CHAIN[:1]))
    assert not groups((60, CHAIN))
