"""What this node can say of its speed before it has served anything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from engine.core.errors import EngineError
from engine.core.ids import PeerId
from engine.core.sentences import Sentence
from engine.localapi.running import Home
from engine.localapi.said import said
from engine.localapi.schema import Progress
from engine.node.fitting import Fitting
from engine.planner.announced import summary
from engine.profiler import profile

logger = logging.getLogger(__name__)

UNKNOWN = (0.0, 0.0)


async def block_times(
    home: Home, fitting: Fitting, *, may_measure: bool, show: Callable[[Progress], None]
) -> tuple[float, float]:
    """(`block_s`, `block_row_s`) of our announcement, as this machine was measured last.

    Args:
        home: Where measurements are kept.
        fitting: Of which model, and where it computes.
        may_measure: Take the few seconds for it where nothing is known.
        show: Told how far that is.

    Returns:
        Zeros while nothing is known; the first requests will tell.
    """
    compute, config, spec = fitting.compute, fitting.config, fitting.files.spec
    if config.emulate is not None:
        if not config.emulate.computes or config.blocks is None:
            return UNKNOWN
        block_s = config.emulate.stage_s / (config.blocks[1] - config.blocks[0])
        return block_s, block_s / config.emulate.rows
    if may_measure:
        subject = profile.Subject(spec, compute.device, compute.dtype_name, config.threads)
        try:
            known = await profile.current(
                home, subject, lambda what, share: show(_progress(what, share))
            )
        except EngineError as error:
            logger.warning("this machine was not measured: %s", error)
            return UNKNOWN
    else:
        found = await asyncio.to_thread(profile.cached, home)
        if found is None or (found.device, found.dtype) != (compute.device, compute.dtype_name):
            return UNKNOWN
        known = found
    made = known.node_profile(PeerId("this node"), fitting.size)
    return summary(made, max(1, fitting.max_blocks))


def _progress(what: str, share: float) -> Progress:
    return Progress(
        what=f"Measuring {what}",
        said=said(Sentence("Measuring this computer")),
        done=share,
        total=1.0,
    )
