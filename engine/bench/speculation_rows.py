"""From the answers of plain and speculative decoding to the numbers that the bench reports. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from engine.bench.measured import Counters, Measured
from engine.bench.quantities import LinkShaping
from engine.bench.speculation_presets import MODES
from engine.bench.speculation_prompts import PromptKind
from engine.core.generation import DraftMode, Pipelined, Speculation
from engine.protocol.frames import HEADER_BYTES
from engine.protocol.rows import ROW_BYTES

NEVER_SLOWER = 0.97
"""Of plain decoding's speed: what a way to draft that is never slower must have in its interval."""


class RoundTime(BaseModel):
    """Where the time of a round goes, in ms; lines by their rate and delay, the rest measured."""

    draft: float
    up: float
    """From the client to the first stage. With `auto`, which often sends nothing, it is in `other`;
    so is `down`."""
    stages: float
    """From a frame's arrival at a stage to its answer, all stages together."""
    between: float
    """The lines from one stage to the next."""
    down: float
    """From the last stage to the client."""
    other: float
    """What nothing else explains: the lines' daemons, the client, waiting for other rows."""


class CompactionTime(BaseModel):
    """What bringing together the kept tokens of trees takes, in ms of a pass through all stages."""

    before: float
    """In passes that could not do without it: a part of the stages' time."""
    after: float
    """When the answer had been sent: nobody has waited for it."""


class Row(BaseModel):
    """One way to draft for one kind of prompts, beside plain decoding of the same prompts."""

    link: str
    batch: int
    prompts: PromptKind
    mode: str
    draft: str
    pipelined: Pipelined = "auto"
    draft_tokens: int
    """The most for a round; `auto` decides itself."""
    temperature: float = 0.0
    prunes: bool = True
    """Whether the first stage might leave out drafted tokens."""
    pruned_share: float = 0.0
    """Of the drafted tokens: what it did leave out."""
    emulated: bool = False
    """Whether passes and drafts took as long as was asked for, instead of what they need here."""
    speedup: float
    """Tokens/s over those of plain decoding just before or after, median over the pairs."""
    speedup_interval: tuple[float, float]
    """In which the median lies: 19 times of 20 from 6 pairs on, else from the least to the most."""
    pairs: int = 1
    acceptance: float
    """Accepted over drafted tokens."""
    tokens_per_round: float
    """That are committed, the target's own included."""
    drafted_per_round: float
    up_bytes_per_round: float
    """Of one sequence: ids and parents of drafts. With a batch of one exact, with more the frames'
    headers are in it, as far as rows do not share them; with `auto`, chunks ahead and drafts beside a closed
    ring, which have no row a round, all of the rows' frames."""
    down_bytes_per_round: float
    """The same of answers. Framing comes on top, per row 24 bytes and per frame 36."""
    round_ms: float
    round_times_ms: RoundTime
    compute_ms: float
    """Of a pass, through all stages; a part of the stages' time."""
    compaction_ms: CompactionTime
    plain_step_ms: float
    plain_compute_ms: float
    replica_ms: float = 0.0
    """In DISCO: what the last stage's replica of the draft needed for a refused token."""
    refused_share: float = 0.0
    """In DISCO: of the rounds, those in which it was asked."""
    mode_rounds: dict[str, int] = {}
    """Rounds with a draft, by how it was verified: with the mode `auto` as the controller has chosen, and
    DSSD where DISCO found no replica."""
    ids_equal: bool | None
    """Whether the answers are plain decoding's, as far as both were waited for; null where they only
    follow the same distribution."""

    @property
    def rate_mbit_per_s(self) -> float:
        """Of the link, by its name."""
        return float(self.link.partition("mbit")[0])

    @property
    def may_be_as_fast(self) -> bool:
        """Whether it may be no slower than plain decoding, as far as its interval tells."""
        return self.speedup_interval[1] >= NEVER_SLOWER


@dataclass(frozen=True, slots=True)
class Setting:
    """What pairs were measured in."""

    link: str
    prompts: PromptKind
    network: LinkShaping | None = None
    """What the client's lines and those between stages are like; None: nobody said."""
    ideal_client_link: bool = False
    temperature: float = 0.0
    prunes: bool = True
    emulated: bool = False
    slow_down: float = 1.0
    """All took so many times as long as is told."""


