"""The dashboard in words and numbers: what I hold, what passes through it, who reaches me. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.pipeline_presenters import PipelineView, path_words, pipeline_view
from app.presenters import Overview
from app.state import AppState, Process
from app.words import Tr, bits_per_s, counted, in_words, milliseconds, model_name, number, size
from engine.core.ids import PeerId, short
from engine.core.plans import Span
from engine.core.reach import Reach
from engine.localapi.schema import EngineState, EngineStatus
from engine.localapi.statistics import Statistics

Facts = tuple[tuple[str, str], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class LinkRow:
    """One neighbour."""

    peer: str
    path: str
    rtt: str
    bandwidth: str
    sent: str


@dataclass(frozen=True, slots=True)
class DashboardView:
    """What the dashboard shows below its head."""

    absent: str
    """Why there are no facts; empty when there are."""
    notices: tuple[str, ...]
    held: Facts
    tokens: Facts
    reach: Facts
    pipeline: PipelineView | None
    no_pipeline: str
    """Why there is no picture; empty when there is one."""
    links: tuple[LinkRow, ...]
    no_links: str
    """Why there are no links; empty when there are some."""


def dashboard_view(state: AppState, over: Overview, tr: Tr) -> DashboardView:
    """The state for the dashboard; `over` is what tray and home window show of it."""
    status = state.status if state.linked else None
    if status is None:
        return DashboardView(_absent(state, tr), (), (), (), (), None, "", (), "")
    picture = pipeline_view(status, tr)
    return DashboardView(
        absent="",
        notices=status.notices,
        held=_held(status, tr),
        tokens=_tokens(status, state.past.statistics, tr),
        reach=_reach(status, tr),
        pipeline=picture,
        no_pipeline="" if picture is not None else _no_pipeline(status, over, tr),
        links=tuple(
            LinkRow(
                peer=f"…{short(PeerId(link.peer))}",
                path=path_words(link, tr),
                rtt=milliseconds(link.rtt_ms, tr),
                bandwidth=(
                    tr("not measured")
                    if link.bandwidth_bytes_per_s is None
                    else bits_per_s(link.bandwidth_bytes_per_s, tr)
                ),
                sent=size(link.sent_bytes, tr),
            )
            for link in status.links
        ),
        no_links="" if status.links else _no_links(status, tr),
    )


def _absent(state: AppState, tr: Tr) -> str:
    if state.process is Process.STOPPED:
        return tr("There is nothing to show while the engine does not run.")
    return tr("The numbers come as soon as the engine answers.")


def _held(status: EngineStatus, tr: Tr) -> Facts:
    facts = []
    if status.span is not None and status.num_blocks:
        share = tr("{span} of {count}").format(span=Span(*status.span), count=status.num_blocks)
        facts.append((tr("Blocks"), share))
    else:
        facts.append((tr("Blocks"), tr("none now")))
    if status.model:
        facts.append((tr("Model"), model_name(status.model)))
    if status.span is not None and status.span_reason:
        reason = in_words(status.span_reason_said, status.span_reason, tr)
        facts.append((tr("Why these"), reason))
    if status.worker_rss_bytes:
        facts.append((tr("Memory in use"), size(status.worker_rss_bytes, tr)))
    for name, total, free in (
        (tr("Cache"), status.kv_total_tokens, status.kv_free_tokens),
        (tr("Cache in RAM"), status.kv_ram_total_tokens, status.kv_ram_free_tokens),
    ):
        if total:
            used = tr("{used} of {total} tokens in use")
            facts.append(
                (name, used.format(used=number(total - free, tr), total=number(total, tr)))
            )
    return tuple(facts)


def _tokens(status: EngineStatus, statistics: Statistics | None, tr: Tr) -> Facts:
    def told(count: int) -> str:
        return counted(count, tr("{n} token|{n} tokens"), tr)

    if statistics is not None:
        today, everything = statistics.today, statistics.all
        return (
            (tr("Sessions now"), number(status.sessions, tr)),
            (tr("Served today"), told(today.tokens_served)),
            (tr("Served in all"), told(everything.tokens_served)),
            (tr("Used today"), told(today.tokens_used)),
            (tr("Used in all"), told(everything.tokens_used)),
        )
    return (
        (tr("Sessions now"), number(status.sessions, tr)),
        (tr("Served since the start"), told(status.tokens_served)),
        (tr("Used since the start"), told(status.tokens_used)),
    )


def _reach(status: EngineStatus, tr: Tr) -> Facts:
    if status.swarm is None:
        return ((tr("Swarm"), tr("none: this computer works alone, nobody connects to it")),)
    kind = tr("private") if status.private else tr("public")
    nodes = counted(status.peers, tr("{n} other node|{n} other nodes"), tr)
    facts = [(tr("Swarm"), f"{status.swarm} ({kind}), {nodes}")]
    if status.reachability is not None:
        facts.append((tr("Reached by"), _reach_words(status, status.reachability, tr)))
    if status.relays_for_others:
        facts.append((tr("Relaying"), tr("yes, for nodes that accept no connections themselves")))
    if status.peer_id is not None:
        facts.append((tr("My name"), f"…{short(PeerId(status.peer_id))}"))
    return tuple(facts)


def _reach_words(status: EngineStatus, reach: Reach, tr: Tr) -> str:
    match reach:
        case Reach.DIRECT:
            return tr("everyone in the swarm, directly")
        case Reach.RELAYED:
            relays = counted(status.relays, tr("{n} relay|{n} relays"), tr)
            return tr(
                "everyone, through {relays}. Answers are quicker if your router forwards a port to "
                "this computer."
            ).format(relays=relays)
        case Reach.OUTBOUND_ONLY:
            return tr(
                "nobody: no connections come in and no relay is free, so this computer can use the "
                "swarm but not serve it. Forward a port of your router to it."
            )
        case Reach.LOCAL:
            return tr("programs on this computer alone")


def _no_pipeline(status: EngineStatus, over: Overview, tr: Tr) -> str:
    if status.state in (EngineState.SERVING, EngineState.IDLE):
        return tr("The picture comes as soon as it is known who holds which blocks.")
    return tr("There is no pipeline to draw now: {headline}.").format(
        headline=over.headline.rstrip(".…")
    )


def _no_links(status: EngineStatus, tr: Tr) -> str:
    if status.swarm is None:
        return tr("No links: the model runs on this computer alone.")
    if not status.peers:
        return tr("No links: nobody else is in the swarm now. Invite somebody.")
    return tr("No links now; they open when tokens travel.")
