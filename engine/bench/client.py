"""The measured client: joins the swarm without holding blocks, generates, and notes every arrival.

`python -m engine.bench.client SPEC.json`: the spec says which swarm, then each JSON line on
standard input is one generation (`engine.bench.answering`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from engine.bench.answering import Lines
from engine.bench.measured import Counters, Measured, hash_ids
from engine.bench.specs import ClientSpec, Question
from engine.client.client import Client
from engine.config import Config
from engine.core.clock import Clock, SystemClock
from engine.core.errors import EngineError, NoRoute, PeerUnreachable
from engine.core.plans import Route
from engine.core.sampling_params import SamplingParams
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
            question = Question.model_validate(line)
            measured = await _measure(serving.client, joined, question, clock)
            lines.say("result", measured.model_dump())


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


async def _measure(client: Client, joined: Joined, question: Question, clock: Clock) -> Measured:
    route = client.route()
    if route is None:
        raise NoRoute("The stages no longer cover every block; look at their logs.")
    params = [SamplingParams(max_new_tokens=question.new_tokens)] * len(question.prompts)
    arrivals_s: list[list[float]] = [[] for _ in question.prompts]
    ids: list[list[int]] = [[] for _ in question.prompts]
    prefilling = len(question.prompts)
    steady: asyncio.Task[Counters] | None = None
    started_s = clock.monotonic_s()
    async for index, event in client.generate(question.prompts, params):
        arrivals_s[index].append(clock.monotonic_s())
        ids[index].append(event.id)
        prefilling -= len(ids[index]) == 1
        if not prefilling and steady is None:
            # Beside the generation, which must not wait for it.
            steady = asyncio.create_task(_counters(client, joined, route))
    assert steady is not None, "every sequence has a first token"
    return Measured(
        started_s=started_s,
        arrivals_s=tuple(map(tuple, arrivals_s)),
        ids_sha256=hash_ids(ids),
        client=client.local_peer,
        hops=tuple(hop.peer for hop in route.hops),
        before=await steady,
        after=await _counters(client, joined, route),
    )


async def _counters(client: Client, joined: Joined, route: Route) -> Counters:
    stages = await asyncio.gather(*(client.stats(hop.peer) for hop in route.hops))
    sent = {str(peer): count for peer, count in joined.links.sent_bytes().items()}
    return Counters(stages=tuple(stages), client_sent_bytes=sent)


def main(words: Sequence[str]) -> int:
    """See the module. Returns the exit code."""
    lines = Lines()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    spec = ClientSpec.model_validate_json(Path(words[0]).read_text(encoding="utf-8"))
    try:
        asyncio.run(run(spec, lines))
    except TimeoutError:
        lines.say("error", f"no route through {spec.stages} stages in {spec.ready_limit_s:.0f} s.")
        return 1
    except EngineError as error:
        lines.say("error", str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
