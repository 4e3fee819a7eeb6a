"""One reading of the machine, put together."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.config import GuestConfig
from engine.core.clock import Clock
from engine.policy.readings import Reading
from engine.probes.gpu import GpuProbe
from engine.probes.programs import running
from engine.probes.senses import Senses


class Reader:
    """Reads what the rules need, and nothing else.

    Args:
        senses: The operating system's.
        gpu: The GPU that the stage computes on; None: a CPU.
        clock: The time.
    """

    def __init__(self, senses: Senses, gpu: GpuProbe | None, clock: Clock) -> None:
        self._senses = senses
        self._gpu = gpu
        self._clock = clock

    def read(
        self,
        rules: GuestConfig,
        metered: bool | None,
        worker_pid: int | None,
        *,
        in_swarm: bool,
    ) -> Reading:
        """Look now; blocks for milliseconds.

        Args:
            rules: What the person has chosen.
            metered: What the person says of the connection; None: the system is asked.
            worker_pid: Our process that computes, if there is one now.
            in_swarm: Whether others may use what we give.
        """
        senses, unix_s = self._senses, self._clock.unix_s()
        asks_metered = in_swarm and not rules.on_metered and metered is None
        return Reading(
            monotonic_s=self._clock.monotonic_s(),
            unix_s=unix_s,
            local=datetime.fromtimestamp(unix_s, tz=UTC).astimezone(),
            in_swarm=in_swarm,
            on_battery=senses.on_battery() if in_swarm and not rules.on_battery else None,
            is_metered=senses.is_metered() if asks_metered else metered,
            programs=running(rules.exclusive_programs),
            in_game_mode=senses.in_game_mode() if rules.to_games else None,
            full_screen=senses.full_screen() if rules.to_games and self._gpu else None,
            gpu=None if self._gpu is None else self._gpu.read(worker_pid),
            user_idle_s=senses.user_idle_s() if in_swarm and rules.user_idle_s else None,
        )

    def close(self) -> None:
        """Let go of everything that is asked."""
        self._senses.close()
        if self._gpu is not None:
            self._gpu.close()
