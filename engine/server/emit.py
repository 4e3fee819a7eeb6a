"""What goes out after a forward pass: frames of hidden states, or of new ids. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from engine.core.generation import DraftMode, FinishReason, Sampled, TokenLogprobs
from engine.core.ids import PeerId
from engine.protocol.frames import Codec, Frame, Kind
from engine.protocol.rows import DECODE_TOKENS, Row, RowFlags, path_to
from engine.protocol.tokens import encode_logprobs
from engine.server.kept import KeptOutputs
from engine.server.scheduler import Work
from engine.server.sessions import SessionTable
from engine.server.worker_process import LoadOrder
from engine.speculation.tree import TokenTree

_BULK_FRAME_BYTES = 96 << 10
_FINISH_FLAGS = {FinishReason.STOP: RowFlags.EOS, FinishReason.LENGTH: RowFlags.LENGTH}


def hidden_frames(
    batch: Sequence[Work],
    hidden: memoryview,
    table: SessionTable,
    order: LoadOrder,
    kept: KeptOutputs,
    pruned: Sequence[tuple[bool, ...]] = (),
) -> Iterator[tuple[PeerId, Frame]]:
    """Frames for the next stages: one with all that decodes, and pieces of each row that prefills.

    In pieces, because decoding can overtake frames on the line but not interrupt them. Rows that may
    be rounded go in frames of their own.

    Args:
        batch: The rows of the pass, in order.
        hidden: `[N, hidden_size]` of `order.dtype` as bytes; copied, so it may be overwritten.
        table: Rows of sessions that have been closed meanwhile, or of an older attempt, are left
            out, and what the next stage has already.
        order: What the worker holds.
        kept: All that is computed goes in here, drafts apart.
        pruned: For each row, what of its draft is sent on, see `Row.kept`; empty: all of all.
    """
    token_bytes = len(hidden) // sum(work.row.count for work in batch)
    short: dict[tuple[PeerId, Codec], list[tuple[Work, memoryview]]] = defaultdict(list)
    long: list[tuple[tuple[PeerId, Codec], Work, memoryview]] = []
    heavy: list[tuple[tuple[PeerId, Codec], Work, memoryview]] = []
    at = 0
    for index, work in enumerate(batch):
        size = work.row.count * token_bytes
        session = table.get(work.row.session)
        part = hidden[at : at + size]
        at += size
        if session is None or session.attempt != work.row.attempt:
            continue
        own = work.row.committed
        draft = session.drafts.of(work.row)
        if draft is not None:
            draft.computed(part)
        if work.row.goes_on:
            skip = 0
            if draft is None or session.is_mute:
                continue
        else:
            kept.add(session.id, work.row.position, work.ids[:own], part[: own * token_bytes])
            skip = session.emit(work.row.position, own)
            if skip == own:
                continue
        if skip:
            work = replace(work, hidden=()).split(skip)[1]
            part = part[skip * token_bytes :]
        if pruned and pruned[index]:
            work, part = _without_dropped(work, part, pruned[index])
        way = (session.next_peer, session.lossy)
        if work.is_prefill:
            long.append((way, work, part))
        elif work.row.mode is DraftMode.DSD:  # its probabilities would hold up the others' rows
            heavy.append((way, work, part))
        else:
            short[way].append((work, part))
    for (peer, codec), rows in short.items():
        yield peer, _hidden_frame(rows, order, codec)
    for (peer, codec), work, part in heavy:
        yield peer, _hidden_frame([(work, part)], order, codec)
    for (peer, codec), work, part in long:
        for piece, start in _pieces(work, max(1, _BULK_FRAME_BYTES // token_bytes)):
            some = part[start * token_bytes : (start + piece.row.count) * token_bytes]
            yield peer, _hidden_frame([(piece, some)], order, codec)


def _without_dropped(
    work: Work, hidden: memoryview, kept: tuple[bool, ...]
) -> tuple[Work, memoryview]:
    """A row with what is left of its draft."""
    row, own = work.row, work.row.committed
    rest, survivors = TokenTree(tuple(work.ids[own:].tolist()), row.parents).pruned(kept)
    places = [*range(own), *(own + node for node in survivors)]
    left = replace(row, count=len(places), parents=rest.parents, kept=kept)
    states = np.frombuffer(hidden, np.uint8).reshape(row.count, -1)[places]
    return replace(work, row=left, ids=work.ids[places]), memoryview(states.tobytes())


def _hidden_frame(rows: Sequence[tuple[Work, memoryview]], order: LoadOrder, codec: Codec) -> Frame:
    return Frame(
        Kind.STEP,
        b"".join(part for _, part in rows),
        tuple(work.row for work, _ in rows),
        np.concatenate([work.ids for work, _ in rows]),
        order.dtype,
        order.spec.hidden_size,
        codec,
    )


def _pieces(work: Work, max_tokens: int) -> Iterator[tuple[Work, int]]:
    """Cut a row; with where each piece begins in it."""
    # What is left over joins the last piece when it would pass for decoding by itself.
    work, start = replace(work, hidden=()), 0
    while work.row.count > max_tokens + DECODE_TOKENS:
        piece, work = work.split(max_tokens)
        yield piece, start
        start += max_tokens
    yield work, start


def token_frames(
    batch: Sequence[Work], sampled: Sequence[Sampled], table: SessionTable
) -> Iterator[tuple[PeerId, Frame]]:
    """New ids, to the first stages (the closed ring) and to the clients at the same time.

    Where the client leads, to it alone.

    Args:
        batch: The rows of the pass, in order.
        sampled: One per row with SAMPLE, in order.
        table: Rows of sessions that have been closed meanwhile, or of an older attempt, are left
            out.
    """
    for work in batch:
        session = table.get(work.row.session)
        if session is not None and session.attempt == work.row.attempt:
            if not work.row.goes_on:
                session.emit(work.row.position, work.row.committed)
            if (draft := session.drafts.of(work.row)) is not None:
                draft.computed()
    asked = [work for work in batch if work.row.samples]
    ring: dict[PeerId, list[tuple[Row, list[int]]]] = defaultdict(list)
    clients: dict[PeerId, list[tuple[Row, list[int], Sampled]]] = defaultdict(list)
    for work, token in zip(asked, sampled, strict=True):
        asking = work.row
        session = table.get(asking.session)
        if session is None or session.attempt != asking.attempt:
            continue
        if asking.goes_on and session.drafts.of(asking) is None:
            continue  # the one before it in this pass, or in the last one, has refuted it
        session.drafts.judged(asking, token.accepted, token.id if token.finish is None else None)
        path = path_to(asking.parents, token.accepted)
        position = asking.position + asking.committed + len(path)
        flags = RowFlags.NONE if token.finish is None else _FINISH_FLAGS[token.finish]
        # Which draft it was the client does not know: it is told the tokens, and leads only after others.
        led = RowFlags.OPEN in asking.flags
        is_expected = bool(asking.parents or asking.kept) and not led
        is_open = led or (session.client_leads and not is_expected)
        session.client_leads = session.client_leads and is_expected
        mode = asking.mode
        if is_open:
            flags |= RowFlags.OPEN
        if token.refusal:
            flags, mode = flags | RowFlags.REFUSED, DraftMode.DSSD
        accepted = asking.survivors[token.accepted - 1] + 1 if token.accepted else 0
        answer = Row(
            session.id,
            position,
            1,
            session.attempt,
            flags,
            accepted=accepted,
            mode=mode,
            weights=token.refusal,
            kept=asking.kept,
        )
        told, ids = answer, [token.id]
        if is_expected:
            drafted = len(asking.kept) or len(asking.parents)
            flags |= RowFlags.EXPECTED
            told = replace(answer, count=1 + len(path), flags=flags, accepted=drafted)
            ids = [*work.ids[[asking.committed + node for node in path]].tolist(), token.id]
        clients[session.owner].append((told, ids, token))
        if token.finish is None and not is_open and not session.is_mute:
            step = Row(session.id, position, 1, session.attempt, RowFlags.SAMPLE, accepted=accepted)
            ring[session.next_peer].append((step, [token.id]))
    for peer, steps in ring.items():
        yield peer, _ids_frame(Kind.STEP, steps)
    for peer, answers in clients.items():
        logprobs = encode_logprobs([_logprobs(token) for _, _, token in answers])
        yield peer, _ids_frame(Kind.TOKENS, [(row, ids) for row, ids, _ in answers], logprobs)


def _logprobs(token: Sampled) -> tuple[TokenLogprobs, ...]:
    """Of what is accepted of a draft, and of the token after it; empty when nobody asked."""
    return () if token.logprobs is None else (*token.path_logprobs, token.logprobs)


def _ids_frame(kind: Kind, rows: Sequence[tuple[Row, list[int]]], payload: bytes = b"") -> Frame:
    """New ids, one for most rows."""
    ids = np.array([token for _, tokens in rows for token in tokens], np.int32)
    return Frame(kind, payload, tuple(row for row, _ in rows), ids)
