"""Encoding hidden states just before the wire, and decoding them just after it.

Handlers see raw rows on both sides. What a frame travels as is decided when it is about to be
written, by what is then known of ratio, speed and bandwidth (`engine.codec.adaptive`).
"""

from __future__ import annotations

import asyncio
import statistics
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from engine.codec import lossy, payload
from engine.codec.adaptive import History
from engine.codec.lanes import ElementType
from engine.codec.learning import ReferenceLearner
from engine.codec.reference import MAX_KNOWN_REFERENCES, Reference
from engine.config import CodecMode
from engine.core.clock import Clock
from engine.core.errors import FrameCorrupt
from engine.protocol.frames import (
    ELEMENT_BYTES,
    LOSSY_CODECS,
    ROW_KINDS,
    Codec,
    Frame,
    Kind,
    is_too_dense,
)
from engine.protocol.messages import LinkFacts, Ping

_THREAD_ABOVE_BYTES: Final = 128 << 10
"""Larger payloads are worked on beside the event loop: the hop costs a tenth of a millisecond."""
_MIN_BYTES: Final = 512
"""Smaller payloads are hardly smaller when encoded."""
_RECENT: Final = 64


@dataclass(slots=True)
class CodecWork:
    """What encoding and decoding have cost, all links together."""

    seconds: float = 0.0


