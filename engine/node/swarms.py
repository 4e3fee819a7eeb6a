"""What a person does about swarms: found one, join one, leave it, and be told which it is."""

from __future__ import annotations

from engine.core.errors import ConfigError
from engine.localapi.running import Home
from engine.localapi.schema import SwarmCreateRequest, SwarmInfo, SwarmJoinRequest
from engine.node import founding
from engine.node.life import Life
from engine.swarm import invites
from engine.swarm.invites import Invite


class Swarms:
    """The swarm that the node is in, by the person's choice.

    Args:
        home: Keeps the invite.
        life: Goes from one swarm to another.
    """

    def __init__(self, home: Home, life: Life) -> None:
        self._home = home
        self._life = life
        self.is_spread = False
        """Started with `--stages`: the other engines here count on our blocks and our swarm."""

    def info(self) -> SwarmInfo:
        """See `Backend.swarm_info`."""
        membership = self._life.membership
        invite = membership.invite
        if invite is None:
            return SwarmInfo(name=None, model=membership.source)
        return SwarmInfo(
            name=invite.name,
            private=invite.key is not None,
            model=invite.model_id,
            invite=invite.text(),
            bootstrap=invite.bootstrap,
        )

    async def create(self, request: SwarmCreateRequest) -> SwarmInfo:
        """See `Backend.swarm_create`."""
        membership = self._life.membership
        if self._life.awaits_setup:
            spec = (await membership.find_model()).spec
        else:
            spec = self._life.serving().files.spec
        invite = founding.found(
            self._home,
            request.name,
            listen=self._life.config.swarm.listen,
            source=membership.source,
            model_id=spec.model_id,
            private=request.private,
        )
        return await self._switch(invite)

    async def join(self, request: SwarmJoinRequest) -> SwarmInfo:
        """See `Backend.swarm_join`."""
        return await self._switch(invites.parse(request.invite))

    async def leave(self) -> SwarmInfo:
        """See `Backend.swarm_leave`."""
        return await self._switch(None)

    async def _switch(self, invite: Invite | None) -> SwarmInfo:
        """Change swarms; when the new one cannot be joined, the old one stays."""
        if self.is_spread:
            raise ConfigError(
                "This engine was started with --stages, which is a swarm of its own; start it "
                "without to found, join or leave another."
            )
        await self._life.switch(invite, lambda: self._keep(invite))
        return self.info()

    def _keep(self, invite: Invite | None) -> None:
        if invite is None:
            self._home.swarm_file.unlink(missing_ok=True)
        else:
            invites.save(self._home.swarm_file, invite)