def row_of(
    setting: Setting, way: Speculation, plain: Sequence[Measured], drafted: Sequence[Measured]
) -> Row:
    """The comparison's numbers.

    Args:
        setting: Of all the answers.
        way: How they were drafted.
        plain: Answers without drafts.
        drafted: The same answers with them, in the same order.
    """
    batch_size = len(plain[0].arrivals_s)
    ratios = [tokens_per_s(b) / tokens_per_s(a) for a, b in zip(plain, drafted, strict=True)]
    proposed = sum(measured.drafted_tokens for measured in drafted)
    accepted = sum(measured.accepted_tokens for measured in drafted)
    # The round of each first token is the prompt's, and no draft's.
    rounds = max(1, sum(measured.rounds - batch_size for measured in drafted))
    tokens = sum(len(times) - 1 for measured in drafted for times in measured.arrivals_s)
    up = sum(measured.sent_row_bytes for measured in drafted) / rounds
    answers = sum(_answers(measured, way) for measured in drafted)
    down = sum(map(_answered_bytes, drafted)) / max(1, answers)
    framing = ROW_BYTES + (HEADER_BYTES if batch_size == 1 else 0)
    ms = 1e3 / setting.slow_down
    round_ms = ms * sum(map(decode_s, drafted)) * batch_size / rounds
    draft_ms = ms * sum(measured.draft_s for measured in drafted) * batch_size / rounds
    if way.pipelined == "beside":  # nobody waits for it
        draft_ms = 0.0
    is_led = _has_row_a_round(way)
    known = [
        draft_ms,
        1e3 * _client_line_s(setting, batch_size * up) if is_led else 0.0,
        ms * statistics.median(_pass_s(one, "local_s") for one in drafted),
        1e3 * statistics.median(_between_s(setting, measured) for measured in drafted),
        1e3 * _client_line_s(setting, batch_size * down) if is_led else 0.0,
    ]
    times = dict(zip(("draft", "up", "stages", "between", "down"), known, strict=True))
    steps = max(1, sum(len(times) - 1 for measured in plain for times in measured.arrivals_s))
    return Row(
        link=setting.link,
        batch=batch_size,
        prompts=setting.prompts,
        mode=next(name for name, mode in MODES.items() if mode == way.mode),
        draft=way_name(way),
        pipelined=way.pipelined,
        draft_tokens=way.num_tokens,
        temperature=setting.temperature,
        prunes=setting.prunes,
        pruned_share=sum(measured.pruned_tokens for measured in drafted) / max(1, proposed),
        emulated=setting.emulated,
        speedup=statistics.median(ratios),
        speedup_interval=median_interval(ratios),
        pairs=len(ratios),
        acceptance=accepted / proposed if proposed else 0.0,
        tokens_per_round=tokens / rounds,
        drafted_per_round=proposed / rounds,
        # Where the ring is closed in between, the client sends fewer rows than there are rounds.
        up_bytes_per_round=up - framing if is_led else up,
        down_bytes_per_round=down - framing,
        round_ms=round_ms,
        round_times_ms=RoundTime(**times, other=max(0.0, round_ms - sum(known))),
        compute_ms=ms * statistics.median(_pass_s(one, "compute_s") for one in drafted),
        compaction_ms=CompactionTime(
            before=ms * statistics.median(_pass_s(one, "compaction_before_s") for one in drafted),
            after=ms * statistics.median(_pass_s(one, "compaction_after_s") for one in drafted),
        ),
        plain_step_ms=ms * sum(map(decode_s, plain)) * batch_size / steps,
        plain_compute_ms=ms * statistics.median(_pass_s(one, "compute_s") for one in plain),
        replica_ms=ms * _replica_s(drafted),
        # The round that is under way at the end of an answer may have asked it, too.
        refused_share=min(1.0, _replica_rounds(drafted) / rounds),
        mode_rounds=dict(sum((Counter(m.mode_rounds) for m in drafted), Counter())),
        ids_equal=(
            all(begin_alike(a.ids, b.ids) for a, b in zip(plain, drafted, strict=True))
            if way.mode is DraftMode.SHARED or not setting.temperature
            else None
        ),
    )


