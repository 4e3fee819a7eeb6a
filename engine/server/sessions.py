"""The agent's record of the sessions that pass through this stage, and their KV room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.core.errors import CacheFull, StageRefused
from engine.core.generation import PrefixUse
from engine.core.ids import PeerId, SessionId
from engine.core.kv_room import PAGE_TOKENS, KvRoom, kv_room
from engine.core.plans import Hop, Route, Span
from engine.protocol.frames import Codec
from engine.protocol.messages import OpenRequest
from engine.protocol.rows import MAX_DRAFTED, Row, RowFlags
from engine.server.drafts import OpenDrafts
from engine.server.expectation import Expectation
from engine.server.kept import Kept

REPLAYS_PER_TOKEN = 16
"""Tokens whose outputs may be replayed for each one computed: at first, all there are, so often."""


@dataclass(slots=True)
class Session:
    """One sequence on its way through this stage."""

    id: SessionId
    owner: PeerId
    """The client's node; only it may renew or close."""
    request: int
    """Names the sequences that were opened together, among the owner's."""
    pass_rows: int
    """The most of them that one forward pass shall decode."""
    route: Route
    index: int
    """Our place in the route."""
    capacity_tokens: int
    """Of prompt and answer."""
    draft_tokens: int
    """Of the largest draft, for which there is room besides."""
    prompt_tokens: int
    attempt: int
    room_bytes: int
    """Where the blocks compute."""
    ram_room_bytes: int
    expires_s: float
    prune_threshold: float | None = None
    """τ of a first stage; 0: nothing is left out; None: what is found worth it."""
    lossy: Codec = Codec.RAW
    """How its hidden states may be rounded on the wire; RAW: not at all."""
    position: int = 0
    """Tokens whose rows have arrived or are reused: the next row must start here (or earlier, to
    replay), or where what is accepted of its drafts ends."""
    drafts: OpenDrafts = field(default_factory=OpenDrafts)
    """Of the last rows that arrived."""
    expectation: Expectation | None = None
    """What its client has last said of what will come, at a first stage; None: nothing yet."""
    settled: list[Kept] = field(default_factory=list)
    """What rows say of the drafts before them that the worker has not been given yet."""
    has_begun: bool = False
    """Whether a row has arrived."""
    prefixes: PrefixUse = PrefixUse.NONE
    reused_from: SessionId | None = None
    """What its first tokens were taken from."""
    opened_way: tuple[Hop, ...] = ()
    """The stages up to ours when it was opened."""
    forked_tokens: int = 0
    """What it takes over from another open session."""
    ids: npt.NDArray[np.int32] | None = None
    """[capacity]: of the tokens that the worker has or was given, and of no others: what only waited
    may be dropped. None when nobody will ask."""
    computed: int = 0
    """Tokens computed whose outputs have been handed on: less than have arrived."""
    send_from: int = 0
    """The next stage has the outputs of the tokens before this one."""
    sent_to: int | None = None
    """On a repaired route: outputs sent so far, so that none leaves a gap."""
    owed_to: int = 0
    """Outputs up to here were computed behind a replay that is under way, which sends them too."""
    is_deaf: bool = False
    """Rows from the stage before us may be missing: ignore them until the route is repaired."""
    is_mute: bool = False
    """The next stage is out of reach: keep what is computed until the route is repaired."""
    client_leads: bool = False
    """At the last stage: what comes next goes to the client alone, whatever its row says."""
    is_routed: bool = False
    """The client has led the present attempt already."""
    replay_tokens_left: int = 0
    """Earned by computing, spent by replays."""

    def arrived(self, row: Row, ids: npt.NDArray[np.int32]) -> None:
        """Take note of a row, and of what it says about the drafts before it.

        Args:
            row: Passed `arrivals.check_row`.
            ids: `[row.count]`
        """
        settled = self.drafts.settled(row) if row.goes_on or row.position > self.position else []
        self.settled += settled
        self.drafts.arrived(row, ids)
        if not row.goes_on:
            self.position = row.position + row.committed
        elif settled:
            self.position = settled[-1].end

    def with_expected(
        self, row: Row, ids: npt.NDArray[np.int32]
    ) -> tuple[Row, npt.NDArray[np.int32]]:
        """A row, with what its client expects to follow it if it is one of the closed ring.

        Args:
            row: Passed `arrivals.check_row`, has not arrived yet, and nothing waits before it.
            ids: `[row.count]`
        """
        if self.expectation is None or row.count > 1 or row.flags is not RowFlags.SAMPLE:
            return row, ids
        settled = self.drafts.settled(row) if row.position > self.position else []
        news = np.concatenate([*(kept.ids for kept in settled), ids]).tolist()
        tree = self.expectation.beyond(row.position + 1 - len(news), news)
        if not len(tree):
            return row, ids
        row = replace(row, count=1 + len(tree), parents=tree.parents)
        return row, np.array([*ids, *tree.ids], np.int32)

    def take_settled(self) -> list[Kept]:
        """Make tokens the sequence's own that were computed and sent on as drafts.

        Returns:
            What they gave, to be kept with the outputs before it.
        """
        taken, self.settled = self.settled, []
        for accepted in taken:
            self._take(accepted)
        return taken

    def _take(self, accepted: Kept) -> None:
        start, end = accepted.position, accepted.end
        if self.ids is not None:
            self.ids[start:end] = accepted.ids
        self.replay_tokens_left += len(accepted.ids) * REPLAYS_PER_TOKEN
        self.computed = end
        if self.sent_to is not None and self.sent_to >= start:
            self.sent_to = end

    def begin(self, position: int, ids: npt.NDArray[np.int32]) -> None:
        """Note that the worker has been given a row: what it held from there on is overwritten."""
        self.computed = min(self.computed, position)
        if self.ids is not None:
            self.ids[position : position + len(ids)] = ids

    def begins_with(self, other: Session, tokens: int) -> None:
        """Take note that the first tokens are another one's."""
        if other.ids is None:
            self.ids = None
        elif self.ids is not None:
            self.ids[:tokens] = other.ids[:tokens]

    @property
    def span(self) -> Span:
        """The blocks that this stage computes for it."""
        return self.route.hops[self.index].span

    @property
    def is_first(self) -> bool:
        """Whether we embed its ids."""
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """Whether we sample its tokens."""
        return self.index == len(self.route.hops) - 1

    @property
    def next_peer(self) -> PeerId:
        """Where hidden states, or at the last stage new ids, go."""
        return self.route.hops[(self.index + 1) % len(self.route.hops)].peer

    @property
    def way(self) -> tuple[Hop, ...]:
        """The stages up to ours."""
        return self.route.hops[: self.index + 1]

    @property
    def previous_peer(self) -> PeerId:
        """Where rows come from; at the first stage, those that the client does not send."""
        return self.route.hops[self.index - 1].peer

    def accepts_from(self, peer: PeerId) -> bool:
        """Whether rows may come from `peer`: the stage before us; at the first, the client too."""
        return peer == self.previous_peer or (self.is_first and peer == self.owner)

    def hold(self, attempt: int) -> None:
        """Begin a new attempt: rows of older ones no longer count."""
        self.attempt = attempt
        self.position, self.settled = self.computed, []
        self.drafts.clear()
        self.expectation = None
        self.is_deaf = self.is_mute = self.is_routed = self.client_leads = False

    def lead(self, route: Route, index: int, send_from: int) -> None:
        """Go along `route` from now on, the outputs of token `send_from` first."""
        self.route, self.index, self.is_routed = route, index, True
        self.is_deaf = self.is_mute = False
        self.send_from = self.sent_to = self.owed_to = send_from

    def emit(self, position: int, count: int) -> int:
        """Note that outputs of `[position, position + count)` are there.

        Returns:
            How many of the first ones do not go onward, be it that the next stage has them or that
            it is out of reach.
        """
        end = position + count
        self.replay_tokens_left += max(0, end - self.computed) * REPLAYS_PER_TOKEN
        self.computed = end
        start = max(position, self.send_from)
        if self.is_mute or start >= end:
            return count
        if self.sent_to is not None:
            if start > self.sent_to:
                self.owed_to = end  # now, the next stage would find a gap
                return count
            self.sent_to = max(self.sent_to, end)
        return start - position


