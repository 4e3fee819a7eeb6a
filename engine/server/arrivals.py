"""What a stage demands of the rows that arrive. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.core.errors import RemoteProtocolError
from engine.core.generation import DraftMode
from engine.core.ids import PeerId
from engine.protocol.frames import LOSSY_CODECS, Frame
from engine.protocol.rows import MAX_WHOLE, WEIGHT_BYTES, Row, RowFlags, is_chain
from engine.sampling.rejection import check_weights, read_weights
from engine.server.sessions import Session
from engine.server.worker_process import LoadOrder
from engine.speculation.tree import TokenTree, check_tree

_OF_STEPS: Final = frozenset(
    {RowFlags.NONE, RowFlags.SAMPLE, RowFlags.OPEN, RowFlags.SAMPLE | RowFlags.OPEN}
)


class RowsMissing(RemoteProtocolError):
    """A gap in a sequence: the peer's fault, or that of whoever led it here."""


class DraftRefused(RemoteProtocolError):
    """A draft that cannot be: the session is as it was, and its client may try again."""


def check_row(
    peer: PeerId,
    session: Session,
    row: Row,
    ids: npt.NDArray[np.int32],
    frame: Frame,
    order: LoadOrder,
    *,
    waiting_tokens: int,
) -> None:
    """Say whether a row of `frame` may be queued.

    Args:
        peer: Who sent it.
        session: The row's.
        row: Some consecutive tokens.
        ids: `[row.count]`
        frame: All that came with it.
        order: What our worker holds.
        waiting_tokens: What the session has waiting already.

    Raises:
        RowsMissing: Rows before this one have not come.
        DraftRefused: The row's draft cannot be computed, or does not end as it says.
        RemoteProtocolError: The peer breaks another rule.
    """
    if not session.accepts_from(peer):
        raise RemoteProtocolError("The peer sent rows of a session that does not pass it.")
    if row.goes_on or row.position > session.position:
        _check_follows(session, row)
    committed = row.committed
    if row.position + committed > session.capacity_tokens:
        raise RemoteProtocolError("The peer sent more tokens than it had reserved room for.")
    if waiting_tokens + committed > session.capacity_tokens:  # the same rows over and over
        raise RemoteProtocolError("The peer sent rows faster than their sequence can take.")
    if row.flags not in _OF_STEPS:
        raise RemoteProtocolError("The peer sent rows with flags that make no sense here.")
    width = 0 if session.is_first else order.spec.hidden_size
    if frame.width != width or bool(frame.dtype) != bool(width):
        raise RemoteProtocolError(f"The peer sent rows of width {frame.width}, not {width}.")
    if frame.codec in LOSSY_CODECS and frame.codec is not session.lossy:
        raise RemoteProtocolError("The peer rounded rows of a session that does not allow it.")
    vocab_size = order.spec.vocab_size
    if not all(0 <= token < vocab_size for token in ids[:committed].tolist()):
        raise RemoteProtocolError("The peer sent token ids outside the vocabulary.")
    if row.parents or row.kept or row.mode is not DraftMode.SHARED:
        try:
            _check_draft(session, row, ids[committed:], order, waiting_tokens)
        except RemoteProtocolError as error:
            raise DraftRefused(str(error)) from error


def check_expected(
    peer: PeerId,
    session: Session,
    row: Row,
    ids: npt.NDArray[np.int32],
    frame: Frame,
    order: LoadOrder,
) -> TokenTree:
    """Say whether a row of an EXPECT frame may be kept, and what tree it is; see `check_row`.

    Raises:
        DraftRefused: It can be no row's draft.
        RemoteProtocolError: The peer breaks another rule.
    """
    if peer != session.owner or not session.is_first:
        raise RemoteProtocolError("The peer expects something of a session that is not its own.")
    told = Row(row.session, row.position, row.count, row.attempt, RowFlags.NONE, row.parents)
    if frame.width or len(frame.payload) or not row.goes_on or row != told:
        raise RemoteProtocolError("The peer sent what it expects as something else.")
    tree = TokenTree(tuple(ids.tolist()), row.parents)
    try:
        check_tree(tree, vocab_size=order.spec.vocab_size, max_nodes=session.draft_tokens)
        _check_reach(session, row.position, tree)
    except RemoteProtocolError as error:
        raise DraftRefused(str(error)) from error
    return tree


def _check_reach(session: Session, position: int, tree: TokenTree) -> None:
    if position + max(tree.depths()) > session.capacity_tokens:
        raise RemoteProtocolError(
            "A draft reaches beyond the room that was reserved for its answer."
        )


def _check_follows(session: Session, row: Row) -> None:
    """Say whether a row goes on where the accepted part of a draft ends, or from all of one."""
    if not row.goes_on and not len(session.drafts):
        raise RowsMissing("The peer sent rows that leave a gap in their sequence.")
    try:
        session.drafts.settled(row)
    except RemoteProtocolError as error:
        raise DraftRefused(str(error)) from error


def _check_draft(
    session: Session, row: Row, ids: npt.NDArray[np.int32], order: LoadOrder, waiting_tokens: int
) -> None:
    if row.kept and (
        session.is_first or row.goes_on or row.weights or sum(row.kept) != len(row.parents)
    ):
        raise RemoteProtocolError(
            f"A row says that {sum(row.kept)} tokens of its draft are left, but has "
            f"{len(row.parents)}; only a first stage may leave some out, and must say which."
        )
    if len(row.kept) > session.draft_tokens:
        raise RemoteProtocolError(
            f"A draft had {len(row.kept)} tokens, but at most {session.draft_tokens} are taken."
        )
    if row.mode is not DraftMode.SHARED and not row.parents:
        raise RemoteProtocolError("A row without a draft says how its draft is to be verified.")
    if not row.parents:
        return
    tree = TokenTree(tuple(ids.tolist()), row.parents)
    check_tree(tree, vocab_size=order.spec.vocab_size, max_nodes=session.draft_tokens)
    _check_reach(session, row.position + row.committed, tree)
    if row.is_prefill or (waiting_tokens and not row.goes_on):
        raise RemoteProtocolError("A draft came before the tokens that it follows were computed.")
    if row.mode is not DraftMode.SHARED:
        _check_probabilities(row, tree.ids, order.spec.vocab_size, is_last=session.is_last)


def _check_probabilities(row: Row, ids: Sequence[int], vocab_size: int, *, is_last: bool) -> None:
    """Only the last stage, which alone uses them, looks at what they are."""
    if row.goes_on or not is_chain(row.parents) or RowFlags.OPEN not in row.flags:
        raise RemoteProtocolError(
            "Drafts are verified by probabilities only if they are chains of their own and their "
            "client leads."
        )
    is_whole = row.mode is DraftMode.DSD
    if is_whole and len(ids) > MAX_WHOLE:
        raise RemoteProtocolError(
            f"A draft has {len(ids)} tokens with all their probabilities, but at most {MAX_WHOLE} "
            "are taken; send a shorter one."
        )
    if len(row.weights) != len(ids) * WEIGHT_BYTES * (vocab_size if is_whole else 1):
        raise RemoteProtocolError("A draft's probabilities are not as many as its tokens need.")
    if not is_last:
        return
    weights = read_weights(row.weights)
    drafted = weights
    if is_whole:
        drafted = weights.reshape(len(ids), vocab_size)[np.arange(len(ids)), list(ids)]
    check_weights(weights, drafted)
