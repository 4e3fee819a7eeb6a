"""Whatever is added, compressed and cut, the record gives back what was last put there, or nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.lanes import ElementType
from engine.core.ids import SessionId
from engine.server.kept import Kept, KeptOutputs

WIDTH = 4
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 2), st.integers(0, 9), st.integers(1, 90)),
        st.tuples(st.just("compress"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(0, 2), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("forget"), st.integers(0, 2), st.just(0), st.just(0)),
    ),
    max_size=30,
)


def hidden(rng: np.random.Generator, tokens: int) -> bytes:
    return rng.standard_normal((tokens, WIDTH)).astype("<f4").tobytes()


def read(kept: KeptOutputs, session: SessionId, start: int, end: int) -> tuple[list[int], bytes]:
    pieces = list(kept.replay(session, start, end, max_tokens=50))
    assert all(isinstance(piece, Kept) for piece in pieces)
    whole = [piece for piece in pieces if piece is not None]
    assert [piece.position for piece in whole] == list(range(start, end, 50))
    ids = [token for piece in whole for token in piece.ids.tolist()]
    return ids, b"".join(piece.hidden for piece in whole)


@given(ACTIONS, st.integers(0, 8000))
def test_record_gives_back_what_was_put_there_within_its_budget(
    actions: list[tuple[str, int, int, int]], budget_bytes: int
) -> None:
    rng = np.random.default_rng(len(actions))
    kept = KeptOutputs(budget_bytes, WIDTH, ElementType.FLOAT32)
    truth: dict[int, list[tuple[int, bytes]]] = {0: [], 1: [], 2: []}
    begins = dict.fromkeys(truth, 0)
    for action, session, number, tokens in actions:
        name, old = SessionId(session), truth[session]
        if action == "add":
            position = max(0, begins[session] + len(old) - number)
            ids = rng.integers(0, 1000, tokens).astype(np.int32)
            data = hidden(rng, tokens)
            kept.add(name, position, ids, data)
            if position < begins[session]:
                begins[session], old = position, []
            size = WIDTH * 4
            old = old[: position - begins[session]] + [
                (int(token), data[at * size : (at + 1) * size]) for at, token in enumerate(ids)
            ]
        elif action == "compress" and (work := kept.next_compression()) is not None:
            kept.compressed(work, work.run_codec())
        elif action == "truncate":
            kept.truncate(name, number)
            old = old[: max(0, number - begins[session])]
        elif action == "forget":
            kept.forget(name)
            old = []
        truth[session] = old
        assert 0 <= kept.num_bytes <= budget_bytes
        for each, tokens_of in truth.items():
            end = begins[each] + len(tokens_of)
            start = kept.start(SessionId(each), end)
            if start < end:
                assert kept.covers(SessionId(each), start, end)
                wanted = tokens_of[start - begins[each] :]
                got_ids, got = read(kept, SessionId(each), start, end)
                assert got_ids == [token for token, _ in wanted]
                assert got == b"".join(part for _, part in wanted)
    for session in truth:
        kept.forget(SessionId(session))
    assert kept.num_bytes == 0


def test_room_for_everything_keeps_everything() -> None:
    kept = KeptOutputs(1 << 20, WIDTH, ElementType.FLOAT32)
    for position in range(200):
        kept.add(SessionId(1), position, np.array([position], np.int32), bytes(WIDTH * 4))
    assert kept.start(SessionId(1), 200) == 0
    assert kept.next_compression() is None


def test_oldest_are_compressed_first_and_then_dropped_first() -> None:
    width = 256
    data = np.zeros((64, width), "<f4").tobytes()
    kept = KeptOutputs(int(3.5 * len(data)), width, ElementType.FLOAT32)
    ids = np.zeros(64, np.int32)
    for session in (1, 2, 3):
        kept.add(SessionId(session), 0, ids, data)
    work = kept.next_compression()
    assert work is not None
    kept.compressed(work, work.run_codec())
    assert kept.num_bytes < 2.2 * len(data)
    assert kept.next_compression() is None
    for session in (4, 5):
        kept.add(SessionId(session), 0, ids, data)
    assert [kept.covers(SessionId(session), 0, 64) for session in range(1, 6)] == [
        False, False, True, True, True,
    ]  # fmt: skip
