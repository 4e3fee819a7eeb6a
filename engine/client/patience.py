"""How long a request keeps trying before its error is final. Pure but for the clock it is given."""

from __future__ import annotations

from engine.config import ClientConfig
from engine.core.clock import Clock
from engine.core.errors import CacheFull, EngineError, NoRoute, PeerUnreachable

WAIT_STEP_S = 0.25
RETRY_S = 0.1
MAX_BACKOFF_S = 1.6


class Patience:
    """Counts the failures of one request since it last got on."""

    def __init__(self, config: ClientConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._failures: list[EngineError] = []
        self._since_s: float | None = None
        self._tries = 0

    def got_on(self) -> None:
        """There was news: earlier failures no longer count."""
        self._failures.clear()
        self._since_s = None
        self._tries = 0

    def after(self, error: EngineError, *, may_recover: bool, tried_all: bool) -> float:
        """Decide whether to try again.

        Args:
            error: Why the last attempt ended.
            may_recover: What is missing may come back: a stage is joining, or there was a route when
                the request began.
            tried_all: There is no route but over peers that have just failed; they may be tried
                again, which is no failure of its own.

        Returns:
            Seconds to wait before the next attempt: none after the first failure, so that a route
            that can be repaired is repaired at once.

        Raises:
            EngineError: There is no point; the text says what was tried.
        """
        if not error.retryable:
            raise error
        now_s = self._clock.monotonic_s()
        if self._since_s is None:
            self._since_s = now_s
        self._tries += 1
        waits = isinstance(error, CacheFull) or (may_recover and isinstance(error, NoRoute))
        mends = may_recover and isinstance(error, PeerUnreachable)
        if (waits or mends or tried_all) and now_s - self._since_s < self._config.room_wait_s:
            return WAIT_STEP_S if waits else self._backoff_s(WAIT_STEP_S)
        self._failures.append(error)
        if len(self._failures) >= self._config.max_attempts:
            raise self._final(now_s - self._since_s) from error
        return self._backoff_s(MAX_BACKOFF_S)

    def _backoff_s(self, most_s: float) -> float:
        return min(RETRY_S * 4.0 ** (self._tries - 2), most_s) if self._tries > 1 else 0.0

    def _final(self, elapsed_s: float) -> EngineError:
        texts = list(dict.fromkeys(str(failure) for failure in self._failures))
        if len(texts) == 1:
            during = f" in {elapsed_s:.0f} s" if elapsed_s >= 1 else ""
            return type(self._failures[-1])(
                f"{texts[0]} (tried {len(self._failures)} times{during})"
            )
        return PeerUnreachable("No route worked. " + " Then: ".join(texts))