@dataclass(slots=True)
class SessionTable:
    """All sessions of this stage. Room is reserved when they open, so no step fails for memory."""

    local_peer: PeerId
    model_id: str
    num_blocks: int
    span: Span
    kv_budget_bytes: int
    """Where the blocks compute."""
    kv_ram_budget_bytes: int
    """In RAM, for the shares of sequences that their callers want there."""
    block_token_bytes: int
    """KV bytes of one token in one block."""
    lease_s: float
    max_draft_tokens: int = MAX_DRAFTED
    """The longest draft that a pass has room for."""
    in_pages: bool = False
    """Whether the device gives room in pages, which hold their tokens in all of our blocks."""
    used_bytes: int = 0
    used_ram_bytes: int = 0
    _sessions: dict[SessionId, Session] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session: SessionId) -> Session | None:
        """The session, if it is open."""
        return self._sessions.get(session)

    def all(self) -> Iterable[Session]:
        """Every open session."""
        return self._sessions.values()

    @property
    def free_tokens(self) -> KvRoom:
        """Tokens that still fit, through our whole span."""
        return self._tokens(
            self.kv_budget_bytes - self.used_bytes, self.kv_ram_budget_bytes - self.used_ram_bytes
        )

    @property
    def total_tokens(self) -> KvRoom:
        """Tokens that fit when nothing is open."""
        return self._tokens(self.kv_budget_bytes, self.kv_ram_budget_bytes)

    def room_bytes(self, tokens: int, span: Span) -> int:
        """What a sequence of so many tokens takes in the blocks of `span`, beside them."""
        if self.in_pages:
            pages = -(-tokens // PAGE_TOKENS)
            return pages * PAGE_TOKENS * self.block_token_bytes * len(self.span)
        return tokens * self.block_token_bytes * len(span)

    def open(self, request: OpenRequest, owner: PeerId, now_s: float) -> list[Session]:
        """Reserve room for all of a request's sequences, or for none.

        Raises:
            CacheFull: Not enough room is left.
            StageRefused: Another model, a route that does not pass here, or ids in use.
        """
        if request.model_id != self.model_id:
            raise StageRefused(
                f"This stage holds {self.model_id}, not {request.model_id}; "
                "all members of a swarm must run the same model."
            )
        longest = max(sequence.draft_tokens for sequence in request.sequences)
        if longest > self.max_draft_tokens:
            raise StageRefused(
                f"The request wants room for drafts of {longest} tokens, but this stage verifies at "
                f"most {self.max_draft_tokens} at once; draft fewer."
            )
        route = request.route()
        index = self.place(route)
        span = route.hops[index].span
        rooms = [
            kv_room(s.capacity_tokens + s.draft_tokens, s.kv_offload) for s in request.sequences
        ]
        sessions = [
            Session(
                id=SessionId(sequence.session),
                owner=owner,
                request=request.request,
                pass_rows=request.pass_rows,
                route=route,
                index=index,
                capacity_tokens=sequence.capacity_tokens,
                draft_tokens=sequence.draft_tokens,
                prompt_tokens=sequence.prompt_tokens,
                attempt=request.attempt,
                room_bytes=self.room_bytes(room.device, span),
                ram_room_bytes=room.ram * self.block_token_bytes * len(span),
                expires_s=now_s + self.lease_s,
                prune_threshold=sequence.prune_threshold,
                lossy=sequence.lossy_codec(),
            )
            for sequence, room in zip(request.sequences, rooms, strict=True)
        ]
        ids = {session.id for session in sessions}
        if len(ids) < len(sessions) or ids & self._sessions.keys():
            raise StageRefused("A session id of the request is in use already.")
        self._check_room(sessions)
        self.used_bytes += sum(session.room_bytes for session in sessions)
        self.used_ram_bytes += sum(session.ram_room_bytes for session in sessions)
        self._sessions |= {session.id: session for session in sessions}
        return sessions

    def _check_room(self, sessions: list[Session]) -> None:
        wanted = sum(session.capacity_tokens + session.draft_tokens for session in sessions)
        room_bytes = sum(session.room_bytes for session in sessions)
        ram_bytes = sum(session.ram_room_bytes for session in sessions)
        total, free = self.total_tokens, self.free_tokens
        if room_bytes > self.kv_budget_bytes:
            raise StageRefused(
                f"The request needs KV room for {wanted} tokens, but this stage has room for "
                f"{total.device} in all; ask for fewer tokens or send a smaller batch."
            )
        if ram_bytes > self.kv_ram_budget_bytes:
            raise StageRefused(
                f"The request wants a part of its {wanted} tokens' KV room in RAM, but this stage "
                f"has room for {total.ram} there in all; lower client.kv_offload."
            )
        if self.used_bytes + room_bytes > self.kv_budget_bytes:
            raise CacheFull(
                f"No KV room for {wanted} more tokens ({free.device} are free); "
                "wait for other requests to end, or ask for fewer tokens."
            )
        if self.used_ram_bytes + ram_bytes > self.kv_ram_budget_bytes:
            raise CacheFull(
                f"No KV room in RAM for its part of {wanted} more tokens ({free.ram} are free "
                "there); wait for other requests to end, or lower client.kv_offload."
            )

    def _tokens(self, device_bytes: int, ram_bytes: int) -> KvRoom:
        token_bytes = self.block_token_bytes * len(self.span)
        return KvRoom(max(0, device_bytes) // token_bytes, max(0, ram_bytes) // token_bytes)

    def place(self, route: Route) -> int:
        """Our index in a route.

        Raises:
            StageRefused: It does not pass here, or makes no sense.
        """
        index = next((i for i, hop in enumerate(route.hops) if hop.peer == self.local_peer), None)
        if index is None:
            raise StageRefused("The route does not pass through this stage.")
        cuts = [0, *(hop.span.end for hop in route.hops)]
        if cuts[-1] != self.num_blocks or any(
            hop.span.start != cut or hop.span.end <= cut
            for hop, cut in zip(route.hops, cuts, strict=False)
        ):
            raise StageRefused("The route does not cover every block once, in order.")
        span = route.hops[index].span
        if not self.span.covers(span):
            raise StageRefused(f"This stage holds blocks {self.span}, not {span}.")
        return index

    def superseded(self, request: OpenRequest, owner: PeerId) -> list[SessionId]:
        """Sessions of the same owner that a request opens anew, for a later attempt."""
        found = (self._sessions.get(SessionId(each.session)) for each in request.sequences)
        return [
            session.id
            for session in found
            if session is not None and session.owner == owner and session.attempt < request.attempt
        ]

    def keep(self, sessions: Iterable[SessionId], owner: PeerId, now_s: float) -> None:
        """Renew leases."""
        for session in self._owned(sessions, owner):
            session.expires_s = now_s + self.lease_s

    def open_rings(self, sessions: Iterable[SessionId], owner: PeerId) -> None:
        """Let the client lead from the next token on."""
        for session in self._owned(sessions, owner):
            session.client_leads = True

    def close(self, sessions: Iterable[SessionId], owner: PeerId) -> list[Session]:
        """Drop sessions of `owner`; ids that are unknown or another's are left alone."""
        return [self._remove(session) for session in self._owned(sessions, owner)]

    def drop(self, sessions: Iterable[SessionId]) -> list[Session]:
        """Drop sessions whoever owns them."""
        return [self._remove(s) for i in sessions if (s := self._sessions.get(i)) is not None]

    def drop_owned(self, owner: PeerId) -> list[Session]:
        """Drop all sessions of one client."""
        return [self._remove(s) for s in list(self._sessions.values()) if s.owner == owner]

    def expired(self, now_s: float) -> list[Session]:
        """Drop and return the sessions whose lease has lapsed."""
        return [self._remove(s) for s in list(self._sessions.values()) if s.expires_s <= now_s]

    def clear(self) -> list[Session]:
        """Drop everything."""
        return [self._remove(session) for session in list(self._sessions.values())]

    def _owned(self, sessions: Iterable[SessionId], owner: PeerId) -> list[Session]:
        found = (self._sessions.get(session) for session in sessions)
        return [session for session in found if session is not None and session.owner == owner]

    def _remove(self, session: Session) -> Session:
        del self._sessions[session.id]
        self.used_bytes -= session.room_bytes
        self.used_ram_bytes -= session.ram_room_bytes
        return session
