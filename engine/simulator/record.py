"""What a simulation leaves: how much was served, of how much that was possible, and how many moves."""

from __future__ import annotations

from dataclasses import dataclass

from engine.simulator.scenario import DAY_S


@dataclass(frozen=True, slots=True)
class Sample:
    """The swarm at one moment."""

    at_s: float
    tokens_per_s: float
    bound_tokens_per_s: float
    nodes: int


@dataclass(frozen=True, slots=True)
class Record:
    """A whole run."""

    samples: tuple[Sample, ...]
    seconds_at_zero: float
    """While nodes that could hold every block were there."""
    longest_zero_s: float
    moves: int
    node_days: float
    """Time of all nodes together."""
    duration_s: float

    @property
    def mean_bound_share(self) -> float:
        """Mean over time of what is served as a part of what is possible."""
        shares = [s.tokens_per_s / s.bound_tokens_per_s for s in self.samples if _is_possible(s)]
        return sum(shares) / len(shares) if shares else 0.0

    @property
    def served_share(self) -> float:
        """All that is served as a part of all that is possible: busy hours count more."""
        possible = sum(sample.bound_tokens_per_s for sample in self.samples)
        return sum(s.tokens_per_s for s in self.samples) / possible if possible else 0.0

    @property
    def moves_per_node_day(self) -> float:
        """Moves of a node in a day in which it is there all the time."""
        return self.moves / self.node_days if self.node_days else 0.0


def _is_possible(sample: Sample) -> bool:
    return sample.bound_tokens_per_s > 1e-9


class Recorder:
    """Collects a `Record`."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._moves = 0
        self._node_s = 0.0
        self._zero_s = 0.0
        self._run_s = 0.0
        """Of the stretch without service that lasts now."""
        self._longest_s = 0.0
        self._last_s = 0.0
        self._was_served = False
        self._num_nodes = 0

    def note(self, now_s: float, is_served: bool, num_nodes: int) -> None:
        """Say how it is from now on."""
        passed_s = now_s - self._last_s
        self._node_s += passed_s * self._num_nodes
        if self._was_served:
            self._run_s = 0.0
        elif self._samples and _is_possible(self._samples[-1]):
            self._zero_s += passed_s
            self._run_s += passed_s
            self._longest_s = max(self._longest_s, self._run_s)
        self._last_s, self._was_served, self._num_nodes = now_s, is_served, num_nodes

    def count_move(self) -> None:
        """A node has left its place for another one."""
        self._moves += 1

    def sample(self, at_s: float, tokens_per_s: float, bound: float, nodes: int) -> None:
        """Take down one moment."""
        self._samples.append(Sample(at_s, tokens_per_s, bound, nodes))

    def finish(self, duration_s: float) -> Record:
        """The whole."""
        return Record(
            tuple(self._samples),
            self._zero_s,
            self._longest_s,
            self._moves,
            self._node_s / DAY_S,
            duration_s,
        )
