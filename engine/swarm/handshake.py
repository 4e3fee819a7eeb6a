"""Who may link: every peer of a public swarm, holders of the key in a private one.

Both sides prove that they hold the key without showing it: an HMAC over both ids, both nonces and
their role, so that a proof is good for one stream in one direction and cannot be sent back.

```
opener                                acceptor
HELLO   nonce            ──────────▶
        ◀──────────  WELCOME nonce, proof      (or refused)
HELLO   nonce, proof     ──────────▶
        ◀──────────  WELCOME nonce, proof      (or refused)
```
All four say which versions of the protocol their sender speaks; what follows them is in the newest
one that both do.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

import engine
from engine.core.clock import Clock
from engine.core.ids import PeerId
from engine.core.protocol_window import OURS, ProtocolWindow
from engine.protocol.messages import Hello

NOT_A_MEMBER = "not a member of this private swarm"
OTHER_SWARM = "a member of another swarm"


class Role(StrEnum):
    """Who opened the stream."""

    OPENER = "opener"
    ACCEPTOR = "acceptor"


@dataclass(frozen=True, slots=True)
class Membership:
    """The swarm that we belong to; `key` only in a private one. And what we speak there."""

    swarm_id: str
    key: bytes | None = field(default=None, repr=False)
    protocols: ProtocolWindow = OURS

    def proof(self, role: Role, opener: PeerId, acceptor: PeerId, nonces: tuple[str, str]) -> str:
        """Evidence that the holder of `role` has the key; empty in a public swarm.

        Args:
            role: Whose proof it is.
            opener: Who opened the stream.
            acceptor: Who received it.
            nonces: The opener's, then the acceptor's.
        """
        if self.key is None:
            return ""
        parts = ("shoal link 1", self.swarm_id, role, opener, acceptor, *nonces)
        # Lengths go in, so that no two lists of parts make the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.digest(self.key, text.encode(), "sha256").hex()

    def objection(
        self,
        hello: Hello,
        role: Role,
        opener: PeerId,
        acceptor: PeerId,
        nonces: tuple[str, str],
    ) -> str:
        """Why the other side, which has `role`, is not welcome; empty when it is."""
        if hello.swarm_id != self.swarm_id:
            return OTHER_SWARM
        if objection := self.protocols.objection(hello.protocols):
            return objection
        expected = self.proof(role, opener, acceptor, nonces)
        if not hmac.compare_digest(expected.encode(), hello.proof.encode()):
            return NOT_A_MEMBER
        return ""

    def hello(self, clock: Clock, nonce: str, *, proof: str = "", refused: str = "") -> Hello:
        """Our side of the handshake."""
        return Hello(
            swarm_id=self.swarm_id,
            nonce=nonce,
            proof=proof,
            unix_s=clock.unix_s(),
            version=engine.__version__,
            protocol=self.protocols.newest,
            oldest_protocol=self.protocols.oldest,
            refused=refused,
        )


def new_nonce() -> str:
    """128 random bits, never used twice."""
    return secrets.token_hex(16)
