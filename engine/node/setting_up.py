"""The first steps of a person: measuring the machine, seeing what it would hold, beginning."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic import ValidationError

from engine.config import Config
from engine.core.errors import RequestError
from engine.core.model_spec import ModelSpec
from engine.core.sentences import Sentence
from engine.localapi.running import Home
from engine.localapi.said import said
from engine.localapi.schema import EngineStatus, Measurements, Progress
from engine.localapi.setup import MachineRequest, PlanPreview, PreviewRequest
from engine.models.known import known_spec, starter_spec
from engine.node import compute
from engine.node.node import Node
from engine.node.preview import Would, preview
from engine.profiler import profile
from engine.profiler.cache import cached, save
from engine.profiler.hardware import hardware
from engine.profiler.profile import Subject
from engine.swarm import invites


class SettingUp:
    """See `engine.http.setup_routes.SetupBackend`."""

    def __init__(self, home: Home, node: Node) -> None:
        self._home = home
        self._node = node
        self._measuring = asyncio.Lock()

    async def preview(self, request: PreviewRequest) -> PlanPreview:
        """What the node would hold.

        Raises:
            RequestError: There is no such setting, or it is out of range; `param` names it.
            InviteInvalid: It is none.
            ConfigError: The settings ask for a GPU that is not there.
        """
        wanted = _with(self._node.config, request)
        invite = invites.parse(request.invite) if request.invite else self._node.invite
        source = wanted.model.source if invite is None else invite.source
        machine = await asyncio.to_thread(compute.choose, wanted.model, wanted.limits)
        peer, snapshot = self._node.swarm_now()
        if request.invite or wanted.model.source != self._node.config.model.source:
            snapshot = None  # of another swarm, or another model
        would = Would(
            config=wanted,
            machine=machine,
            source=source,
            spec=await asyncio.to_thread(known_spec, source, self._models_dir(wanted)),
            in_swarm=invite is not None,
            peer=peer,
            snapshot=snapshot,
            measured=await asyncio.to_thread(cached, self._home),
            hardware=await asyncio.to_thread(hardware),
        )
        return await asyncio.to_thread(preview, would)

    async def measure(self, request: MachineRequest) -> Measurements:
        """Measure this machine and keep what is found; cancelling ends it."""
        settings = self._node.config
        async with self._measuring:
            machine = await asyncio.to_thread(compute.choose, settings.model, settings.limits)
            spec = await asyncio.to_thread(self._spec, settings)
            subject = Subject(spec, machine.device, machine.dtype_name, settings.stage.threads)
            try:
                found = await profile.measure(self._home, subject, self._show, quick=request.quick)
            finally:
                self._node.show(None)
            await asyncio.to_thread(save, self._home, found)
        return Measurements(profile=found)

    async def begin(self) -> EngineStatus:
        """Begin alone, if nothing has begun yet."""
        await self._node.begin()
        return self._node.status()

    def _show(self, what: str, share: float) -> None:
        self._node.show(
            Progress(
                what=f"Measuring {what}",
                said=said(Sentence("Measuring this computer")),
                done=share,
                total=1.0,
            )
        )

    def _models_dir(self, settings: Config) -> Path:
        return self._home.models_dir_in(settings.model.folder)

    def _spec(self, settings: Config) -> ModelSpec:
        source = settings.model.source if self._node.invite is None else self._node.invite.source
        return known_spec(source, self._models_dir(settings)) or starter_spec()


def _with(now: Config, request: PreviewRequest) -> Config:
    """The settings with those that the request names."""
    tree = now.model_dump()
    for name, value in request.values.items():
        branch, _, field = name.partition(".")
        if field not in tree.get(branch, {}):
            raise RequestError(f"There is no setting {name[:100]!r}.", param=name[:100])
        if value is None:
            del tree[branch][field]
        else:
            tree[branch][field] = value
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise RequestError(f"The setting {name} is wrong: {first['msg']}.", param=name) from error
