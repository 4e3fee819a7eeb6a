"""Drafts beside the closed ring: the first stage is told what may come, and nobody waits for it.

A sequence's ring goes on as if nothing was drafted. Of each id that comes the client says what may follow:
the token that is computed just then, and more. Whatever of it the first stage has when that token is there
goes into the row with it (`engine.server.expectation`); the answer then brings several ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, Final

import numpy as np

from engine.client.batch import Batch, Sequence
from engine.client.drafter import Drafter, Wanted
from engine.client.drafting import shallow
from engine.core.errors import EngineError, PeerUnreachable
from engine.core.ids import SessionId
from engine.core.plans import Route
from engine.core.protocol_window import EXPECTING
from engine.protocol.frames import Frame, Kind
from engine.protocol.rows import Row
from engine.speculation.costs import PLAIN, Option, Source
from engine.speculation.pipelining import levels_in_time
from engine.speculation.tree import TokenTree
from engine.swarm.links import Links

_NEWEST_SHARE: Final = 0.25
"""Of the newest time in the mean."""


def can_expect(links: Links, route: Route) -> bool:
    """Whether both ends of a route know what it is to be told what a client expects."""
    return all(links.protocol(peer) >= EXPECTING for peer in (route.first, route.last))


class Beside:
    """Of one batch.

    Args:
        batch: Its sequences, and how they are drafted.
        links: To the stages.
        begin: Runs what waits for the draft model.
    """

    def __init__(
        self, batch: Batch, links: Links, begin: Callable[[Coroutine[Any, Any, None]], None]
    ) -> None:
        self._batch = batch
        self._links = links
        self._begin = begin
        self._option = PLAIN
        self._answered_s: dict[SessionId, float] = {}
        """When each sequence's last ids came."""
        self._answer_s = math.inf
        """What passes between them, lately."""
        self._untold: dict[SessionId, Sequence] = {}
        """Sequences with new ids, for whom the model is still to be asked."""
        self._asking: int | None = None
        """The attempt whose task asks it."""

    def tell(self, route: Route, sequences: SequenceOf[Sequence], option: Option) -> None:
        """Say what may follow the newest ids of sequences, now or when the model has answered."""
        self._time(sequences)
        if not can_expect(self._links, route):
            return
        if option.source is Source.LOOKUP:
            self._send(
                route,
                option,
                [
                    (sequence, len(sequence.ids), draft.propose(sequence.ids, option.num_tokens))
                    for sequence in sequences
                    if (draft := sequence.draft) is not None
                ],
            )
            return
        self._option = option
        self._untold |= {sequence.session: sequence for sequence in sequences}
        drafter, attempt = self._batch.drafter, self._batch.attempt
        if drafter is not None and self._asking != attempt:
            self._asking = attempt
            self._begin(self._ask(drafter, route, attempt))

    async def _ask(self, drafter: Drafter, route: Route, attempt: int) -> None:
        """Ask the model as long as there are new ids: those that come meanwhile wait for the next turn."""
        batch = self._batch
        try:
            while self._untold and batch.attempt == attempt and not batch.has_failed:
                sequences, self._untold = list(self._untold.values()), {}
                option = self._option
                wanted = [Wanted(sequence, list(sequence.ids)) for sequence in sequences]
                level_s = drafter.level_s(len(wanted))
                _, depth = levels_in_time(
                    option.depth, level_s, self._away_s(route), self._answer_s
                )
                trees = await drafter.propose(wanted, option.num_tokens, option.width, depth=depth)
                if batch.attempt == attempt and not batch.has_failed:
                    lengths = [len(one.ids) for one in wanted]
                    self._send(route, option, zip(sequences, lengths, trees, strict=True))
        except EngineError:
            pass  # the drafter has told it; the ring goes on
        finally:
            if self._asking == attempt:
                self._asking = None

    def _time(self, sequences: SequenceOf[Sequence]) -> None:
        """Learn how fast the ring goes around."""
        now_s = self._batch.clock.monotonic_s()
        for sequence in sequences:
            if (before_s := self._answered_s.get(sequence.session)) is not None:
                # One that is late must not count for long: most are not.
                took_s = min(now_s - before_s, 2 * self._answer_s)
                known_s = took_s if math.isinf(self._answer_s) else self._answer_s
                self._answer_s = known_s + _NEWEST_SHARE * (took_s - known_s)
            self._answered_s[sequence.session] = now_s

    def _away_s(self, route: Route) -> float:
        """From the last stage to us and on to the first, as far as known."""
        rtts_s = [self._links.neighbours.rtt_s(peer) for peer in (route.first, route.last)]
        return sum(rtt_s / 2 for rtt_s in rtts_s if rtt_s is not None)

    def _send(
        self, route: Route, option: Option, proposed: Iterable[tuple[Sequence, int, TokenTree]]
    ) -> None:
        """Tell the first stage what was proposed behind so many ids, as far as that can still come."""
        batch = self._batch
        rows: list[Row] = []
        ids: list[int] = []
        for sequence, length, whole in proposed:
            tree = shallow(whole.beyond(sequence.ids[length:]), sequence.draft_depth)
            if sequence.finished or sequence.leads:
                continue
            # The first level alone is no draft: it guesses what is computed already.
            drafts = max(tree.depths(), default=0) > 1
            if batch.steering is not None:
                batch.steering.begins(sequence, option, len(tree) if drafts else 0)
            if not drafts:
                continue
            position = len(sequence.ids)
            rows.append(
                Row(sequence.session, position, len(tree), batch.attempt, parents=tree.parents)
            )
            ids += tree.ids
            sequence.expects, sequence.option = True, option
        if not rows:
            return
        try:
            frame = Frame(Kind.EXPECT, b"", tuple(rows), np.array(ids, np.int32))
            self._links.send(route.first, frame)
        except PeerUnreachable as error:
            batch.fail(error)
