"""The measured client: joins the swarm without holding blocks, and does what it is told.

Its argument is a file that says which swarm; then each JSON line on standard input is an order
(`engine.bench.specs`), answered by `result` or, with a sentence, `failed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from engine.bench.answering import Lines
from engine.bench.crowd import crowd
from engine.bench.generating import GenerationWatch
from engine.bench.load import load
from engine.bench.specs import CLIENT_ORDERS, AwaitPeers, ClientSpec, Crowd, Load, Question
from engine.config import Config
from engine.core.clock import Clock, SystemClock
from engine.core.errors import EngineError, PeerUnreachable, StageTimedOut
from engine.core.ids import PeerId
from engine.core.snapshot import StageState
from engine.localapi.running import Home
from engine.node import compute
from engine.node.membership import Joined, Membership, Serving
from engine.swarm import invites

_POLL_S = 0.2


async def run(spec: ClientSpec, lines: Lines) -> None:
    """Join, say `ready`, and answer questions until there are no more.

    Raises:
        EngineError: The swarm cannot be joined or used.
    """
    clock = SystemClock()
    config = Config.model_validate(spec.config)
    machine = await asyncio.to_thread(compute.choose, config.model)
    membership = Membership(
        Home.from_environment(),
        config,
        invites.parse(spec.invite),
        machine,
        clock,
        on_change=lambda: None,
    )
    async with membership.join() as joined, _serving(membership, joined) as serving:
        async with asyncio.timeout(spec.ready_limit_s):
            await _await_route(serving, spec.stages)
        lines.say("ready", True)
        while (line := await asyncio.to_thread(lines.read)) is not None:
            try:
                lines.say("result", await _obey(line, serving, joined, clock, lines))
            except EngineError as error:
                lines.say("failed", str(error))


async def _obey(
    line: dict[str, Any], serving: Serving, joined: Joined, clock: Clock, lines: Lines
) -> object:
    order = CLIENT_ORDERS.validate_python(line)
    if isinstance(order, Question):
        watch = GenerationWatch(serving.client, joined.links, clock, lines)
        return (await watch.generate(order)).model_dump()
    if isinstance(order, Crowd):
        return (await crowd(serving.client, order, clock)).model_dump()
    if isinstance(order, Load):
        return (await load(serving.client, joined.prober, order)).model_dump()
    await _await_peers(serving, order)
    return True


async def _await_peers(serving: Serving, order: AwaitPeers) -> None:
    def are_online() -> bool:
        snapshot = serving.directory.snapshot()
        stages = [snapshot.stage(PeerId(peer)) for peer in order.peers]
        return all(stage and stage.state is StageState.ONLINE for stage in stages)

    try:
        async with asyncio.timeout(order.limit_s):
            while not are_online():
                await asyncio.sleep(_POLL_S)
                with contextlib.suppress(PeerUnreachable):  # looked at again in a moment
                    await serving.directory.refresh()
    except TimeoutError as error:
        raise StageTimedOut(f"No spare stage came online in {order.limit_s:.0f} s.") from error


@contextlib.asynccontextmanager
async def _serving(membership: Membership, joined: Joined) -> AsyncIterator[Serving]:
    """What the membership makes of the model, while it runs."""
    running = asyncio.create_task(membership.run(joined))
    try:
        while membership.serving is None:
            if running.done():
                running.result()
            await asyncio.sleep(_POLL_S)
        yield membership.serving
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _await_route(serving: Serving, num_stages: int) -> None:
    while True:
        route = serving.client.route()
        if route is not None and len(route.hops) == num_stages:
            return
        await asyncio.sleep(_POLL_S)
        with contextlib.suppress(PeerUnreachable):  # looked at again in a moment
            await serving.directory.refresh()


def main() -> int:
    """See the module. Returns the exit code."""
    lines = Lines()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    spec = ClientSpec.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        asyncio.run(run(spec, lines))
    except TimeoutError:
        lines.say("error", f"no route through {spec.stages} stages in {spec.ready_limit_s:.0f} s.")
        return 1
    except EngineError as error:
        lines.say("error", str(error))
        return 1
    return 0
