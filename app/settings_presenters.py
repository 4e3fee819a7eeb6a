"""The settings as rows for the window: what each is called, in which unit, within which bounds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from app.setup_presenters import Card, held_card
from app.setup_state import Setup
from app.update_presenters import LOOKS, UpdateView, update_view
from app.words import Tr, size
from engine.localapi.schema import EngineStatus
from engine.localapi.settings import Effect, KeptModelInfo

MBIT: Final = 125_000
GB: Final = 1_000_000_000
MB: Final = 1_000_000


class Kind(StrEnum):
    """How a setting is edited."""

    SWITCH = "switch"
    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    """One of several values on each line."""
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Row:
    """One setting."""

    name: str
    """`branch.field`, as the engine knows it."""
    kind: Kind
    label: str
    hint: str = ""
    unit: str = ""
    scale: float = 1.0
    """Of the engine's unit, in one of the shown one."""
    decimals: int = 0
    most: float = 0.0
    zero: str = ""
    """What 0 is called; empty: 0."""
    is_whole: bool = True
    """The engine wants a whole number."""
    choices: tuple[tuple[str, str], ...] = ()
    """(Value, words)."""


@dataclass(frozen=True, slots=True)
class SettingsView:
    """What the settings window shows."""

    pages: tuple[tuple[Row, ...], ...]
    """Limits, rules, models and disk, the API."""
    values: Mapping[str, Any]
    """As the engine has them; empty while unknown."""
    overridden: frozenset[str]
    """Settled by how the engine was started."""
    rejoining: frozenset[str]
    """A change of these lets the stage begin again."""
    card: Card | None
    """What the node would hold with the limits as they are edited; None: nothing is known yet."""
    changing: bool
    error: str
    note: str
    models: tuple[KeptModelInfo, ...]
    folder: str
    """Where they are, and how much room there is."""
    swarm: str
    """Which one, in words."""
    is_in_swarm: bool
    invite: str
    api_url: str
    peer: str
    update: UpdateView


def settings_view(setup: Setup, status: EngineStatus | None, tr: Tr) -> SettingsView:
    """The state for the settings window."""
    settings, kept, swarm = setup.settings, setup.kept, setup.swarm
    all_settings = () if settings is None else settings.settings
    restart = "" if settings is None else ", ".join(settings.needs_restart)
    if restart:
        restart = tr("These hold when the engine starts next: {names}.").format(names=restart)
    name = None if swarm is None else swarm.name
    return SettingsView(
        pages=pages(setup, tr),
        values={setting.name: setting.value for setting in all_settings},
        overridden=frozenset(s.name for s in all_settings if s.is_overridden),
        rejoining=frozenset(s.name for s in all_settings if s.effect is Effect.REJOIN),
        card=None if setup.preview is None else held_card(setup.preview, tr),
        changing=setup.changing,
        error=setup.change_error,
        note=" ".join(filter(None, (setup.note, restart))),
        models=() if kept is None else kept.models,
        folder="" if kept is None else tr("{folder}, {free} free").format(
            folder=kept.folder, free=size(kept.free_bytes, tr)
        ),
        swarm=_swarm_words(name, is_private=swarm is not None and swarm.private, tr=tr),
        is_in_swarm=name is not None,
        invite="" if swarm is None else swarm.invite or "",
        api_url="" if status is None else f"{status.api_url}/v1",
        peer="" if status is None else status.peer_id or "",
        update=update_view(
            status, next((s.value is True for s in all_settings if s.name == LOOKS), None), tr
        ),
    )  # fmt: skip


def _swarm_words(name: str | None, *, is_private: bool, tr: Tr) -> str:
    if name is None:
        return tr("In no swarm: the model runs on this computer alone.")
    if is_private:
        return tr("In the private swarm {name}.").format(name=name)
    return tr("In the public swarm {name}.").format(name=name)


def pages(setup: Setup, tr: Tr) -> tuple[tuple[Row, ...], ...]:
    """All rows, page by page."""
    return _limits(tr), _rules(tr), _models(setup, tr), _api(tr)


def _limits(tr: Tr) -> tuple[Row, ...]:
    fits = tr("as much as fits")
    memory: dict[str, Any] = {
        "unit": tr(" GB"), "scale": GB, "decimals": 1, "most": 4096, "zero": fits,
    }  # fmt: skip
    rate: dict[str, Any] = {
        "unit": " Mbit/s", "scale": MBIT, "decimals": 1, "most": 100_000, "is_whole": False,
        "zero": tr("no limit"),
    }  # fmt: skip
    return (
        Row("limits.gpu_memory_bytes", Kind.NUMBER, tr("GPU memory"), **memory),
        Row("limits.ram_bytes", Kind.NUMBER, tr("RAM"), **memory),
        Row(
            "limits.uplink_bytes_per_s", Kind.NUMBER, tr("Upload"),
            tr("For all connections together. With a limit, nothing is relayed for others."), **rate,
        ),
        Row(
            "limits.downlink_bytes_per_s", Kind.NUMBER, tr("Download"),
            tr("Downloads of models included."), **rate,
        ),
        Row(
            "stage.max_blocks", Kind.NUMBER, tr("Blocks"), most=10_000,
            zero=tr("as many as fit"),
        ),
        Row(
            "stage.threads", Kind.NUMBER, tr("Processor threads"), most=1024,
            zero=tr("one for each core"),
        ),
        Row("stage.enabled", Kind.SWITCH, tr("Hold blocks; without, you only use the swarm")),
        Row("stage.rebalance", Kind.SWITCH, tr("Move to blocks that the swarm needs more")),
        Row("swarm.relay_for_others", Kind.SWITCH, tr("Relay for computers that nobody can reach")),
    )  # fmt: skip


