"""How nodes reach each other."""

from __future__ import annotations

from enum import StrEnum


class Reach(StrEnum):
    """What others can do to connect to a node."""

    LOCAL = "local"
    """Nobody outside its machine is to reach it."""
    DIRECT = "direct"
    """They connect to it; it relays for those who cannot be connected to."""
    RELAYED = "relayed"
    """It accepts no connections, but holds slots at relays, through which they reach it."""
    OUTBOUND_ONLY = "outbound_only"
    """It accepts no connections and has found no relay: it can use the swarm but not serve it."""


class LinkPath(StrEnum):
    """How the bytes to a neighbour travel."""

    DIRECT = "direct"
    PUNCHED = "punched"
    """Directly, through a hole in both routers that a relay helped to make."""
    RELAYED = "relayed"
