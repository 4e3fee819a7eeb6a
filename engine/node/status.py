"""The engine's state in one value: what the tray, `shoal status` and scripts see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psutil

from engine import __version__
from engine.core.ids import PeerId, short
from engine.core.plans import Hop
from engine.core.sentences import Sentence
from engine.core.snapshot import StageState
from engine.localapi.said import said
from engine.localapi.schema import (
    EngineState,
    EngineStatus,
    LinkStatus,
    PipelineStage,
    TokenPart,
)
from engine.node.membership import Membership, Serving
from engine.node.resting import Rest
from engine.node.stage_runner import Phase, StageRunner
from engine.planner.routing import protocol_words
from engine.planner.slowest import Part, parts
from engine.swarm.links import Links

Trouble = tuple[EngineState, str]
"""Why this node belongs to no swarm at the moment: the state, and a sentence."""


def describe(
    membership: Membership,
    trouble: Trouble | None,
    rest: Rest | None,
    *,
    api_url: str,
    leased: bool,
    tokens_used: int,
) -> EngineStatus:
    """Collect the status from the parts that own it; `rest` says why the stage rests, if it does."""
    serving, joined, invite = membership.serving, membership.joined, membership.invite
    state, reason = state_of(membership, trouble, rest)
    common = EngineStatus(
        state=state,
        reason=reason,
        reason_said=said(reason),
        until=None if rest is None else rest.until_unix_s,
        paused=None if rest is None else rest.paused,
        yielding_to=None if rest is None else rest.yielding_to,
        tokens_used=tokens_used,
        swarm=None if invite is None else invite.name,
        private=invite is not None and invite.key is not None,
        peer_id=None if joined is None else joined.peer.peer_id,
        links=() if joined is None else _links(joined.links),
        reachability=None if joined is None or invite is None else joined.peer.reach,
        relays=0 if joined is None else joined.peer.num_relays,
        relays_for_others=joined is not None and joined.peer.relays,
        progress=membership.progress,
        version=__version__,
        api_url=api_url,
        clock_offset_s=_clock_offset_s(membership),
        leased=leased,
    )
    if serving is None:
        return common
    snapshot, spec = serving.directory.snapshot(), serving.files.spec
    free, total = serving.handler.kv_tokens
    update: dict[str, object] = {
        "model": spec.name,
        "num_blocks": spec.num_hidden_layers,
        "peers": snapshot.peers_online,
        "dropped_records": snapshot.dropped_records,
        "notices": tuple(filter(None, (protocol_words(snapshot), _draft_words(membership)))),
        "sessions": serving.handler.num_sessions,
        "tokens_served": serving.handler.pace.tokens,
        **_pipeline(serving),
        "kv_total_tokens": total.device,
        "kv_free_tokens": free.device,
        "kv_ram_total_tokens": total.ram,
        "kv_ram_free_tokens": free.ram,
    }
    if serving.stage is not None:
        span = serving.stage.order.span
        why = _span_reason(membership, serving, serving.stage)
        update |= {
            "span": (span.start, span.end),
            "span_reason": why,
            "span_reason_said": said(why),
            "progress": serving.stage.progress,
            "worker_pid": serving.stage.worker_pid,
            "worker_rss_bytes": _rss_bytes(serving.stage.worker_pid),
        }
    return common.model_copy(update=update)


def state_of(
    membership: Membership, trouble: Trouble | None, rest: Rest | None
) -> tuple[EngineState, str]:
    """The state and its reason, a sentence; empty when all is well."""
    if trouble is not None:
        return trouble
    serving = membership.serving
    if serving is None:
        # Preparing goes on meanwhile, but nothing is given until the person resumes.
        return (
            (EngineState.STARTING, membership.doing) if rest is None else (rest.state, rest.reason)
        )
    offset_s = _clock_offset_s(membership)
    if offset_s is not None and abs(offset_s) > membership.config.swarm.max_clock_offset_s:
        return EngineState.OFFLINE, _clock_words(offset_s)
    stage = serving.stage
    if stage is None:
        return EngineState.IDLE, Sentence("This engine holds no blocks; it only uses the swarm.")
    match stage.phase:
        case Phase.LOADING:
            return EngineState.STARTING, stage.reason
        case Phase.DRAINING:
            return EngineState.DRAINING, stage.reason
        case Phase.PAUSED:
            if rest is not None:
                return rest.state, rest.reason
            return EngineState.PAUSED, stage.reason
        case Phase.FAILED:
            return EngineState.ERROR, stage.reason
        case Phase.ONLINE:
            busy = serving.handler.num_sessions > 0
            return (EngineState.SERVING if busy else EngineState.IDLE), ""


def _pipeline(serving: Serving) -> dict[str, object]:
    """The route that a request would take now, what is beside it, and what holds it up."""
    local_peer, snapshot, link_s = serving.client.local_peer, *serving.client.view()
    route = serving.client.route()
    hops = () if route is None else route.hops
    used = {hop.peer for hop in hops}
    beside = (
        Hop(stage.peer, stage.span)
        for stage in snapshot.stages
        if stage.state is StageState.ONLINE and stage.peer not in used
    )

    def shown(some: Iterable[Hop]) -> tuple[PipelineStage, ...]:
        return tuple(
            PipelineStage(
                peer=hop.peer,
                start=hop.span.start,
                end=hop.span.end,
                is_self=hop.peer == local_peer,
            )
            for hop in some
        )

    return {
        "plan": shown(hops),
        "spares": shown(beside),
        **({} if route is None else time_of_token(parts(route, snapshot, link_s), local_peer)),
        "can_chat": route is not None,
    }


def time_of_token(token: Sequence[Part], local_peer: PeerId) -> dict[str, object]:
    """A token's `parts`, and which takes longest, as the fields that say so; none while unknown."""
    if not token:
        return {}

    def name(peer: PeerId) -> str:
        return "this node" if peer == local_peer else f"…{short(peer)}"

    most, whole_s = max(token, key=lambda part: part.time_s), sum(part.time_s for part in token)
    if most.to is None:
        what = f"{name(most.peer)} computes"
    else:
        what = f"the way from {name(most.peer)} to {name(most.to)} takes"
    is_measured, about = all(part.is_measured for part in token), "about "
    time = f"{'' if most.is_measured else about}{most.time_s * 1000:.3g}"
    whole = f"{'' if is_measured else about}{whole_s * 1000:.3g} ms"
    text = f"{what} {time} of the {whole} of each token"
    if not most.is_measured:
        text += "; it is not measured yet"
    elif not is_measured:
        text += "; not every way between stages is measured yet"
    return {
        "bottleneck": f"{text[0].upper()}{text[1:]}.",
        "bottleneck_measured": is_measured,
        "token_parts": tuple(
            TokenPart(
                peer=part.peer,
                to=part.to,
                time_ms=float(f"{part.time_s * 1000:.3g}"),  # no news for every digit
                is_measured=part.is_measured,
            )
            for part in token
        ),
    }


