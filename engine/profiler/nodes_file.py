"""`NODES.json`: machines, lines, a model and a wish, checked before anything is computed with them.

    {"model": "starter",
     "nodes": [{"peer": "ada", "block": {"mlp": {"base_s": 0.002, "unit_s": 0.0001}, …}, …},
               {"peer": "bob", …what `shoal measure --json` printed there…}],
     "network": {"delay_s": 0.02, "bytes_per_s": [[null, 2e6], [5e6, null]]},
     "objective": {"goal": "throughput", "context_tokens": 2048},
     "calibration": {"step_overhead_s": 0.1},
     "me": "bob"}

Any number of a node may also be `{"value": …, "spread": …, "unit": …}`. `null` is no limit for a rate,
and no way for a delay.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from engine.core.errors import ConfigError
from engine.core.ids import PeerId
from engine.core.profiles import Calibration, ModelSize, NetworkMatrix, NodeProfile, Objective
from engine.models.known import known_spec
from engine.planner.announced import MIN_BLOCK_S
from engine.profiler.nodes_schema import (
    TAGS,
    MeasuredNode,
    ModelNumbers,
    NamedModel,
    Network,
    NodesDocument,
)

MAX_FILE_BYTES: Final = 16 << 20
_USUAL_ELEMENT_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class NodesFile:
    """What the file says, as the planner takes it."""

    model: ModelSize
    profiles: tuple[NodeProfile, ...]
    network: NetworkMatrix
    objective: Objective
    calibration: Calibration
    me: PeerId | None
    """Whose joining is in question."""

    def without(self, peer: PeerId) -> NodesFile:
        """The same swarm before `peer` joined."""
        others = tuple(profile for profile in self.profiles if profile.peer != peer)
        return replace(self, profiles=others)


def read_nodes_file(path: Path, models_dir: Path) -> NodesFile:
    """Read and check a file.

    Args:
        path: Of the file.
        models_dir: Where models' sizes are looked up.

    Raises:
        ConfigError: It cannot be read, or a field is wrong; the text names it.
        ModelError: The model that it names is of a kind that we cannot run.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}; name a file of nodes."
        ) from error
    if len(text) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than 16 MiB, so it is no file of nodes.")
    try:
        document = NodesDocument.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(f"In {path.name}, {_said(error)}") from error
    try:
        return _checked(document, models_dir)
    except ValueError as error:
        raise ConfigError(f"In {path.name}, {error}") from error


def _said(error: ValidationError) -> str:
    """The first thing that is wrong, by its field's name."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part not in TAGS) or "the file"
    match first["type"]:
        case "missing":
            return f"{field} is missing."
        case "extra_forbidden":
            return f"{field} is no field that we know; correct its name or remove it."
        case "json_invalid":
            return f"the text is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}."
        case "value_error":
            return f"{field} is wrong: {first['msg'].removeprefix('Value error, ')}."
        case _:
            wanted = first["msg"].removeprefix("Input should ").removeprefix("be ")
            return f"{field} is wrong: it should be {wanted}."


def _checked(document: NodesDocument, models_dir: Path) -> NodesFile:
    """What fields say of one another.

    Raises:
        ValueError: They contradict; the text names the field.
    """
    names = [node.peer or f"node-{index + 1}" for index, node in enumerate(document.nodes)]
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"nodes.peer is wrong: {name} is there {times} times.")
    if document.me is not None and document.me not in names:
        raise ValueError(f"me is wrong: there is no node {document.me}.")
    model = _model(document, models_dir)
    peers = tuple(PeerId(name) for name in names)
    objective = document.objective.value()
    if objective.context_tokens < objective.prompt_tokens + objective.new_tokens:
        raise ValueError(
            "objective.context_tokens is wrong: it must hold prompt_tokens and new_tokens, "
            f"{objective.prompt_tokens + objective.new_tokens}."
        )
    profiles = tuple(
        node.profile(peer, model) for peer, node in zip(peers, document.nodes, strict=True)
    )
    for index, profile in enumerate(profiles):
        for field in ("uplink_bytes_per_s", "downlink_bytes_per_s"):
            if getattr(profile, field) <= 0:
                raise ValueError(f"nodes.{index}.{field} is wrong: it should be greater than 0.")
        if profile.pass_overhead_s + profile.block.mlp.of(1) < MIN_BLOCK_S:
            raise ValueError(
                f"nodes.{index}.block.mlp is wrong: no machine computes a block in less than a "
                "microsecond."
            )
    return NodesFile(
        model,
        profiles,
        _network(document.network, peers),
        objective,
        document.calibration.value(),
        None if document.me is None else PeerId(document.me),
    )


def _model(document: NodesDocument, models_dir: Path) -> ModelSize:
    asked = document.model
    if isinstance(asked, ModelNumbers):
        return asked.size()
    if isinstance(asked, str):
        asked = NamedModel(name=asked)
    spec = known_spec(asked.name, models_dir)
    if spec is None:
        raise ValueError(
            f"model is wrong: the sizes of {asked.name} are not known here; fetch it, or give "
            "numbers instead."
        )
    measured = [node for node in document.nodes if isinstance(node, MeasuredNode)]
    widest = max((node.model.element_bytes for node in measured), default=_USUAL_ELEMENT_BYTES)
    return ModelSize.of(spec, asked.element_bytes or widest)


def _network(network: Network | None, peers: tuple[PeerId, ...]) -> NetworkMatrix:
    if network is None:
        if len(peers) > 1:
            raise ValueError("network is missing.")
        return NetworkMatrix(peers, ((0.0,),), ((math.inf,),))
    named = peers if network.peers is None else tuple(PeerId(peer) for peer in network.peers)
    if sorted(named) != sorted(peers):
        raise ValueError("network.peers is wrong: it must name every node once, and nobody else.")
    delay_s = _matrix("network.delay_s", network.delay_s, len(peers))
    bytes_per_s = _matrix("network.bytes_per_s", network.bytes_per_s, len(peers))
    _require_connected(delay_s, named)
    return NetworkMatrix(named, delay_s, bytes_per_s)


def _matrix(
    field: str, value: float | Sequence[Sequence[float | None]] | None, num: int
) -> tuple[tuple[float, ...], ...]:
    """Rows and columns; `inf` for null, and nothing on the way to oneself."""
    if not isinstance(value, Sequence):
        value = [[value] * num] * num
    if len(value) != num or any(len(row) != num for row in value):
        raise ValueError(f"{field} is wrong: it must be one number, or {num} rows of {num}.")
    return tuple(tuple(math.inf if number is None else number for number in row) for row in value)


def _require_connected(delay_s: Sequence[Sequence[float]], peers: Sequence[PeerId]) -> None:
    """Every machine must get round to every other, if over others."""
    there = _apart(delay_s)
    back = _apart(list(zip(*delay_s, strict=True)))
    if there or back:
        one, other = (peers[0], peers[there[0]]) if there else (peers[back[0]], peers[0])
        raise ValueError(
            f"network.delay_s is wrong: there is no way from {one} to {other}, not even over "
            "others; give delays that join them, or plan for them apart."
        )


def _apart(delay_s: Sequence[Sequence[float]]) -> list[int]:
    """Machines that the first one does not reach."""
    reached, new = {0}, [0]
    while new:
        row = delay_s[new.pop()]
        fresh = [at for at, way in enumerate(row) if math.isfinite(way) and at not in reached]
        reached.update(fresh)
        new += fresh
    return [at for at in range(len(delay_s)) if at not in reached]