def _rules(tr: Tr) -> tuple[Row, ...]:
    return (
        Row(
            "guest.schedule", Kind.LINES, tr("Hours to give"),
            tr("One line each, such as mon-fri 18:00-08:00 or sat,sun. Empty: always."),
        ),
        Row("guest.on_battery", Kind.SWITCH, tr("Give on battery, too")),
        Row("guest.on_metered", Kind.SWITCH, tr("Give over metered connections, too")),
        Row(
            "swarm.metered", Kind.CHOICE, tr("This connection is metered"),
            choices=(("auto", tr("as the system says")), ("yes", tr("yes")), ("no", tr("no"))),
        ),
        Row(
            "guest.user_idle_s", Kind.NUMBER, tr("Give when you have been away for"),
            unit=tr(" min"), scale=60, most=1440, zero=tr("do not wait for that"), is_whole=False,
        ),
        Row("guest.to_games", Kind.SWITCH, tr("Step aside for games and full-screen programs")),
        Row(
            "guest.exclusive_programs", Kind.LINES, tr("Step aside for these programs"),
            tr("One line each, such as blender."),
        ),
        Row(
            "guest.gpu_free_bytes", Kind.NUMBER, tr("Step aside when less GPU memory is free than"),
            unit=tr(" MB"), scale=MB, most=100_000, zero=tr("never"),
        ),
        Row(
            "guest.gpu_max_c", Kind.NUMBER, tr("Let the GPU cool down above"),
            unit=" °C", most=120, zero=tr("never"), is_whole=False,
        ),
        Row(
            "guest.gpu_max_w", Kind.NUMBER, tr("Let the GPU draw at most"),
            tr("By pauses between steps; the driver's own limit, which slows down other programs, "
               "too, stays as it is."),
            unit=" W", most=10_000, zero=tr("what its driver allows"), is_whole=False,
        ),
        Row(
            "guest.quiet_s", Kind.NUMBER, tr("Come back after so much quiet"),
            unit=" s", most=86_400, is_whole=False,
        ),
    )  # fmt: skip


def _models(setup: Setup, tr: Tr) -> tuple[Row, ...]:
    gpus = () if setup.profile is None else setup.profile.gpus
    devices = [("auto", tr("chosen by Shoal")), ("cpu", tr("the processor"))]
    devices += [(gpu.uuid, f"{gpu.name} ({gpu.uuid})") for gpu in gpus]
    return (
        Row("model.device", Kind.CHOICE, tr("Compute on"), choices=tuple(devices)),
        Row(
            "client.speculation", Kind.CHOICE, tr("Propose tokens ahead"),
            tr("The swarm checks several of them at a time. Answers stay the same."),
            choices=(("auto", tr("where that saves time")), ("off", tr("never"))),
        ),
        Row(
            "client.draft_model", Kind.TEXT, tr("Model that proposes them"),
            tr("The folder of a smaller model of the same family, or of one that shoal draft train "
               "has made. Empty: one that is at hand."),
        ),
        Row(
            "model.folder", Kind.TEXT, tr("Folder for models"),
            tr("Empty: the usual place. Models that are elsewhere stay there."),
        ),
        Row(
            "limits.models_bytes", Kind.NUMBER, tr("Disk space for models"),
            unit=tr(" GB"), scale=GB, decimals=1, most=100_000, zero=tr("no limit"),
        ),
        Row(
            "limits.disk_free_bytes", Kind.NUMBER, tr("Leave free on the disk"),
            unit=tr(" GB"), scale=GB, decimals=1, most=100_000, zero=tr("nothing"),
        ),
        Row(
            "model.proxy", Kind.TEXT, tr("Proxy for downloads"),
            tr("Such as http://proxy:3128. Empty: as the system says. What goes between the swarm's "
               "computers passes no proxy."),
        ),
        Row(
            "model.ca_file", Kind.TEXT, tr("Certificates for downloads"),
            tr("A PEM file to trust besides the system's, such as your company's. Empty: none."),
        ),
    )  # fmt: skip


def _api(tr: Tr) -> tuple[Row, ...]:
    return (Row("api.port", Kind.NUMBER, tr("Port"), most=65_535, zero=tr("a free one each time")),)


def snippets(url: str, token_file: str) -> tuple[tuple[str, str], ...]:
    """(Name, text): how other programs use this engine."""
    return (
        (
            "Python",
            "from pathlib import Path\n"
            "from openai import OpenAI\n\n"
            f"token = Path({token_file!r}).read_text().strip()\n"
            f'client = OpenAI(base_url="{url}", api_key=token)\n'
            "answer = client.chat.completions.create(\n"
            '    model="default", messages=[{"role": "user", "content": "Hello"}]\n'
            ")\n"
            "print(answer.choices[0].message.content)",
        ),
        (
            "curl",
            f'curl {url}/chat/completions \\\n  -H "Authorization: Bearer $(cat {token_file})" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            '  -d \'{"model": "default", "messages": [{"role": "user", "content": "Hello"}]}\'',
        ),
    )
