"""From what is known of this machine to the words of the first steps. Pure: no Qt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from app.setup_state import Setup
from app.words import Tr, in_words, number, progress_words, share_of, size
from engine.core.plans import Span
from engine.localapi.schema import EngineState, EngineStatus
from engine.localapi.setup import PlanPreview

RATES_MBIT: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Stops of the sliders for the line; the one beyond the last is no limit."""
NO_RATE: Final = len(RATES_MBIT)
USUAL_UPLINK: Final = RATES_MBIT.index(8)
"""Leaves room on an ordinary home line."""
MEMORY_STOPS: Final = 20
"""Of the slider for memory: parts of all that there is; the last one is no limit."""
BYTES_PER_MBIT: Final = 125_000


@dataclass(frozen=True, slots=True)
class Caps:
    """Where the sliders stand."""

    memory: int = MEMORY_STOPS
    up: int = USUAL_UPLINK
    down: int = NO_RATE


@dataclass(frozen=True, slots=True)
class Card:
    """What this machine would hold, in plain words."""

    headline: str
    lines: tuple[str, ...]
    is_possible: bool


@dataclass(frozen=True, slots=True)
class FirstRunView:
    """What the first steps show."""

    measuring: str
    """What is being measured; empty when nothing is."""
    progress: float | None
    """0 to 1, or below 0 while unknown; None: nothing is in progress."""
    machine: str
    """The machine in one line."""
    measuring_error: str
    card: Card | None
    """None: nothing is known yet."""
    caps: tuple[str, str, str]
    """Where the sliders stand, in words: memory, up, down."""
    folder: str
    """Where models are kept, as a sentence; empty while that is unknown."""
    can_begin: bool
    changing: bool
    error: str
    has_begun: bool
    state: str
    """After the beginning: what the engine does."""
    can_chat: bool
    invite: str
    """Of the swarm that has been founded, for handing on."""


def values_of(caps: Caps, preview: PlanPreview) -> dict[str, Any]:
    """The settings that the sliders stand for; None: no limit, which is the default."""
    memory = None if caps.memory >= MEMORY_STOPS else _memory_bytes(caps.memory, preview)
    return {
        "limits.gpu_memory_bytes" if preview.on_gpu else "limits.ram_bytes": memory,
        "limits.uplink_bytes_per_s": _rate_bytes_per_s(caps.up),
        "limits.downlink_bytes_per_s": _rate_bytes_per_s(caps.down),
    }


def first_run_view(
    setup: Setup,
    status: EngineStatus | None,
    caps: Caps,
    headline: str,
    tr: Tr,
    folder: str = "",
) -> FirstRunView:
    """The state for the first steps.

    Args:
        setup: What is known.
        status: Of the engine.
        caps: Where the sliders stand.
        headline: The engine's state, as everywhere.
        tr: Translates.
        folder: That the person has chosen for models; empty: none.
    """
    preview, progress = setup.preview, None if status is None else status.progress
    waits = status is None or status.awaits_setup
    share = None
    if setup.measuring or setup.changing or not waits:
        share = share_of(progress) if progress and progress.total > 0 else -1.0
    can_chat = status is not None and status.can_chat and not waits
    if can_chat or (not waits and status is not None and status.state is EngineState.ERROR):
        share = None
    return FirstRunView(
        measuring=_measuring(setup, status, tr),
        progress=share,
        machine=_machine(preview, tr) if preview else "",
        measuring_error=setup.measuring_error,
        card=_card(preview, caps, tr) if preview else _no_card(setup),
        caps=_cap_words(caps, preview, tr),
        folder=_folder_words(setup, folder, tr),
        can_begin=status is not None and not setup.changing,
        changing=setup.changing,
        error=setup.change_error,
        has_begun=not waits,
        state=headline if not waits else "",
        can_chat=can_chat,
        invite="" if setup.swarm is None else setup.swarm.invite or "",
    )


def _measuring(setup: Setup, status: EngineStatus | None, tr: Tr) -> str:
    if not setup.measuring:
        return ""
    progress = None if status is None else status.progress
    return tr("Measuring…") if progress is None else progress_words(progress, tr)


def _no_card(setup: Setup) -> Card | None:
    return Card(setup.preview_error, (), is_possible=False) if setup.preview_error else None


def _machine(preview: PlanPreview, tr: Tr) -> str:
    return tr("{device}, {free} of {total} free").format(
        device=preview.device,
        free=size(preview.memory_free_bytes, tr),
        total=f"{size(preview.memory_total_bytes, tr)} {_kind(preview, tr)}",
    )


