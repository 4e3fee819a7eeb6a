"""What serving a span consists of while a worker is attached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.codec.lanes import ElementType
from engine.config import StageConfig
from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.protocol.frames import ELEMENT_BYTES, Frame
from engine.protocol.messages import OpenRequest
from engine.protocol.rows import DECODE_TOKENS, MAX_DRAFTED, Row
from engine.server.kept import KeptOutputs
from engine.server.pace import Pace, PassCost
from engine.server.passes import Passes
from engine.server.prefixes import PrefixIndex
from engine.server.pruning import Pruning
from engine.server.recovery import Recovery
from engine.server.reuse import PrefixReuse
from engine.server.sessions import SessionTable
from engine.server.worker_process import LoadOrder, WorkerProcess
from engine.swarm.links import Links


@dataclass(slots=True)
class Serving:
    """The parts, which live and end together; none is ever replaced."""

    table: SessionTable
    worker: WorkerProcess
    order: LoadOrder
    passes: Passes
    reuse: PrefixReuse
    kept: KeptOutputs
    recovery: Recovery
    decode_cost: PassCost
    """What its decode passes take."""
    is_draining: bool = False
    """Takes no new sessions."""
    empty: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it has no sessions."""

    def why_no_replica(self, request: OpenRequest) -> str:
        """Why DISCO's refusals will be answered as in DSSD, as a sentence; empty: they need not."""
        drafts = {sequence.draft_sha256 for sequence in request.sequences} - {""}
        if not drafts or self.table.place(request.route()) < len(request.hops) - 1:
            return ""
        if self.order.replica is None:
            return "The last stage holds no replicas of drafts."
        return next(filter(None, map(self.order.replica.refusal, drafts)), "")

    @classmethod
    def build(
        cls,
        links: Links,
        clock: Clock,
        config: StageConfig,
        worker: WorkerProcess,
        order: LoadOrder,
        pace: Pace,
        tasks: asyncio.TaskGroup,
        *,
        send: Callable[[PeerId, Frame], None],
        fail: Callable[[Row, str, str], None],
    ) -> Serving:
        """Put them together for a worker that holds what `order` says.

        Args:
            links: To other peers.
            clock: For leases and the pace.
            config: Budgets and sizes.
            worker: Computes.
            order: What it holds.
            pace: Counts what is done; outlives the worker.
            tasks: Where errands run.
            send: Takes each frame that goes onward.
            fail: Ends the session of a row that cannot be computed, with a code and a sentence.
        """
        table = SessionTable(
            local_peer=links.local_peer,
            model_id=order.spec.model_id,
            num_blocks=order.spec.num_hidden_layers,
            span=order.span,
            kv_budget_bytes=config.kv_budget_bytes,
            kv_ram_budget_bytes=config.kv_ram_budget_bytes,
            block_token_bytes=order.spec.kv_bytes_per_token(
                1, ELEMENT_BYTES[order.dtype], order.kv_dtype
            ),
            lease_s=config.lease_s,
            max_draft_tokens=min(MAX_DRAFTED, max(0, config.max_batch_tokens - DECODE_TOKENS)),
            in_pages=order.device != "cpu",
        )
        kept = KeptOutputs(
            config.kept_budget_bytes, order.spec.hidden_size, ElementType(order.dtype)
        )
        decode_cost = PassCost()
        row_bytes = order.spec.hidden_size * ELEMENT_BYTES[order.dtype]
        passes = Passes(
            table,
            worker,
            order,
            config,
            clock,
            pace,
            decode_cost,
            send=send,
            fail=fail,
            backlog_bytes=links.neighbours.queued_bytes,
            kept=kept,
            pruning=Pruning(
                worker.pruners, table.get, lambda peer: links.neighbours.token_s(peer, row_bytes)
            ),
        )
        budget_bytes = int(config.kv_budget_bytes * config.prefix_budget_share)
        index = PrefixIndex(budget_bytes, config.prefix_idle_s)
        reuse = PrefixReuse(table, index, passes, worker, pace)
        recovery = Recovery(links, clock, config, table, passes, kept, order, pace, tasks)
        return cls(table, worker, order, passes, reuse, kept, recovery, decode_cost)
