"""A swarm in virtual time: nodes come and go, look around now and then, and move as a policy says.

Nodes see the swarm as they would over the DHT: everybody's announcements, a few seconds old. Who
wants to hold blocks says so, waits until the others have seen it, and asks once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import numpy as np

from engine.core.ids import PeerId
from engine.core.plans import Span
from engine.core.snapshot import StageInfo, SwarmSnapshot
from engine.planner.rebalance import steady, wait_s
from engine.simulator.events import EventQueue
from engine.simulator.meters import Gauge, Present, gauge_of
from engine.simulator.node import PER_TOKEN, Node
from engine.simulator.policies import Policy
from engine.simulator.record import Record, Recorder
from engine.simulator.scenario import Scenario, Visit

SEND_S: Final = 1.0
"""Until an announcement can be read."""
MAX_AIMS: Final = 4
HOUR_S: Final = 3600.0
_MAX_ROUNDS: Final = 20


@dataclass(slots=True)
class World:
    """One run of a scenario.

    Args:
        scenario: What happens.
        policy: Where nodes go.
        seed: Of the nodes' times of looking, and of measurement noise.
        reload_s: Time to load other blocks.
    """

    scenario: Scenario
    policy: Policy
    seed: int
    reload_s: float
    _events: EventQueue = field(default_factory=EventQueue, init=False)
    _nodes: dict[PeerId, Node] = field(default_factory=dict, init=False)
    _announced: dict[PeerId, StageInfo] = field(default_factory=dict, init=False)
    _is_changed: bool = field(default=True, init=False)
    _view: SwarmSnapshot = field(init=False)
    _rates: np.ndarray = field(init=False)
    """[L], int64: what each block gets, in thousandths of a token/s."""
    _recorder: Recorder = field(init=False)
    _gauge: Gauge = field(init=False)

    def __post_init__(self) -> None:
        num_blocks = self.scenario.num_blocks
        self._view = SwarmSnapshot(self.scenario.name, num_blocks, link_s=self.scenario.link_s())
        self._rates = np.zeros(num_blocks, dtype=np.int64)
        self._recorder = Recorder()
        self._gauge = gauge_of(self.scenario, self.seed)

    def hours(self) -> Iterator[float]:
        """Let the scenario pass, an hour at a time; gives the time in seconds after each."""
        for visit in sorted(self.scenario.visits, key=lambda visit: (visit.from_s, visit.machine)):
            if visit.from_s < 0:
                self._begin_with(visit)
            else:
                self._events.at(visit.from_s, self._doing(self._arrive, visit))
        self._settle_before()
        self._look()
        self._events.at(self.scenario.sample_s, self._sample)
        until_s = 0.0
        while until_s < self.scenario.duration_s:
            until_s = min(until_s + HOUR_S, self.scenario.duration_s)
            self._events.run(until_s)
            self._note()
            yield until_s

    def run(self) -> Record:
        """Let the whole scenario pass."""
        for _ in self.hours():
            pass
        return self.record

    @property
    def record(self) -> Record:
        """What has been so far."""
        return self._recorder.finish(self._events.now_s)

    @property
    def _settle_s(self) -> float:
        """Until all have seen what was announced."""
        return self.scenario.view_every_s + SEND_S

    @property
    def _check_every_s(self) -> float:
        """Nobody looks twice at the same view."""
        return max(self.policy.check_every_s, self.scenario.view_every_s)

    # Coming and going.

    def _begin_with(self, visit: Visit) -> None:
        """A node that has been there long; the first ones are placed one after the other."""
        node = self._new_node(visit)
        node.is_serving = True
        self._serve(node, 1)
        self._announce(node)
        self._swap_view()
        self._check_later(node)

    def _settle_before(self) -> None:
        """Those who have been there long have found their places."""
        for _ in range(_MAX_ROUNDS):
            moves = 0
            for node in self._nodes.values():
                span = self.policy.move(self._view, node.machine.peer, node.max_blocks)
                if span is not None and span != node.span:
                    self._serve(node, -1)
                    node.span = span
                    self._serve(node, 1)
                    self._announce(node)
                    self._swap_view()
                    moves += 1
            if not moves:
                break

    def _arrive(self, visit: Visit) -> None:
        node = self._new_node(visit)
        self._announce(node)
        self._events.after(self._settle_s, lambda: self._settle(node, MAX_AIMS))

    def _new_node(self, visit: Visit) -> Node:
        machine = self.scenario.machines[visit.machine]
        rng = Random(f"{self.seed} {machine.peer} {visit.from_s}")  # noqa: S311 - a draw to repeat
        max_blocks = min(machine.max_blocks, self.scenario.num_blocks)
        others = tuple(stage for stage in self._view.stages if stage.peer != machine.peer)
        seen = replace(self._view, stages=others)
        span = self.policy.place(seen, machine.peer, max_blocks)
        node = Node(machine, visit.from_s, rng, max_blocks, machine.block_s, span)
        self._measure(node)
        self._nodes[machine.peer] = node
        self._events.at(visit.until_s, lambda: self._leave(node))
        return node

    def _leave(self, node: Node) -> None:
        del self._nodes[node.machine.peer]
        del self._announced[node.machine.peer]
        self._is_changed = True
        if node.is_serving:
            self._serve(node, -1)
        node.is_serving = False

    def _is_here(self, node: Node) -> bool:
        return self._nodes.get(node.machine.peer) is node

    # Finding a place.

    def _settle(self, node: Node, aims_left: int) -> None:
        """A newcomer asks again whether its aim is free, and loads."""
        if not self._is_here(node):
            return
        other = self.policy.confirm(self._view, node.machine.peer, node.max_blocks)
        if other is not None and other != node.span and aims_left:
            node.span = other
            self._announce(node)
            self._events.after(self._settle_s, lambda: self._settle(node, aims_left - 1))
        else:
            self._events.after(self.reload_s, lambda: self._start(node))

    def _start(self, node: Node) -> None:
        if not self._is_here(node):
            return
        node.is_serving = True
        self._serve(node, 1)
        self._announce(node)
        self._check_later(node)

    def _check_later(self, node: Node) -> None:
        self._events.after(wait_s(node.rng, self._check_every_s), lambda: self._check(node))

    def _check(self, node: Node) -> None:
        if not self._is_here(node):
            return
        if self.scenario.noise:
            self._measure(node)
        if not node.is_moving:
            span = self.policy.move(self._view, node.machine.peer, node.max_blocks)
            if span is not None and span != node.span:
                self._aim(node, span, MAX_AIMS)
        self._check_later(node)

    def _aim(self, node: Node, span: Span, aims_left: int) -> None:
        node.is_moving = True
        node.next_span = span
        self._announce(node)
        self._events.after(self._settle_s, lambda: self._confirm(node, aims_left))

    def _confirm(self, node: Node, aims_left: int) -> None:
        if not self._is_here(node) or node.next_span is None:
            return
        other = self.policy.confirm(self._view, node.machine.peer, node.max_blocks)
        if other == node.span or (other is not None and not aims_left):
            node.next_span, node.is_moving = None, False
            self._announce(node)
        elif other is not None and other != node.next_span:
            self._aim(node, other, aims_left - 1)
        else:
            self._go(node, node.next_span)

    def _go(self, node: Node, span: Span) -> None:
        self._recorder.count_move()
        if not self.policy.keeps_old_blocks and self.reload_s:
            self._serve(node, -1)
            node.is_serving, node.span, node.next_span = False, span, None
            self._announce(node)
        self._events.after(self.reload_s, lambda: self._arrive_at(node, span))

    def _arrive_at(self, node: Node, span: Span) -> None:
        if not self._is_here(node):
            return
        if node.is_serving:
            self._serve(node, -1)
        node.span, node.next_span = span, None
        node.is_serving, node.is_moving = True, False
        self._serve(node, 1)
        self._announce(node)

    # What others see, and what is measured.

    def _measure(self, node: Node) -> None:
        measured_s = node.machine.block_s * (1 + self.scenario.noise * node.rng.gauss(0, 1))
        told_s = steady(node.block_s, measured_s)
        if told_s != node.block_s:
            node.block_s = told_s
            if node.machine.peer in self._announced:
                self._announce(node)

    def _announce(self, node: Node) -> None:
        self._announced[node.machine.peer] = node.stage()
        self._is_changed = True

    def _look(self) -> None:
        self._swap_view()
        self._events.after(self.scenario.view_every_s, self._look)

    def _swap_view(self) -> None:
        if self._is_changed:
            stages = tuple(self._announced[peer] for peer in sorted(self._announced))
            self._view = replace(self._view, stages=stages)
            self._is_changed = False

    def _serve(self, node: Node, sign: int) -> None:
        self._rates[node.span.start : node.span.end] += sign * node.rate
        self._note()

    def _note(self) -> None:
        """Account for the time since the last change, and begin with what is now."""
        self._recorder.note(self._events.now_s, int(self._rates.min()) > 0, len(self._nodes))

    def _sample(self) -> None:
        self._note()
        present = [
            Present(node.machine, node.stage(), node.since_s) for node in self._nodes.values()
        ]
        rate, bound = self._gauge.sample(
            self._events.now_s, self.reload_s, float(self._rates.min()) / PER_TOKEN, present
        )
        self._recorder.sample(self._events.now_s, rate, bound, len(present))
        self._events.after(self.scenario.sample_s, self._sample)

    @staticmethod
    def _doing(action: Callable[[Visit], None], visit: Visit) -> Callable[[], None]:
        return lambda: action(visit)