class OutgoingCodec:
    """Encodes what goes to one peer, and counts it; outlives the peer's streams."""

    def __init__(
        self, mode: CodecMode, line_bytes_per_s: float, clock: Clock, work: CodecWork
    ) -> None:
        """`line_bytes_per_s` is the rate of an artificial line; 0 for a real one."""
        self._mode = mode
        self._line_bytes_per_s = line_bytes_per_s
        self._clock = clock
        self._work = work
        self._histories: dict[tuple[Codec, int], History] = {}
        self._learner: ReferenceLearner | None = None
        self._sampled = asyncio.Event()
        self._bandwidth_bytes_per_s: float | None = None
        self._decode_s_per_byte: float | None = None
        self._last_codec = Codec.RAW
        self._recent: deque[tuple[int, int]] = deque(maxlen=_RECENT)
        self.sent_row_bytes = 0
        """Bytes of row frames handed to the stream, as they travelled."""

    def for_stream(self) -> Callable[[Frame], Awaitable[list[Frame]]]:
        """What a new stream to the peer shall use in place of its frames; see `_wire`."""
        # Each stream's receiver starts without references.
        shipped: deque[int] = deque(maxlen=MAX_KNOWN_REFERENCES)
        return lambda frame: self._wire(frame, shipped)

    def heard(self, pong: Ping) -> None:
        """Note what the peer says of our frames' arrival."""
        if pong.received_bytes_per_s > 0:
            self._bandwidth_bytes_per_s = pong.received_bytes_per_s
        if pong.decoded_bytes_per_s > 0:
            self._decode_s_per_byte = 1 / pong.decoded_bytes_per_s

    def facts(self) -> LinkFacts | None:
        """How hidden states travel now; None while none have."""
        if not self._recent:
            return None
        raw_bytes, wire_bytes = map(sum, zip(*self._recent, strict=True))
        return LinkFacts(
            codec=self._last_codec.name.lower(),
            ratio=wire_bytes / raw_bytes,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s,
        )

    async def learn(self) -> None:
        """Make references of what is sent, for ever."""
        while True:
            await self._sampled.wait()
            self._sampled.clear()
            if self._learner is not None and self._learner.has_sample:
                await asyncio.to_thread(self._learner.review)

    async def _wire(self, frame: Frame, shipped: deque[int]) -> list[Frame]:
        """What to write for a frame: often itself; perhaps a reference before it."""
        frames = [frame]
        if frame.kind is Kind.STEP and frame.width:
            frames = await self._wire_hidden(frame, shipped)
            self._last_codec = frames[-1].codec
            self._recent.append((len(frame.payload), len(frames[-1].payload)))
        if frame.kind in ROW_KINDS:
            self.sent_row_bytes += sum(wired.num_bytes for wired in frames)
        return frames

    async def _wire_hidden(self, frame: Frame, shipped: deque[int]) -> list[Frame]:
        codec = frame.codec if frame.codec in LOSSY_CODECS else Codec.LOSSLESS
        raw_bytes = len(frame.payload)
        history = self._histories.setdefault((codec, raw_bytes.bit_length() // 2), History())
        raw = frame if frame.codec is Codec.RAW else replace(frame, codec=Codec.RAW)
        if not self._should_encode(raw_bytes, history):
            return [raw]
        reference = self._reference_for(frame)
        if raw_bytes > _THREAD_ABOVE_BYTES:
            encoded, encode_s = await asyncio.to_thread(self._encode, frame, codec, reference)
        else:
            encoded, encode_s = self._encode(frame, codec, reference)
        history.add(raw_bytes, min(raw_bytes, len(encoded)), encode_s)
        self._work.seconds += encode_s
        if len(encoded) >= raw_bytes or is_too_dense(raw_bytes, len(encoded)):
            return [raw]
        wired = [replace(frame, payload=encoded, codec=codec)]
        if reference is not None and reference.digest not in shipped:
            named = (lossy if codec in LOSSY_CODECS else payload).named_reference(encoded)
            if named == reference.digest:
                shipped.append(named)
                wired.insert(0, Frame(Kind.REFERENCE, reference.shipped()))
        return wired

    def _should_encode(self, raw_bytes: int, history: History) -> bool:
        if self._mode != "auto":
            return self._mode == "lossless"
        if raw_bytes < _MIN_BYTES:
            return False
        return history.should_encode(self.bandwidth_bytes_per_s, self._decode_s_per_byte)

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        """As the peer has measured it on what we send; None while unknown."""
        known = [self._bandwidth_bytes_per_s, self._line_bytes_per_s]
        return min((rate for rate in known if rate), default=None)

    def _reference_for(self, frame: Frame) -> Reference | None:
        kind = (ElementType(frame.dtype), frame.width)
        if self._learner is None or self._learner.kind != kind:
            self._learner = ReferenceLearner(*kind)
        self._learner.take(frame.payload)
        if self._learner.has_sample:
            self._sampled.set()
        return self._learner.current

    def _encode(
        self, frame: Frame, codec: Codec, reference: Reference | None
    ) -> tuple[bytes | memoryview, float]:
        """The payload encoded, or as it is where that is impossible, and the seconds it took."""
        started_s = self._clock.monotonic_s()
        kind = (ElementType(frame.dtype), frame.width)
        if codec in LOSSY_CODECS:
            rounded = lossy.encode(frame.payload, *kind, lossy.Layout(codec), reference)
            encoded = frame.payload if rounded is None else rounded
        else:
            encoded = payload.encode(frame.payload, *kind, reference)
        return encoded, self._clock.monotonic_s() - started_s


class IncomingCodec:
    """Decodes what comes by one stream."""

    def __init__(self, clock: Clock, work: CodecWork) -> None:
        self._clock = clock
        self._work = work
        self._references: dict[int, Reference] = {}
        self._rates: deque[float] = deque(maxlen=_RECENT)

    @property
    def decoded_bytes_per_s(self) -> float:
        """Raw bytes by the second, median of the last payloads; 0 while unknown."""
        return statistics.median(self._rates) if self._rates else 0.0

    def learn(self, frame: Frame) -> None:
        """Remember a reference; the oldest is forgotten, as by its sender.

        Raises:
            FrameCorrupt: It is none.
        """
        reference = Reference.received(frame.payload)
        self._references.pop(reference.digest, None)
        self._references[reference.digest] = reference
        if len(self._references) > MAX_KNOWN_REFERENCES:
            del self._references[next(iter(self._references))]

    async def decode(self, frame: Frame) -> Frame:
        """The frame with raw rows; `codec` still says how they came.

        Raises:
            FrameCorrupt: It does not decode to rows of the frame's shape.
        """
        if frame.codec is Codec.RAW:
            return frame
        raw_bytes = len(frame.ids) * frame.width * ELEMENT_BYTES[frame.dtype]
        if raw_bytes > _THREAD_ABOVE_BYTES:
            rows, decode_s = await asyncio.to_thread(self._timed_decode, frame)
        else:
            rows, decode_s = self._timed_decode(frame)
        self._work.seconds += decode_s
        self._rates.append(raw_bytes / max(1e-6, decode_s))
        return replace(frame, payload=rows)

    def _timed_decode(self, frame: Frame) -> tuple[memoryview, float]:
        started_s = self._clock.monotonic_s()
        rows = self._decode(frame)
        return rows, self._clock.monotonic_s() - started_s

    def _decode(self, frame: Frame) -> memoryview:
        kind = (ElementType(frame.dtype), len(frame.ids), frame.width)
        is_lossy = frame.codec in LOSSY_CODECS
        named = (lossy if is_lossy else payload).named_reference(frame.payload)
        reference = self._references.get(named)
        if named and reference is None:
            raise FrameCorrupt(
                "The peer compressed its payload with a reference that it has not sent."
            )
        if is_lossy:
            layout = lossy.Layout(frame.codec)
            return lossy.decode(frame.payload, *kind, layout, reference)
        return payload.decode(frame.payload, *kind, reference)
