"""States of the dashboard that are worth a look."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from app.dashboard_presenters import dashboard_view
from app.messages import EngineStarting, EngineStopped, StatusArrived
from app.past_messages import (
    LogArrived,
    PreviewArrived,
    RangeChosen,
    StatisticsArrived,
    StatisticsFailed,
)
from app.past_presenters import past_view
from app.plots import LENGTH_S
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.windows.dashboard import DashboardWindow
from engine.localapi.running import Home
from engine.localapi.schema import LinkStatus, PipelineStage, TokenPart
from engine.localapi.statistics import (
    DiagnosticsEntry,
    DiagnosticsPreview,
    Range,
    Statistics,
    StatisticsSample,
    StatisticsTotals,
)
from tests.support.app_states import after, status
from tests.support.desktop.language import tr

NOW = datetime(2026, 3, 4, 18, 5, tzinfo=UTC)
PEERS = ("QmYt3kEr8wq", "QmSelfSelf1", "QmPz0Lm4cTb")


def in_swarm(*, stages: int = 3, beside: int = 1, **fields: Any) -> AppState:
    """A node that holds the second part of a model in a swarm."""
    names = [*PEERS, *(f"QmNode{at:02}x{at:02}" for at in range(3, stages))][:stages]
    step = 30 // stages
    bounds = [at * step for at in range(stages)] + [30]
    plan = tuple(
        PipelineStage(peer=name, start=bounds[at], end=bounds[at + 1], is_self=at == 1)
        for at, name in enumerate(names)
    )
    parts: list[TokenPart] = []
    for at, name in enumerate(names):
        parts.append(TokenPart(peer=name, time_ms=14.2 + 2 * at))
        after_it = names[(at + 1) % stages]
        parts.append(
            TokenPart(peer=name, to=after_it, time_ms=38 if at == 1 else 11.6, is_measured=at != 2)
        )
    known: dict[str, Any] = {
        "state": "serving", "span": (bounds[1], bounds[2]), "swarm": "reef", "private": True,
        "peers": stages + beside - 1, "sessions": 3, "tokens_served": 48_213,
        "tokens_used": 1_904, "plan": plan, "token_parts": tuple(parts),
        "spares": tuple(
            PipelineStage(
                peer=f"QmSpare{at:02}q", start=3 * at % 24, end=3 * at % 24 + 6 + at % 3,
                is_self=False,
            )
            for at in range(beside)
        ),
        "bottleneck": "The way from this node to …Lm4cTb takes 38 of the about 109 ms of each "
        "token; not every way between stages is measured yet.",
        "span_reason": "Here the swarm lacked throughput most.",
        "links": (
            LinkStatus(
                peer=PEERS[0], path="direct", rtt_ms=23.1, bandwidth_bytes_per_s=5.2e6,
                sent_bytes=48_000_000,
            ),
            LinkStatus(
                peer=PEERS[2], path="relayed", relay=PEERS[0], rtt_ms=76.4, sent_bytes=312_000
            ),
        ),
        "reachability": "relayed", "relays": 2, "peer_id": PEERS[1],
        "worker_rss_bytes": 412_000_000, "kv_total_tokens": 8192, "kv_free_tokens": 6976,
    }  # fmt: skip
    return after(EngineStarting(), StatusArrived(status(**known | fields)))


def scenes() -> dict[str, AppState]:
    """States worth a look."""
    solo = (PipelineStage(peer="QmSelf", start=0, end=30, is_self=True),)
    gap = (
        PipelineStage(peer=PEERS[0], start=0, end=10, is_self=False),
        PipelineStage(peer=PEERS[1], start=10, end=20, is_self=True),
    )
    return {
        "swarm": after(StatisticsArrived(statistics()), start=in_swarm()),
        "many": in_swarm(stages=9, beside=14),
        "gap": in_swarm(
            state="idle", plan=(), token_parts=(), bottleneck="", spares=gap, links=(),
            can_chat=False, span=(10, 20),
        ),
        "solo": after(EngineStarting(), StatusArrived(status(plan=solo, tokens_served=5012))),
        "paused": in_swarm(
            state="paused", until=NOW.timestamp() + 3600, reason="Paused for a while.", plan=(),
            token_parts=(), spares=(), links=(), bottleneck="", span=None, worker_rss_bytes=0,
        ),
        "launching": after(EngineStarting()),
        "stopped": after(
            EngineStarting(),
            EngineStopped("It ended 5 times in a row. The worker has no memory left; close other "
                          "programs. The log is /home/ada/.local/state/shoal/engine.log."),
        ),
    }  # fmt: skip


def statistics(span: Range = Range.HOUR) -> Statistics:
    """A history with a lunch break, in which the engine did not run, and a GPU that got warm."""
    step_s = {Range.HOUR: 10, Range.DAY: 300, Range.WEEK: 1800}[span]
    count = round(LENGTH_S[span] / step_s)
    start = NOW.timestamp() - LENGTH_S[span]
    samples = []
    for at in range(count):
        if 0.42 < at / count < 0.5:
            continue
        busy = max(0.0, math.sin(at / count * 9)) * (0.8 + 0.2 * math.sin(at * 1.7))
        samples.append(
            StatisticsSample(
                unix_s=int(start + at * step_s), seconds=step_s,
                tokens_served=round(14 * busy * step_s), tokens_used=(at % 40 < 9) * 4 * step_s,
                sent_bytes=round(420_000 * busy * step_s),
                received_bytes=round(310_000 * busy * step_s),
                ram_bytes=round(1.1e9 + 2e8 * busy), gpu_memory_bytes=round(5.2e9 + 6e8 * busy),
                gpu_busy_share=0.03 + 0.85 * busy, gpu_c=41 + 24 * busy,
            )
        )  # fmt: skip
    return Statistics(
        range=span, step_s=step_s, samples=tuple(samples),
        today=StatisticsTotals(tokens_served=48_213, tokens_used=1_904),
        all=StatisticsTotals(tokens_served=3_912_044, tokens_used=60_318),
    )  # fmt: skip


LOG = tuple(
    f"2026-03-04 18:0{at // 12}:{at * 5 % 60:02} INFO {text}"
    for at, text in enumerate(
        ("engine.node.run: Shoal 0.1.0 begins", "engine.swarm.peer: …fSelf1 listens on <address>",
         "engine.node.membership: in swarm reef, 2 other nodes",
         "engine.node.stage_runner: the stage holds blocks 10–19") * 12
    )
)  # fmt: skip
PREVIEW = DiagnosticsPreview(
    entries=(
        DiagnosticsEntry(name="machine.json", about="The system and versions",
                         text='{\n  "shoal": "0.1.0",\n  "python": "3.12.3"\n}'),
        DiagnosticsEntry(name="status.json", about="What the engine says of its status",
                         text='{\n  "state": "serving",\n  "span": [10, 20]\n}'),
        DiagnosticsEntry(name="engine.log", about="The log", text="\n".join(LOG)),
    )
)  # fmt: skip


def past_scenes() -> dict[str, tuple[int, AppState]]:
    """States of the other pages, with the page."""
    here = in_swarm()
    away = after(EngineStarting(), EngineStopped("It ended."))
    no_gpu = statistics().model_copy(
        update={
            "samples": tuple(
                one.model_copy(
                    update={"gpu_memory_bytes": None, "gpu_busy_share": None, "gpu_c": None}
                )
                for one in statistics().samples
            )
        }
    )
    return {
        "hour": (1, after(StatisticsArrived(statistics()), start=here)),
        "week": (
            1,
            after(RangeChosen(Range.WEEK), StatisticsArrived(statistics(Range.WEEK)), start=here),
        ),
        "no-gpu": (1, after(StatisticsArrived(no_gpu), start=here)),
        "asking": (1, here),
        "no-history": (1, after(StatisticsFailed("The engine does not answer."), start=away)),
        "log": (2, after(LogArrived(LOG), start=here)),
        "diagnostics": (3, after(PreviewArrived(PREVIEW), start=here)),
    }


def dashboard_windows(
    wanted: Callable[[str], bool] = lambda _name: True,
) -> Iterator[tuple[str, QWidget]]:
    """The dashboard in every state."""
    every = {name: (0, state) for name, state in scenes().items()} | past_scenes()
    for scene, (page, state) in every.items():
        if not wanted(f"dashboard-{scene}"):
            continue
        with tempfile.TemporaryDirectory() as home:
            window = DashboardWindow(Settings(Home.under(Path(home))), Path(home))
            over = overview(state, NOW, tr)
            past = past_view(state, NOW, tr)
            window.show_view(over, dashboard_view(state, over, tr), past)
            window.tabs.setCurrentIndex(page)
            window.bring_up()
            yield f"dashboard-{scene}", window
            window.deleteLater()
