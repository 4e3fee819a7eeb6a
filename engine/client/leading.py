"""Leading a batch's rounds: the rows that its client sends while the ring is open, and their drafts.

What look-up proposes is sent at once. A model takes its time, in a process of its own: a task waits
for it and then sends its rows in one frame, if the attempt is still the present one.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Coroutine
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from engine.client.asking import Asker
from engine.client.batch import AnswerMisfits, Batch, Sequence
from engine.client.beside import Beside
from engine.client.drafter import Drafter, Wanted
from engine.client.drafting import shallow
from engine.core.errors import EngineError, PeerUnreachable, RemoteProtocolError, WorkerFailed
from engine.core.generation import DraftMode
from engine.core.ids import PeerId, SessionId
from engine.core.plans import Route
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import Sessions
from engine.protocol.rows import Row, RowFlags
from engine.sampling.rejection import check_weights, read_weights
from engine.speculation.costs import PLAIN, Option, Source
from engine.speculation.tree import EMPTY, TokenTree
from engine.swarm.links import Links

logger = logging.getLogger(__name__)

_Made: TypeAlias = tuple[Sequence, Option, TokenTree | None, bytes]
"""A row to be: how its round is made, what is proposed (None: only what goes on from that), and what
that was drawn by."""


class Leading:
    """Of one batch.

    Args:
        batch: Its sequences, and how they are drafted.
        links: To the stages.
        asker: Asks the last one for the lead.
    """

    def __init__(self, batch: Batch, links: Links, asker: Asker) -> None:
        self._batch = batch
        self._links = links
        self._asker = asker
        self._drafter = batch.drafter
        self._drafting: set[asyncio.Task[None]] = set()
        self._reading = False
        """Whether the model reads some of the sequences just now."""
        self._beside = Beside(batch, links, self._begin)
        self._drawing: set[tuple[SessionId, int]] = set()
        """Sequences of which a token was refused, that draw another, and the attempt."""

    def go_on(self, route: Route, sequences: SequenceOf[Sequence]) -> None:
        """Send the next rows of sequences that wait for them, with what their drafts propose."""
        made: list[_Made] = []
        asked = PLAIN
        for sequence in sequences:
            if len(sequence.tree):  # the next answer is on its way
                made.append((sequence, sequence.option, None, b""))
                continue
            option, tree = self._at_once(sequence)
            asked = option if option.source is Source.MODEL else asked
            made.append((sequence, option, tree, b""))
        if asked.is_plain:
            self._send(route.first, made)
        else:
            self._begin(self._send_drafted(route.first, made, asked))

    def draw_again(self, route: Route, sequence: Sequence, row: Row, vocab_size: int) -> None:
        """Draw the token that the last stage has left to us.

        Raises:
            AnswerMisfits: It may not.
            RemoteProtocolError: Not so.
        """
        if sequence.finished or row.position != len(sequence.ids) + row.accepted:
            return  # of a round that is over
        if (row.session, row.attempt) in self._drawing:
            return  # a stage has passed on the row twice
        tree, mode, weights = sequence.tree, sequence.option.mode, read_weights(row.weights)
        if mode not in (DraftMode.DSSD, DraftMode.DISCO) or row.accepted >= len(tree):
            raise AnswerMisfits("Stages refused a token that they were not to judge.")
        if (
            row.kept
            or not sequence.sampling.temperature
            or len(weights) != vocab_size
            or not weights.any()
        ):
            raise RemoteProtocolError("The peer refused a token in a way that makes no sense.")
        check_weights(weights, weights[:0])
        self._drawing.add((row.session, row.attempt))
        self._begin(self._draw_again(route, sequence, row))

    def consider(self, route: Route, sequences: SequenceOf[Sequence]) -> None:
        """Draft for those that decode plainly, where that pays and can begin: beside them, or in the lead.

        Those whose tokens come together stay together: rows that go apart cost stages passes.
        """
        steering, drafter, drafting = self._batch.steering, self._drafter, self._batch.drafting
        plain = [sequence for sequence in sequences if not sequence.leads]
        if steering is None:
            if drafting is not None and drafting.always.beside:
                self._beside.tell(route, plain, drafting.always)
            return
        option = steering.wanted(plain)
        if option.is_plain:
            return
        if option.source is Source.MODEL and drafter is not None:
            unread = [sequence for sequence in plain if not drafter.follows(sequence)]
            if unread:
                if not self._reading:
                    # They are read beside plain decoding: nobody waits for it.
                    self._reading = True
                    steering.disturbed()
                    self._begin(self._read(drafter, unread))
                return
        if option.beside:
            self._beside.tell(route, plain, option)
            return
        sessions = Sessions(sessions=tuple(sequence.session for sequence in plain))
        self._asker.tell([route.last], Kind.LEAD, sessions)
        for sequence in plain:
            sequence.leads = True
            steering.takes_lead(sequence)

    def end(self) -> None:
        """Wait for no draft any more, and let them be forgotten."""
        for task in self._drafting:
            task.cancel()
        if self._drafter is not None:
            self._drafter.close(self._batch.sequences)

    def _at_once(self, sequence: Sequence) -> tuple[Option, TokenTree]:
        """How the next round is made; with a model's option what it proposes is still to come."""
        if self._batch.drafting is None or not sequence.leads or sequence.draft_depth <= 0:
            return PLAIN, EMPTY
        steering = self._batch.steering
        option = self._batch.drafting.always if steering is None else steering.decision.option
        if option.source is Source.LOOKUP and sequence.draft is not None:
            tree = sequence.draft.propose(sequence.ids, option.num_tokens)
            if len(tree) or steering is None or steering.goes_together:
                return option, tree
            option = steering.when_silent.option
        return option, EMPTY

    async def _send_drafted(self, first: PeerId, made: SequenceOf[_Made], option: Option) -> None:
        """Wait for what the model proposes for those that are to have its option, and send all."""
        batch, attempt = self._batch, self._batch.attempt
        sequences = [sequence for sequence, own, *_ in made if own == option]
        proposed: dict[SessionId, tuple[TokenTree, bytes]] = {}
        try:
            if self._drafter is not None:
                proposed = await self._proposed(self._drafter, sequences, option)
        except EngineError:  # the drafter has told it; the answer goes on without
            for sequence in sequences:
                sequence.leads = False
        if batch.attempt == attempt and not batch.has_failed:
            self._send(
                first,
                [
                    (sequence, own, *proposed.get(sequence.session, (tree, weights)))
                    for sequence, own, tree, weights in made
                ],
            )

    async def _proposed(
        self, drafter: Drafter, sequences: SequenceOf[Sequence], option: Option
    ) -> dict[SessionId, tuple[TokenTree, bytes]]:
        """Of each sequence what the model proposes, and what that was drawn by."""
        # Without chance all modes are the same.
        drawn = [
            sequence
            for sequence in sequences
            if option.mode is not DraftMode.SHARED and sequence.sampling.temperature
        ]
        drawn_sessions = {sequence.session for sequence in drawn}
        picked = [s for s in sequences if s.session not in drawn_sessions]
        proposed: dict[SessionId, tuple[TokenTree, bytes]] = {}
        if picked:
            wanted = [Wanted(sequence, sequence.ids) for sequence in picked]
            found = await drafter.propose(wanted, option.num_tokens, option.width)
            proposed |= {s.session: (tree, b"") for s, tree in zip(picked, found, strict=True)}
        if drawn:
            wanted = [Wanted(sequence, sequence.ids) for sequence in drawn]
            most = [min(option.num_tokens, sequence.draft_depth) for sequence in drawn]
            chains = await drafter.draw(wanted, most, whole=option.mode is DraftMode.DSD)
            for sequence, chain in zip(drawn, chains, strict=True):
                proposed[sequence.session] = TokenTree.chain(chain.ids), chain.weights
        return proposed

    async def _draw_again(self, route: Route, sequence: Sequence, row: Row) -> None:
        batch = self._batch
        try:
            assert self._drafter is not None
            token = await self._drafter.draw_again(sequence, row.accepted, row.weights)
        except EngineError as error:
            if batch.attempt == row.attempt:
                batch.stop_drafting()
                batch.fail(error)
            return
        finally:
            self._drawing.discard((row.session, row.attempt))
        flags = row.flags & ~RowFlags.REFUSED
        if token in sequence.sampling.stop_token_ids:
            flags = flags & ~RowFlags.LENGTH | RowFlags.EOS
        if batch.receive(replace(row, flags=flags, weights=b""), token):
            self.go_on(route, [sequence])

    def _send(self, first: PeerId, made: SequenceOf[_Made]) -> None:
        """Send rows with these drafts, and what goes on from them; None: only that."""
        batch, steering = self._batch, self._batch.steering
        rows: list[Row] = []
        ids: list[int] = []
        # A round of nothing closes the ring.
        leads = any(tree is None or (len(tree) and s.draft_depth > 0) for s, _, tree, _ in made)
        for sequence, option, tree, weights in made:
            if tree is None:
                if steering is not None:
                    steering.begins(sequence, option, len(sequence.tree))
                self._send_ahead(sequence, rows, ids)
                continue
            if steering is not None:
                tree = shallow(tree, sequence.draft_depth)
                sequence.leads = leads
                steering.begins(sequence, replace(option, ahead=1), len(tree))
            sequence.option = option
            row, tokens = sequence.next_row(batch.attempt, tree, weights)
            rows.append(row)
            ids += tokens
            self._send_ahead(sequence, rows, ids)
        if not rows:
            return
        try:
            frame = Frame(Kind.STEP, b"", tuple(rows), np.array(ids, np.int32))
            self._links.send(first, frame)
        except PeerUnreachable as error:
            batch.fail(error)

    def _send_ahead(self, sequence: Sequence, rows: list[Row], ids: list[int]) -> None:
        """Add rows of what look-up says behind all that is on its way, if it still says that too."""
        option, steering = sequence.option, self._batch.steering
        if option.ahead == 1 or sequence.draft is None or not len(sequence.tree):
            return
        if steering is not None and steering.decision.option != option:
            return  # let what is on its way arrive first
        assumed, size = sequence.assumed, option.num_tokens
        wanted = len(assumed) + size * (option.ahead - 1 - len(sequence.behind))
        tree = shallow(sequence.draft.propose(sequence.ids, wanted), sequence.draft_depth)
        if not tree.is_chain() or list(tree.ids[: len(assumed)]) != assumed:
            return
        for start in range(len(assumed), len(tree), size):
            chunk = tree.ids[start : start + size]
            rows.append(sequence.row_ahead(self._batch.attempt, chunk))
            ids += chunk

    async def _read(self, drafter: Drafter, sequences: SequenceOf[Sequence]) -> None:
        try:
            with contextlib.suppress(EngineError):  # the drafter has told it
                await drafter.follow([Wanted(s, list(s.ids)) for s in sequences])
        finally:
            self._reading = False

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="drafting")
        self._drafting.add(task)
        task.add_done_callback(functools.partial(self._ended, self._batch.attempt))

    def _ended(self, attempt: int, task: asyncio.Task[None]) -> None:
        """Go on without drafts after one that went wrong in a way nobody thought of."""
        self._drafting.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        logger.error("drafting went wrong", exc_info=error)
        if self._batch.attempt == attempt:
            self._batch.stop_drafting()
            self._batch.fail(
                WorkerFailed("Drafting went wrong, as the log tells; the answer goes on without.")
            )
