"""Messages with which two peers measure the line between them.

```
PROBE    asker → peer    echo: answer at once | send: send me filler | receive: take filler from me
PROBED   peer → asker    granted, or refused and why
FILLER   the sender → the other, as granted: 9 bytes, then noise
PROBED   peer → asker    after `receive`: how fast it came
```
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from engine.core.errors import FrameCorrupt
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import Message

MAX_TRAIN_BYTES: Final = 16 << 20
"""The most filler of one probe; nobody grants more."""
MAX_TRAIN_S: Final = 4.0
PIECE_BYTES: Final = 32 << 10
"""Of filler in one frame."""
MAX_RATES: Final = 8
_FILLER: Final = struct.Struct("<QB")
_U64 = Annotated[int, Field(ge=0, lt=1 << 64)]
_Rate = Annotated[float, Field(gt=0, lt=1e15, allow_inf_nan=False)]


class Probe(Message):
    """PROBE: what is asked of the peer."""

    request: _U64
    want: Literal["echo", "send", "receive"]
    num_bytes: int = Field(default=0, ge=0, le=MAX_TRAIN_BYTES)
    """At most so much filler."""
    hold_s: float = Field(default=0.0, ge=0, le=1.0)
    """How long to go on at full rate."""
    limit_s: float = Field(default=0.0, ge=0, le=MAX_TRAIN_S)
    """How long to send at most."""


class ProbeReply(Message):
    """PROBED: the answer to a probe, or its result."""

    request: _U64
    refused: str = Field(default="", max_length=256)
    rates_bytes_per_s: tuple[_Rate, ...] = Field(default=(), max_length=MAX_RATES)
    """How fast filler came, the steady part of it in pieces; empty in a grant."""
    is_steady: bool = False
    """Whether the rate had stopped growing; else the line may carry more."""


class Phase(IntEnum):
    """What the sender of filler thinks."""

    GROWING = 0
    """More at a time still made it faster."""
    STEADY = 1
    """It has found the line's rate."""
    LAST = 2
    """The frame is the last one."""
    LAST_UNSTEADY = 3
    """The same, without a steady rate."""


class Filler(NamedTuple):
    """The head of a FILLER frame."""

    request: int
    phase: Phase

    @property
    def is_last(self) -> bool:
        """Whether no more follows."""
        return self.phase in (Phase.LAST, Phase.LAST_UNSTEADY)


def filler_frame(filler: Filler, noise: bytes) -> Frame:
    """A frame that is there to take time."""
    return Frame(Kind.FILLER, _FILLER.pack(*filler) + noise)


def parse_filler(frame: Frame) -> Filler:
    """Read its head.

    Raises:
        FrameCorrupt: It is none.
    """
    try:
        request, phase = _FILLER.unpack_from(frame.payload)
        return Filler(request, Phase(phase))
    except (struct.error, ValueError) as error:
        raise FrameCorrupt("The peer sent filler without a head.") from error