def way_name(way: Speculation) -> str:
    """What a way to draft is called in reports."""
    ahead = {"auto": "", "on": "+", "off": "-", "beside": "="}[way.pipelined]
    return ("tree" if way.width > 1 else way.draft) + ahead


def begin_alike(some: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> bool:
    """Whether answers are the same as far as both go."""
    return all(list(a[: len(b)]) == list(b[: len(a)]) for a, b in zip(some, others, strict=True))


def decode_s(measured: Measured) -> float:
    """From when all sequences have their first token to the last one of all."""
    first = max(times[0] for times in measured.arrivals_s)
    return max(times[-1] for times in measured.arrivals_s) - first


def tokens_per_s(measured: Measured) -> float:
    """Of all sequences together in that time."""
    first = max(times[0] for times in measured.arrivals_s)
    tokens = sum(sum(time_s > first for time_s in times) for times in measured.arrivals_s)
    return tokens / decode_s(measured)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Where the median of what the values are drawn from lies, by order statistics."""
    ordered = sorted(values)
    n, chance, outside = len(ordered), 0.5 ** len(ordered), 0.0
    cut = 0
    for k in range(n // 2):
        outside += 2 * chance
        if outside > 0.05:
            break
        cut = k
        chance *= (n - k) / (k + 1)
    return ordered[cut], ordered[n - 1 - cut]


def _counters(measured: Measured) -> tuple[Counters, Counters]:
    assert measured.before is not None, "a swarm's run carries counters"
    assert measured.after is not None, "a swarm's run carries counters"
    return measured.before, measured.after


def _pass_s(measured: Measured, counter: str) -> float:
    """What a pass adds to a counter of seconds, all stages together."""
    before, after = _counters(measured)
    return sum(
        float(getattr(new, counter) - getattr(old, counter)) / max(1, new.forwards - old.forwards)
        for old, new in zip(before.stages, after.stages, strict=True)
    )


def _replica_s(drafted: Sequence[Measured]) -> float:
    """For each token that it was asked about."""
    ends = map(_counters, drafted)
    seconds = sum(
        after.stages[-1].replica_s - before.stages[-1].replica_s for before, after in ends
    )
    rounds = _replica_rounds(drafted)
    return seconds / rounds if rounds else 0.0


def _replica_rounds(drafted: Sequence[Measured]) -> int:
    return sum(
        after.stages[-1].replica_rounds - before.stages[-1].replica_rounds
        for before, after in map(_counters, drafted)
    )


def _between_s(setting: Setting, measured: Measured) -> float:
    """What frames need from one stage to the next, as the lines are."""
    if setting.network is None:
        return 0.0
    before, after = _counters(measured)
    seconds = 0.0
    for old, new, peer in zip(before.stages, after.stages, measured.hops[1:], strict=False):
        sent = new.sent_bytes.get(peer, 0) - old.sent_bytes.get(peer, 0)
        frame_bytes = sent / max(1, new.forwards - old.forwards)
        seconds += _line_s(setting.network, frame_bytes)
    return seconds


def _client_line_s(setting: Setting, num_bytes: float) -> float:
    if setting.network is None or setting.ideal_client_link:
        return 0.0
    return _line_s(setting.network, num_bytes)


def _line_s(line: LinkShaping, num_bytes: float) -> float:
    rate = line.rate_bytes_per_s
    return line.delay_s + (num_bytes / rate if rate else 0.0)


def _answered_bytes(measured: Measured) -> int:
    """Row frames from the last stage to the client while its passes were counted."""
    before, after = (counters.stages[-1] for counters in _counters(measured))
    sent, was_sent = (stage.sent_bytes.get(measured.client, 0) for stage in (after, before))
    return sent - was_sent


def _has_row_a_round(way: Speculation) -> bool:
    """Whether the client sends one row in each round, and waits for what becomes of it."""
    return way.draft != "auto" and way.pipelined not in ("on", "beside")


def _answers(measured: Measured, way: Speculation) -> int:
    """Rows in them: one of each sequence in each of its rounds, which passes share."""
    before, after = (counters.stages[-1] for counters in _counters(measured))
    batch_size = len(measured.arrivals_s)
    # Of chunks that a verdict makes void some are computed, and none is answered.
    if batch_size == 1 and _has_row_a_round(way):
        return after.forwards - before.forwards
    return measured.rounds - batch_size