def _span_reason(membership: Membership, serving: Serving, stage: StageRunner) -> Sentence:
    if serving.balancer is None:
        reason = Sentence("The settings fix them.")
    elif membership.invite is None:
        reason = Sentence("This node is in no swarm, so it holds what fits.")
    else:
        reason = serving.balancer.reason
    next_span = stage.herald.next_span
    if next_span is None:
        return reason
    return reason.then(Sentence("Moving to blocks {span}.", span=str(next_span)))


def _clock_words(offset_s: float) -> Sentence:
    if offset_s > 0:
        return Sentence(
            "This computer's clock is {seconds} s ahead of the swarm's, so others ignore it; "
            "switch on automatic time in the system settings.",
            seconds=round(offset_s),
        )
    return Sentence(
        "This computer's clock is {seconds} s behind the swarm's, so others ignore it; "
        "switch on automatic time in the system settings.",
        seconds=round(-offset_s),
    )


def _links(links: Links) -> tuple[LinkStatus, ...]:
    return tuple(
        LinkStatus(
            peer=link.peer,
            path=link.path,
            relay=link.relay,
            rtt_ms=round(link.rtt_s * 1000, 1),
            bandwidth_bytes_per_s=link.bandwidth_bytes_per_s,
            sent_bytes=link.sent_bytes,
        )
        for link in links.neighbours.open_links()
    )


def _clock_offset_s(membership: Membership) -> float | None:
    joined = membership.joined
    offset_s = None if joined is None else joined.links.neighbours.clock_offset_s()
    return None if offset_s is None else round(offset_s, 1)


def _rss_bytes(pid: int | None) -> int:
    """Resident memory of a process, to the megabyte; 0 when there is none."""
    if pid is None:
        return 0
    try:
        return int(psutil.Process(pid).memory_info().rss) >> 20 << 20
    except psutil.Error:
        return 0


def _draft_words(membership: Membership) -> str:
    """Why the model that drafts does not; empty when nothing is wrong with it."""
    serving = membership.serving
    drafter = None if serving is None else serving.client.drafter
    trouble = None if drafter is None else drafter.trouble
    return membership.draft_trouble if trouble is None else str(trouble)
