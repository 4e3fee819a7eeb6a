"""What `shoal bench swarm` was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.bench.environments import ENVIRONMENTS
from engine.bench.quantities import Emulation, LinkShaping, Stretching
from engine.config import ModelConfig
from engine.core.errors import ConfigError
from engine.core.plans import Span
from engine.profiler.nodes_file import NodesFile


@dataclass(frozen=True, slots=True)
class SwarmBench:
    """The command line, read. See `engine.bench.swarm_command` for what each means."""

    model: str
    stages: int
    batch_sizes: tuple[int, ...]
    prompt_tokens: int
    new_tokens: int
    model_config: ModelConfig
    micro_batches: tuple[int, ...] = (0,)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Branch → field → value, for every engine and the client."""
    env: str | None = None
    link: LinkShaping | None = None
    ideal_client_link: bool = False
    line_rate_bytes_per_s: float = 0.0
    """What the hosts' own links carry, for the bound; 0: as `env` says."""
    host_exec: str | None = None
    host_addr: str | None = None
    emulate: Emulation | None = None
    stretching: Stretching | None = None
    """How long passes and drafts shall take at least."""
    slow_down: float = 1.0
    """Lines and what is emulated take so many times as long, and are reported as if not."""
    answer_limit_s: float = 0.0
    """Stop decoding after so long; 0: not before the end."""
    against: str | None = None
    threads: int | None = None
    cores: tuple[int, ...] | None = None
    repeat: int = 1
    seed: int = 0
    fail_rate: float = 0.0
    kills: int = 0
    spares: int | None = None
    generations: int = 0
    soak_s: float = 0.0
    long_prompt: int = 0
    chats: int = 8
    spans: tuple[Span, ...] = ()
    """What each stage holds; empty: an even split."""
    nodes: NodesFile | None = None
    """The machines, to predict with; the first one is host 1."""
    placements: tuple[str, ...] = ()
    """Ways of placing the blocks on `nodes` to measure one after the other, see `bench.placed`."""
    placement: str = ""
    """Which of them this is."""
    hosts: tuple[int, ...] = ()
    """Where each stage runs; empty: the first one on host 1, and so on."""

    def check(self) -> None:
        """See that the parts fit together.

        Raises:
            ConfigError: They do not.
        """
        if self.host_exec is not None and self.host_addr is None:
            raise ConfigError("--host-exec needs --host-addr: it says where each peer is reached.")
        if self.new_tokens < 2:
            raise ConfigError("A decode rate needs at least 2 new tokens; ask for more.")
        if self.env is not None and self.link is not None:
            raise ConfigError("--env and --link both say how slow the links are; give one of them.")
        modes = [bool(self.disturbed), self.soak_s > 0, self.long_prompt > 0]
        if sum(modes) > 1:
            raise ConfigError(
                "Failures, --soak-s and --long-prompt are measurements of their own; run them one "
                "after another."
            )
        many = len(self.batch_sizes) > 1 or len(self.micro_batches) > 1
        if many and (any(modes) or self.against):
            raise ConfigError(
                "Lists of batch sizes or micro-batches are for plain measurements of Shoal alone; "
                "give one of each."
            )
        if self.against and (any(modes) or self.emulate):
            raise ConfigError("--against compares plain measurements of a real model only.")
        if self.nodes is not None:
            self._check_nodes(self.nodes, is_plain=not (any(modes) or self.against))
        elif self.placements:
            raise ConfigError("--placements needs --nodes: it says which machines there are.")
        if self.placements and (self.spans or many):
            raise ConfigError(
                "--placements places the blocks itself, for one batch size and one number of "
                "micro-batches; leave out --spans and lists."
            )

    def _check_nodes(self, nodes: NodesFile, *, is_plain: bool) -> None:
        if not is_plain:
            raise ConfigError("--nodes predicts plain measurements of Shoal alone.")
        machines = len(nodes.profiles)
        if not (self.placements or self.hosts) and machines != self.stages:
            raise ConfigError(
                f"The file of --nodes has {machines} machines, but there are {self.stages} stages; "
                "describe as many machines as there are stages, host 1 first."
            )

    @property
    def disturbed(self) -> bool:
        """Whether something shall go wrong, or the same generation shall be repeated often."""
        return bool(self.fail_rate or self.kills or self.generations)

    @property
    def network(self) -> LinkShaping | None:
        """Rate and delay of every link, whoever makes them so; None when nobody said."""
        return self.link if self.env is None else ENVIRONMENTS[self.env]

    @property
    def shape(self) -> LinkShaping | None:
        """What the engines shall slow their lines down to; None: hosts with links of their own."""
        if self.network is None or (self.host_exec is not None and self.link is None):
            return None
        rate, slow_down = self.network.rate_bytes_per_s, self.slow_down
        return LinkShaping(rate / slow_down, self.network.delay_s * slow_down)

    @property
    def rate_bytes_per_s(self) -> float:
        """Of every directed link; 0: unlimited or unknown."""
        if self.line_rate_bytes_per_s:
            return self.line_rate_bytes_per_s
        return self.network.rate_bytes_per_s if self.network else 0.0

    @property
    def ring_delay_s(self) -> float:
        """One-way delays that a token meets on its way around the ring."""
        hops = self.stages - 1 if self.ideal_client_link or self.stages == 1 else self.stages
        return hops * self.network.delay_s if self.network else 0.0

    @property
    def stage_hosts(self) -> tuple[int, ...]:
        """The number of each stage's host."""
        return self.hosts or tuple(range(1, self.stages + 1))

    @property
    def client_host(self) -> int:
        """The number of the client's: the one after all machines."""
        return 1 + (self.stages if self.nodes is None else len(self.nodes.profiles))

    @property
    def rows_of_emulated_pass(self) -> int:
        """Rows that the emulated time and bytes are for."""
        assert self.emulate is not None
        return self.emulate.rows or self.batch_sizes[0]
