"""A frame's rows: runs of tokens, a draft's among them perhaps, packed and never padded.

```
row, 24 bytes, little endian
  Q session | I position | I count | H attempt | H flags | B drafted | B accepted | B mode | B pruned from
```
`position` is the place of the row's first token in its sequence; `count` how many tokens it has.
The last `drafted` of them are a draft's: a token tree that hangs from the token before them. A row that
is all draft goes on from the end of the chain that the row before it drafted, before anybody knows what
becomes of that. In EXPECT all rows are all draft: what the client of a closed ring expects from `position` on.
In the frame all ids follow the table, each in as many bytes as the largest needs, then the parents of drafts
that are no chains, a byte each: 0 for the token before the draft, n for the n-th of the draft.
Where a first stage has left some of `pruned from` tokens out, a bitmap of those that are there follows
the row's parents.

Then, float16, the weights of rows whose `mode` is one of [DC]'s: in DSSD and DISCO one for each
drafted token, in DSD a whole distribution for each, and one where an answer refuses a token without
picking another. How many tokens the model has is what divides the bytes of all distributions evenly.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import STRICT, IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.core.errors import FrameCorrupt
from engine.core.generation import DraftMode
from engine.core.ids import SessionId

DECODE_TOKENS = 16
"""Rows that sample and are no longer, drafts apart, count as decoding."""
MAX_DRAFTED = 255
"""Tokens of one draft."""
MAX_WHOLE = 16
"""Tokens of a draft that comes with its distributions in full; [DC] goes up to 8."""
MAX_OPEN_DRAFTS: Final = 8
"""Of one sequence, one behind another, that nobody has judged yet."""
ID_BYTES: Final = (2, 3, 4)
"""What an id may take."""
_ROW = struct.Struct("<QIIHHBBBB")
ROW_BYTES = _ROW.size
_TREE = 1 << 15
"""Flag on the wire: the row's draft is no chain, and its parents follow."""
WEIGHT_BYTES: Final = 2
_MODES: Final = (DraftMode.SHARED, DraftMode.DSD, DraftMode.DSSD, DraftMode.DISCO)
"""By their number on the wire."""
_NUMBERS: Final = {mode: number for number, mode in enumerate(_MODES)}
_ONE_WEIGHT_A_TOKEN: Final = (DraftMode.DSSD, DraftMode.DISCO)


class RowFlags(IntFlag, boundary=STRICT):
    """Per-row marks."""

    NONE = 0
    SAMPLE = 1
    """The row's last token is the sequence's newest: the last stage answers with the next one."""
    EOS = 2
    """In TOKENS: the row ended at a stop token, which is the row's id."""
    LENGTH = 4
    """In TOKENS: the row ended because it reached `max_new_tokens` or its reserved room."""
    OPEN = 8
    """The client leads: what follows the row goes to it alone, and it sends the next row. In TOKENS:
    so it is now."""
    REFUSED = 16
    """In TOKENS: after what is accepted of its draft the client draws the next token, from the
    distribution that comes with the row; the id is none."""
    EXPECTED = 32
    """In TOKENS: the ring is closed, and the row had a draft made of what the client expected. The ids of
    those accepted come with the new one, and `accepted` is how many tokens the draft had."""


# Each operation on flags takes the time of many comparisons, and these are asked of every row.
_FLAGS: Final = {number: RowFlags(number) for number in range(1 << len(RowFlags))}
"""By their number on the wire."""
_SAMPLING: Final = frozenset(flags for flags in _FLAGS.values() if RowFlags.SAMPLE in flags)