def _kind(preview: PlanPreview, tr: Tr) -> str:
    return tr("VRAM") if preview.on_gpu else tr("RAM")


def held_card(preview: PlanPreview, tr: Tr) -> Card:
    """What would be held, whatever the line."""
    if preview.span is None:
        return Card(tr("Nothing would be held"), (_reason(preview, tr),), is_possible=False)
    text = tr("You would hold {blocks}, {memory}")
    return Card(
        text.format(blocks=_blocks(preview, tr), memory=_memory(preview, tr)),
        (_reason(preview, tr), *_speed(preview, tr)),
        is_possible=True,
    )


def _card(preview: PlanPreview, caps: Caps, tr: Tr) -> Card:
    if preview.span is None:
        return Card(tr("Nothing would be held"), (_reason(preview, tr),), is_possible=False)
    headline = tr("You would hold {blocks}, {memory}, {line}").format(
        blocks=_blocks(preview, tr), memory=_memory(preview, tr), line=_up_words(caps.up, tr)
    )
    lines = [_reason(preview, tr), *_speed(preview, tr)]
    bytes_per_s = _rate_bytes_per_s(caps.up)
    if bytes_per_s and preview.token_bytes:
        lines.append(
            tr("In a swarm, that line passes on at most {rate} tokens a second.").format(
                rate=_rounded(bytes_per_s / preview.token_bytes, tr)
            )
        )
    return Card(headline, tuple(lines), is_possible=True)


def _reason(preview: PlanPreview, tr: Tr) -> str:
    return in_words(preview.reason_said, preview.reason, tr)


def _memory(preview: PlanPreview, tr: Tr) -> str:
    return tr("{part} of {all}").format(
        part=size(preview.memory_bytes, tr),
        all=f"{size(preview.memory_total_bytes, tr)} {_kind(preview, tr)}",
    )


def _speed(preview: PlanPreview, tr: Tr) -> tuple[str, ...]:
    if preview.tokens_per_s is None:
        return ()
    text = tr("A chat on this computer alone would get about {rate} tokens a second.")
    return (text.format(rate=_rounded(preview.tokens_per_s, tr)),)


def _blocks(preview: PlanPreview, tr: Tr) -> str:
    assert preview.span is not None
    span, count = Span(*preview.span), preview.num_blocks or 0
    if len(span) == count:
        return tr("all {count} blocks of {model}").format(count=count, model=preview.model)
    if not preview.is_certain:
        return tr("{held} of the {count} blocks of {model}").format(
            held=len(span), count=count, model=preview.model
        )
    return tr("blocks {span} of {model}").format(span=span, model=preview.model)


def _cap_words(caps: Caps, preview: PlanPreview | None, tr: Tr) -> tuple[str, str, str]:
    if preview is None:
        memory = ""
    elif caps.memory >= MEMORY_STOPS:
        memory = tr("as much as fits")
    else:
        memory = tr("at most {size}").format(size=size(_memory_bytes(caps.memory, preview), tr))
    return memory, _up_words(caps.up, tr), _down_words(caps.down, tr)


def _folder_words(setup: Setup, chosen: str, tr: Tr) -> str:
    if chosen:
        return tr("Models will be kept in {folder}.").format(folder=chosen)
    if setup.kept is None:
        return ""
    return tr("Models are kept in {folder}, where {free} are free.").format(
        folder=setup.kept.folder, free=size(setup.kept.free_bytes, tr)
    )


def _up_words(stop: int, tr: Tr) -> str:
    if stop >= NO_RATE:
        return tr("no limit up")
    return tr("up to {rate} Mbit/s up").format(rate=RATES_MBIT[stop])


def _down_words(stop: int, tr: Tr) -> str:
    if stop >= NO_RATE:
        return tr("no limit down")
    return tr("up to {rate} Mbit/s down").format(rate=RATES_MBIT[stop])


def _memory_bytes(stop: int, preview: PlanPreview) -> int:
    return preview.memory_total_bytes * max(stop, 1) // MEMORY_STOPS


def _rate_bytes_per_s(stop: int) -> float | None:
    return None if stop >= NO_RATE else float(RATES_MBIT[stop] * BYTES_PER_MBIT)


def _rounded(value: float, tr: Tr) -> str:
    return number(value, tr, 0 if value >= 10 else 1)
