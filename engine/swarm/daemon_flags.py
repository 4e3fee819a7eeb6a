"""What p2pd is told, depending on how the node is reached.

Most homes cannot accept connections. Those that can relay for the others, whose slots
`relay_slots` keeps; circuits are end-to-end encrypted, and libp2p tries to punch a hole through
both routers at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.reach import Reach

# Long and large, so that no circuit ends in the middle of a session; libp2p insists on some limit.
CIRCUIT_LIMIT_S = 24 * 3600
CIRCUIT_LIMIT_BYTES = 1 << 40
_CIRCUITS_PER_PEER = 64
_RELAY_BUFFER_BYTES = 64 << 10


def daemon_flags(
    reach: Reach, announce: Sequence[str], *, relays: bool = True
) -> dict[str, object]:
    """Arguments of p2pd.

    Args:
        reach: How we are reached.
        announce: What p2pd tells others of our addresses; empty: what it finds.
        relays: Relay for others, if they reach us. Not to announce it would not do: whoever knows
            our address may ask.
    """
    if reach is Reach.LOCAL:
        return {"autonat": False, "natPortMap": False, "relay": False}
    # Without its AutoNAT service p2pd punches no holes.
    flags: dict[str, object] = {"autonat": True, "natPortMap": True, "relay": True}
    if announce:
        flags["announceAddrs"] = ",".join(announce)
    if reach is not Reach.DIRECT:
        return flags | {"forceReachabilityPrivate": True}
    # Without its relay service p2pd would run the other one, see `daemon_environment`.
    slots = {} if relays else {"relayMaxReservations": 0}
    return (
        flags
        | slots
        | {
            "forceReachabilityPublic": True,
            "relayTimeLimit": f"{CIRCUIT_LIMIT_S}s",
            "relayDataLimit": CIRCUIT_LIMIT_BYTES,
            "relayMaxCircuits": _CIRCUITS_PER_PEER if relays else 0,
            "relayBufferSize": _RELAY_BUFFER_BYTES,
        }
    )


def daemon_environment(reach: Reach) -> dict[str, str]:
    """Variables for p2pd.

    It starts two relay services, ours and one that cuts a circuit after 128 KiB; the later one
    counts. On one Go processor that is always ours.
    """
    environment = {"GOLOG_LOG_LEVEL": "error"}
    if reach is Reach.DIRECT:
        environment["GOMAXPROCS"] = "1"
    return environment