@dataclass(slots=True)
class Row:
    """A run of consecutive tokens of one session; never changed.

    Not frozen, because that would more than double the time that making one takes, and each stage
    makes two for every row.
    """

    session: SessionId
    position: int
    count: int
    attempt: int = 0
    flags: RowFlags = RowFlags.NONE
    parents: tuple[int, ...] = ()
    """Of the draft's tokens, the last ones of the row: its n-th follows its `parents[n]`-th, -1 the
    last token before the draft."""
    accepted: int = 0
    """In STEP: how the draft before this row ended, in TOKENS: how this one does: the last token of
    it that the target agrees with, counted from 1 as the client sent them; 0: none. In a row that
    goes on: how many of the drafts before it may still be refused; those before them are the
    sequence's own as a whole."""
    mode: DraftMode = DraftMode.SHARED
    """How the draft is, or was, verified."""
    weights: bytes = field(default=b"", repr=False)
    """Float16: of the draft's tokens by what they were drawn from, [N], in DSD all of it, [N, V]; in a
    refusal the target's, [V]."""
    kept: tuple[bool, ...] = ()
    """For each token of the draft as the client sent it, whether a first stage has kept it: `parents`
    are of these alone. In TOKENS: so it was. Empty: nothing was left out."""

    @property
    def committed(self) -> int:
        """Tokens that are the sequence's own, before the draft."""
        return self.count - len(self.parents)

    @property
    def goes_on(self) -> bool:
        """In STEP: whether it is all draft, and worth something only if all of the last one is right."""
        return self.count == len(self.parents)

    @property
    def is_prefill(self) -> bool:
        """In STEP: whether this is more than a decode step, be it a small piece of a prompt."""
        return not self.samples or self.committed > DECODE_TOKENS

    @property
    def samples(self) -> bool:
        """In STEP: whether the last stage answers it."""
        return self.flags in _SAMPLING

    @property
    def survivors(self) -> tuple[int, ...]:
        """The draft's tokens in the row, each by its index in the draft as the client sent it."""
        return tuple(n for n, kept in enumerate(self.kept) if kept) or tuple(
            range(len(self.parents))
        )

    @property
    def draft_bytes(self) -> int:
        """What `pack_rows` adds for the draft."""
        if not self.parents and not self.kept:
            return len(self.weights)
        parents = 0 if is_chain(self.parents) else len(self.parents)
        return parents + -(-len(self.kept) // 8) + len(self.weights)


def is_chain(parents: Sequence[int]) -> bool:
    """Whether each token follows the one before it, as without a draft too."""
    return not parents or all(parent == node - 1 for node, parent in enumerate(parents))


def path_to(parents: Sequence[int], accepted: int) -> tuple[int, ...]:
    """A draft's tokens up to its `accepted`-th one, each by its index; 0: none."""
    path: list[int] = []
    node = accepted - 1
    while node >= 0:
        path.append(node)
        node = parents[node]
    return tuple(reversed(path))


def pack_rows(rows: Sequence[Row]) -> tuple[bytes, bytes]:
    """The rows' table, and what their drafts add: shapes (parents and bitmaps), then weights."""
    table, shapes, weights = [], bytearray(), []
    for row in rows:
        flags, drafted, pruned_from = int(row.flags), len(row.parents), len(row.kept)
        if drafted and not is_chain(row.parents):
            flags |= _TREE
            shapes += bytes(parent + 1 for parent in row.parents)
        if pruned_from:
            shapes += np.packbits(np.array(row.kept, bool), bitorder="little").tobytes()
        table.append(
            _ROW.pack(
                row.session, row.position, row.count, row.attempt, flags, drafted, row.accepted,
                _NUMBERS[row.mode], pruned_from,
            )
        )  # fmt: skip
        weights.append(row.weights)
    return b"".join(table), b"".join((shapes, *weights))


def unpack_rows(table: bytes, drafts: bytes) -> tuple[Row, ...]:
    """What `pack_rows` packed.

    Raises:
        FrameCorrupt: Flags or modes are unknown, a row has no token, or sizes do not fit.
            That parents make a tree, a bitmap has as many tokens, and weights are some, is for the
            receiver to check.
    """
    at, rows = 0, []
    for entry in _ROW.iter_unpack(table):
        session, position, count, attempt, number, drafted, accepted, mode, pruned_from = entry
        if not count or drafted > count:
            raise FrameCorrupt("The peer sent a frame with an empty row, or less than its draft.")
        flags = _FLAGS.get(number & ~_TREE)
        if flags is None:
            raise FrameCorrupt("The peer sent a frame with unknown row flags.")
        if mode >= len(_MODES):
            raise FrameCorrupt("The peer verifies drafts in a way that we do not know.")
        parents = _CHAIN[:drafted] if drafted else ()
        if number & _TREE:
            parents = tuple(parent - 1 for parent in drafts[at : at + drafted])
            at += drafted
            if len(parents) < drafted or is_chain(parents):
                raise FrameCorrupt("The peer sent a frame whose drafts do not fit their parents.")
        row = Row(SessionId(session), position, count, attempt, flags, parents, accepted)
        if pruned_from:
            size = -(-pruned_from // 8)
            row = replace(row, kept=_unpack_bitmap(drafts[at : at + size], pruned_from))
            at += size
        rows.append(row if mode == 0 else replace(row, mode=_MODES[mode]))
    return _with_weights(rows, drafts[at:])


def _with_weights(rows: Sequence[Row], packed: bytes) -> tuple[Row, ...]:
    if not packed and all(row.mode is DraftMode.SHARED for row in rows):
        return tuple(rows)
    singles = [len(row.parents) if row.mode in _ONE_WEIGHT_A_TOKEN else 0 for row in rows]
    wholes = [_num_distributions(row) for row in rows]
    distributions, left = sum(wholes), len(packed) - WEIGHT_BYTES * sum(singles)
    whole_bytes = left // max(1, distributions)
    if left < 0 or left != distributions * whole_bytes or whole_bytes % WEIGHT_BYTES:
        raise FrameCorrupt("The peer sent a frame with parents or weights of no draft.")
    at, weighed = 0, []
    for row, single, whole in zip(rows, singles, wholes, strict=True):
        size = single * WEIGHT_BYTES + whole * whole_bytes
        weighed.append(replace(row, weights=packed[at : at + size]) if size else row)
        at += size
    return tuple(weighed)


def _num_distributions(row: Row) -> int:
    """How many come with it in full."""
    if RowFlags.REFUSED in row.flags:
        return 1
    return len(row.parents) if row.mode is DraftMode.DSD else 0


def _unpack_bitmap(packed: bytes, size: int) -> tuple[bool, ...]:
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").astype(bool).tolist()
    if len(bits) < size or any(bits[size:]) or all(bits[:size]):
        raise FrameCorrupt(
            "The peer sent a frame that leaves tokens out of a draft it does not have."
        )
    return tuple(bits[:size])


_CHAIN = tuple(range(-1, MAX_DRAFTED - 1))


def id_bytes_of(ids: npt.NDArray[np.int32]) -> int:
    """How many bytes the largest takes; a negative one, which nobody has, takes all."""
    if not len(ids):
        return ID_BYTES[0]
    largest = int(ids.view(np.uint32).max())
    return next(n for n in ID_BYTES if largest < 1 << 8 * n)


def pack_ids(ids: npt.NDArray[np.int32], id_bytes: int) -> bytes:
    """The low bytes of each."""
    wide = ids.astype("<i4", copy=False)
    return wide.view(np.uint8).reshape(-1, 4)[:, :id_bytes].tobytes()


def unpack_ids(packed: bytes, id_bytes: int) -> npt.NDArray[np.int32]:
    """What `pack_ids` packed."""
    if id_bytes == 4:
        return np.frombuffer(packed, "<i4")
    if id_bytes == 2:
        return np.frombuffer(packed, "<u2").astype("<i4")
    wide = np.zeros((len(packed) // id_bytes, 4), np.uint8)
    wide[:, :id_bytes] = np.frombuffer(packed, np.uint8).reshape(-1, id_bytes)
    return wide.reshape(-1).view("<i4")
