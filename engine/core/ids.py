"""Names of things: peers, sessions, models."""

from __future__ import annotations

import secrets
from typing import NewType

PeerId = NewType("PeerId", str)
"""A libp2p peer id in base58 (`Qm…`): the hash of the node's public key."""

SessionId = NewType("SessionId", int)
"""One sequence on its way through the stages: 64 random bits."""


def new_session_id() -> SessionId:
    """Draw a session id that no stranger can guess."""
    return SessionId(secrets.randbits(64))


def short(peer: PeerId) -> str:
    """The last 6 characters of a peer id: enough for a log line or a label."""
    return peer[-6:]
