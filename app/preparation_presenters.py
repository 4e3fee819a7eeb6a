"""What the window says while the engine's environment is set up. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from app.preparation import Offer, Phase, Preparation
from app.words import Tr, percent, size


@dataclass(frozen=True, slots=True)
class PreparationView:
    """What the window shows."""

    headline: str
    detail: str
    facts: tuple[tuple[str, str], ...] = ()
    """Name and value."""
    problem: str = ""
    has_bar: bool = False
    share: float | None = None
    go_on: str = ""
    """On the button that begins, empty for none."""
    stop: str = ""
    """On the button that interrupts, empty for none."""
    can_remove: bool = False


def preparation_view(state: Preparation, tr: Tr) -> PreparationView:
    """Describe `state`."""
    match state.phase:
        case Phase.OFFERED:
            return PreparationView(
                tr("One more thing: the engine"),
                tr(
                    "The part that computes is fetched once, in the build that fits this computer. "
                    "Nothing is installed outside of the folder below."
                ),
                facts=_facts(state.offer, tr),
                go_on=tr("&Download and set up"),
            )
        case Phase.FAILED:
            return PreparationView(
                tr("The engine could not be set up"),
                tr("What was downloaded is kept, so trying again goes on from there."),
                facts=_facts(state.offer, tr),
                problem=state.problem or tr("It ended without saying why."),
                go_on=tr("&Try again"),
                can_remove=True,
            )
        case Phase.WORKING | Phase.STOPPING:
            return PreparationView(
                tr("Setting up the engine"),
                _step(state, tr),
                facts=_facts(state.offer, tr),
                has_bar=True,
                share=state.share,
                stop=tr("&Interrupt") if state.phase is Phase.WORKING else "",
            )
        case Phase.LOOKING | Phase.READY:
            return PreparationView(tr("Looking at this computer …"), "", has_bar=True)


def _step(state: Preparation, tr: Tr) -> str:
    if state.phase is Phase.STOPPING:
        return tr("Interrupting …")
    text = {
        "": tr("Beginning …"),
        "python": tr("Making a place of its own for it …"),
        "packages": tr("Fetching the libraries it needs …"),
        "torch": tr("Fetching PyTorch, the largest part …"),
        "shoal": tr("Putting in Shoal and trying it out …"),
    }.get(state.step, state.step)
    return text if state.share is None else f"{text} {percent(state.share, tr)}"


def _facts(offer: Offer | None, tr: Tr) -> tuple[tuple[str, str], ...]:
    if offer is None:
        return ()
    return (
        (tr("To download"), tr("about {size}").format(size=size(offer.download_bytes, tr))),
        (
            tr("On the disk"),
            tr("{needed} of {free} that are free").format(
                needed=size(offer.needed_bytes, tr), free=size(offer.free_bytes, tr)
            ),
        ),
        (tr("Folder"), offer.folder),
        (tr("Computes on"), _device(offer, tr)),
    )


def _device(offer: Offer, tr: Tr) -> str:
    match offer.case:
        case "card":
            return tr("the NVIDIA card")
        case "no_driver":
            return tr(
                "the CPU, because the NVIDIA card has no working driver ({driver} or newer is needed)"
            ).format(driver=offer.driver)
        case "old_driver":
            return tr(
                "the CPU, because the NVIDIA driver is too old ({driver} or newer is needed)"
            ).format(driver=offer.driver)
        case "old_card":
            return tr("the CPU, because the NVIDIA card is too old")
        case _:
            return tr("the CPU, because there is no NVIDIA card")
