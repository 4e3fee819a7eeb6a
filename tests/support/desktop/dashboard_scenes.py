"""States of the dashboard that are worth a look, and their pictures."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PySide6.QtTest import QTest

from app.dashboard_presenters import dashboard_view
from app.messages import EngineStarting, EngineStopped, StatusArrived
from app.presenters import overview
from app.settings import Settings
from app.state import AppState
from app.windows.dashboard import DashboardWindow
from engine.localapi.running import Home
from engine.localapi.schema import LinkStatus, PipelineStage, TokenPart
from tests.support.app_states import after, status

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
        "swarm": in_swarm(),
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


def dashboard_pictures(folder: Path, colours: str) -> None:
    """Draw every scene into `folder`."""
    for scene, state in scenes().items():
        with tempfile.TemporaryDirectory() as home:
            window = DashboardWindow(Settings(Home.under(Path(home))))
            over = overview(state, NOW, str)
            window.show_view(over, dashboard_view(state, over, str))
            window.bring_up()
            QTest.qWait(150)
            window.grab().save(str(folder / f"dashboard-{scene}-{colours}.png"))
            window.deleteLater()
