"""What a round takes, plain and with a draft: [BB] eq. 5–8 for the pipe, [DC] for the client's link."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from engine.core.generation import DraftMode
from engine.speculation.message_sizes import down_bytes, up_bytes
from engine.speculation.pipelining import answer_s, levels_in_time

_EXPECTED_SHARE: Final = 0.5
"""Of what is drafted beside a closed ring: what goes into its rows. After a row with a draft comes one
without, if not all of it was right."""
SLOW_BYTES_PER_S: Final = 125e3
"""What a client's line is taken to carry while nothing is known of it: less than most do."""

_EXPECTED_DEPTH: Final = 5
"""Of trees beside a ring; what is right of them seldom reaches further, and each place takes time."""


class Source(StrEnum):
    """What drafts."""

    OFF = "off"
    LOOKUP = "lookup"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Option:
    """One way to make the next round."""

    source: Source = Source.OFF
    num_tokens: int = 0
    """N, drafted tokens in a row."""
    width: int = 1
    """Alternatives at each place; 1: a chain."""
    mode: DraftMode = DraftMode.SHARED
    ahead: int = 1
    """Chunks of so many tokens that are on their way at once; more than one: pipelined."""
    beside: bool = False
    """Whether the ring stays closed: the first stage is told what may come, and nobody waits for it."""

    def __post_init__(self) -> None:
        is_chain = self.width == 1 and self.source is Source.MODEL
        if self.mode is not DraftMode.SHARED and not is_chain:
            raise ValueError(f"{self.mode} is exact for chains of a model alone")
        if self.ahead > 1 and (self.width > 1 or self.mode is not DraftMode.SHARED):
            raise ValueError("only chains with shared noise can be pipelined")
        if self.beside and (self.ahead > 1 or self.mode is not DraftMode.SHARED):
            raise ValueError("beside a closed ring there are no chunks, and only shared noise")

    @property
    def is_plain(self) -> bool:
        """Whether nothing is drafted."""
        return self.source is Source.OFF

    @property
    def depth(self) -> int:
        """Places that it guesses in a row: a chain's length, or what a tree's usually is."""
        if self.width == 1:
            return self.num_tokens
        if self.beside:
            return min(self.num_tokens, _EXPECTED_DEPTH)
        return min(self.num_tokens, 1 + round(math.sqrt(self.num_tokens)))


PLAIN = Option()


@dataclass(frozen=True, slots=True)
class Costs:
    """Times and rates as measured or announced; replaced whole when one changes."""

    num_stages: int
    """n."""
    compute_s: float
    """t_comp: per stage and plain step of the whole batch."""
    compute_token_s: float
    """What each further token of a row adds, per stage and row: (m - 1) t_comp over tokens."""
    token_bytes: float
    """D: a token's hidden state, encoded."""
    bytes_per_s: float
    """S, of the slowest link between stages."""
    rtt_s: float
    """t_rtt, of a transfer between stages."""
    batch_size: int = 1
    """B."""
    client_rtt_s: float = 0.0
    """From the client to the first stage and back from the last: drafting waits for it."""
    up_bytes_per_s: float = float("inf")
    """The client's uplink."""
    down_bytes_per_s: float = float("inf")
    vocab_size: int = 0
    """Of what DSD and DSSD send."""
    replica_s: float = 0.0
    """DISCO: what the last stage's replica takes for a refused token; infinite: there is none."""
    takes_expected: bool = False
    """Whether the route's ends know drafts beside a closed ring."""
    draft_token_s: dict[Source, float] = field(default_factory=dict)
    """c per level of a chain or tree, by what drafts."""
    drawn_token_s: float = 0.0
    """The same of chains that are drawn, for one sequence after the other."""

    @property
    def plain_s(self) -> float:
        """A plain step of the batch, eq. 5."""
        return self.num_stages * (self.compute_s + self._hop_s(1.0))

    def round_s(self, option: Option, all_accepted: float = 0.0) -> float:
        """A round, eq. 6, or what passes between the answers to chunks; with the draft's time.

        Args:
            option: What is drafted; a plain one takes `plain_s`, and beside the ring only what is
                computed and sent more costs time.
            all_accepted: Chance that no token is refused, on which some modes depend.
        """
        if option.is_plain:
            return self.plain_s
        N = option.num_tokens
        B = self.batch_size
        if option.beside:
            tokens = _EXPECTED_SHARE * B * (N - option.width)
            token_s = self.compute_token_s + self.token_bytes / self.bytes_per_s
            return self.plain_s + self.num_stages * tokens * token_s
        compute_s = self.num_stages * (self.compute_s + B * self.compute_token_s * N)
        hops_s = self.num_stages * self._hop_s(1 + N)
        round_s = self.draft_s(option) + compute_s + hops_s + self._client_s(option, all_accepted)
        if option.ahead == 1:
            return round_s
        return answer_s(round_s, self._interval_s(option), all_accepted, option.ahead)

    def draft_s(self, option: Option) -> float:
        """c: a pass of the draft for each place."""
        token_s = self.draft_token_s.get(option.source, 0.0)
        if option.mode is not DraftMode.SHARED:
            token_s = self.drawn_token_s
        return option.depth * self.batch_size * token_s

    def in_time(self, option: Option) -> tuple[int, int]:
        """Beside a ring, what `levels_in_time` says of an option."""
        level_s = self.batch_size * self.draft_token_s.get(option.source, 0.0)
        return levels_in_time(option.depth, level_s, self.client_rtt_s, self.plain_s)

    def _interval_s(self, option: Option) -> float:
        """How fast chunks can follow one another: as the busiest part of the pipe takes them."""
        tokens = self.batch_size * option.num_tokens
        pass_s = self.compute_s + tokens * self.compute_token_s
        return max(self.draft_s(option), pass_s, tokens * self.token_bytes / self.bytes_per_s)

    def _hop_s(self, tokens: float) -> float:
        return self.rtt_s + self.batch_size * tokens * self.token_bytes / self.bytes_per_s

    def _client_s(self, option: Option, all_accepted: float) -> float:
        up = up_bytes(option.mode, option.num_tokens, self.vocab_size)
        refused = 1 - all_accepted
        down = all_accepted * down_bytes(option.mode, self.vocab_size, rejected=False)
        down += refused * down_bytes(option.mode, self.vocab_size, rejected=True)
        row_s = up / self.up_bytes_per_s + down / self.down_bytes_per_s
        # What a draft brings along passes all stages.
        row_s += (self.num_stages - 1) * up / self.bytes_per_s
        if option.mode is DraftMode.DISCO:
            row_s += refused * self.replica_s
        return self.client_rtt_s + self.batch_size * row_s
