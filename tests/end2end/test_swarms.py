"""Founding, joining and leaving a swarm with real engines, and what happens when that fails."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from engine.client.client import Client
from engine.core.generation import TokenEvent
from engine.core.sampling_params import SamplingParams
from engine.localapi.client import ApiFailed
from engine.swarm import invites
from engine.swarm.interfaces import free_port
from tests.support.real_engine import RealEngine, eventually, real_engine, swarm_client
from tests.support.tiny_models import save_tiny

pytestmark = pytest.mark.end2end


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory)
    return str(directory)


@pytest.fixture(scope="module")
def founder(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    with real_engine(
        tmp_path_factory.mktemp("founder"), "--model", tiny, "--blocks", "0:2"
    ) as engine:
        engine.wait_state("idle")
        engine.api.call("POST", "/shoal/v1/swarm/create", {"name": "reef", "private": True})
        engine.wait_state("idle")
        yield engine


@pytest.fixture(scope="module")
def alone(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """An engine with the whole model and no swarm."""
    with real_engine(tmp_path_factory.mktemp("alone"), "--model", tiny) as engine:
        engine.wait_state("idle")
        yield engine


def invite_of(engine: RealEngine) -> str:
    return str(engine.api.call("GET", "/shoal/v1/swarm")["invite"])


def join(engine: RealEngine, invite: str) -> dict[str, object]:
    return engine.api.call("POST", "/shoal/v1/swarm/join", {"invite": invite})


def shoal(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "engine", *arguments],
        env={**os.environ, "SHOAL_HOME": str(root)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_half_a_model_in_the_swarm_is_named_to_who_asks(founder: RealEngine) -> None:
    with pytest.raises(ApiFailed, match="Nobody serves blocks 2–3 of this model"):
        founder.complete("Hello")


def test_invite_of_a_founder_that_listens_on_a_chosen_port_leads_there(
    tiny: str, tmp_path: Path
) -> None:
    listen = f"/ip4/127.0.0.1/tcp/{free_port()}"
    blocks = ("--model", tiny, "--blocks", "0:2", "--listen", listen)
    with real_engine(tmp_path / "home", *blocks) as engine:
        engine.wait_state("idle")
        engine.api.call("POST", "/shoal/v1/swarm/create", {"name": "port"})
        invite = invite_of(engine)
        assert [a.partition("/p2p/")[0] for a in invites.parse(invite).bootstrap] == [listen]
        other = ("--blocks", "2:4", "--invite", invite)
        with real_engine(tmp_path / "member", *other) as member:
            member.wait(lambda status: len(status["plan"]) == 2)


def test_newcomer_takes_the_missing_blocks_and_the_swarm_answers_until_it_leaves(
    founder: RealEngine, alone: RealEngine, tiny: str, tmp_path: Path
) -> None:
    expected = alone.complete("Hello")["choices"]
    with real_engine(tmp_path, "--model", tiny, "--blocks", "2:4") as member:
        member.wait_state("idle")
        info = join(member, invite_of(founder))
        assert (info["name"], info["private"]) == ("reef", True)
        for engine in (founder, member):
            engine.wait(lambda status: len(status["plan"]) == 2)
            assert engine.complete("Hello")["choices"] == expected
        lines = member.api.call("POST", "/shoal/v1/measurements", {"quick": True})
        assert [line["peer"] for line in lines["peers"]] == [founder.status()["peer_id"]]
        assert lines["uplink_bytes_per_s"]["value"] > 1e6
        assert lines["downlink_bytes_per_s"]["value"] > 1e6
        assert lines["reachability"] == "direct"
        assert founder.status()["swarm"] == "reef"
        member.api.call("POST", "/shoal/v1/swarm/leave")
        assert member.status()["swarm"] is None
        founder.wait(lambda status: not status["can_chat"], timeout_s=15)


def test_node_whose_stage_is_paused_chats_through_others_and_stays_in_the_swarm(
    founder: RealEngine, tmp_path: Path
) -> None:
    whole = ("--blocks", "0:4", "--invite", invite_of(founder))
    with real_engine(tmp_path, *whole) as member:
        member.wait_state("idle")
        expected = member.complete("Hello")["choices"]
        status = founder.api.call("POST", "/shoal/v1/pause", {})
        assert (status["state"], status["paused"], status["worker_pid"]) == (
            "paused", "stage", None,
        )  # fmt: skip
        founder.wait(lambda status: [stage["start"] for stage in status["plan"]] == [0])
        assert founder.complete("Hello")["choices"] == expected
        # Others may come in through its network process, which goes on.
        assert any("p2pd" in process.name() for process in founder.family())
        founder.api.call("POST", "/shoal/v1/resume")
        founder.wait_state("idle")


def test_member_that_pauses_is_gone_from_the_swarm_and_is_taken_back(
    founder: RealEngine, tiny: str, tmp_path: Path
) -> None:
    blocks = ("--model", tiny, "--blocks", "2:4", "--invite", invite_of(founder))
    with real_engine(tmp_path, *blocks) as member:
        for scope, processes_left in (("stage", 2), ("everything", 1)):
            founder.wait(lambda status: len(status["plan"]) == 2)
            worker = member.wait_state("idle", "serving")["worker_pid"]
            member.api.call("POST", "/shoal/v1/pause", {"scope": scope})
            assert not psutil.pid_exists(worker)
            founder.wait(lambda status: not status["can_chat"], timeout_s=15)
            # libp2p stays where the stage alone is paused: this member still uses the swarm.
            assert len(member.family()) == processes_left
            with pytest.raises(ApiFailed, match="Nobody serves blocks 2–3"):
                founder.complete("Hello")
            member.api.call("POST", "/shoal/v1/resume")
        founder.wait(lambda status: len(status["plan"]) == 2)


async def test_answer_outlives_a_killed_engine_and_the_clients_own_network_process(
    founder: RealEngine, tmp_path: Path
) -> None:
    invite = invite_of(founder)
    half = ("--blocks", "2:4", "--invite", invite)
    with real_engine(tmp_path / "one", *half) as one, real_engine(tmp_path / "two", *half) as two:
        for engine in (one, two):
            engine.wait_state("idle")
        async with swarm_client(tmp_path / "client", invite) as (client, _):
            expected = [event.id async for event in answer(client)]
            used = [hop.peer for hop in client.route().hops]
            engines = {engine.status()["peer_id"]: engine for engine in (one, two)}
            (p2pd,) = [c for c in psutil.Process().children() if "p2pd" in c.name()]
            got = []
            async for event in answer(client):
                got.append(event.id)
                if len(got) == 15:
                    os.kill(engines[used[1]].process.pid, signal.SIGKILL)
                # Tokens may lie here that came before the kill: what counts is that it was mended.
                if client.recoveries.seconds and p2pd.is_running():
                    p2pd.kill()
            assert got == expected
            assert len(client.recoveries.seconds) >= 2


async def answer(client: Client) -> AsyncIterator[TokenEvent]:
    """One greedy answer, far longer than what may have been computed before it is read here."""
    params = SamplingParams(max_new_tokens=200)
    async for _, event in client.generate([[5, 6, 7]], [params]):
        yield event


def test_membership_survives_a_restart(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny) as engine:
        engine.wait_state("idle")
        engine.api.call("POST", "/shoal/v1/swarm/create", {"name": "again"})
        before = engine.api.call("GET", "/shoal/v1/swarm")
    with real_engine(tmp_path) as engine:
        engine.wait_state("idle")
        assert engine.api.call("GET", "/shoal/v1/swarm") == before


def test_invite_without_the_key_does_not_admit(
    founder: RealEngine, tiny: str, tmp_path: Path
) -> None:
    real = invites.parse(invite_of(founder))
    forged = invites.Invite(
        real.name, real.swarm_id, real.bootstrap, real.source, real.model_id, bytes(32)
    )
    with real_engine(tmp_path, "--model", tiny, "--no-stage") as stranger:
        stranger.wait_state("idle")
        join(stranger, forged.text())
        status = eventually(stranger.status, lambda s: s["model"] is not None, 30)
        assert not status["can_chat"]
        with pytest.raises(ApiFailed, match="No stage of this model is online"):
            stranger.complete("Hello")


def test_join_that_fails_changes_nothing(alone: RealEngine, tiny: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    peer = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
    nobody = invites.found(
        "gone", [f"/ip4/127.0.0.1/tcp/{port}/p2p/{peer}"], tiny, "tiny@0", private=False
    ).text()
    text = alone.complete("Hello")["choices"]
    with pytest.raises(ApiFailed, match="bootstrap"):
        join(alone, nobody)
    with pytest.raises(ApiFailed, match="cut"):
        join(alone, nobody[:60])
    with pytest.raises(ApiFailed, match="another version"):
        join(alone, nobody.replace("v1", "v9"))
    alone.wait(lambda status: status["state"] == "idle" and status["swarm"] is None)
    assert alone.complete("Hello")["choices"] == text


def test_engine_with_an_unreachable_swarm_says_so_and_keeps_trying(
    tiny: str, tmp_path: Path
) -> None:
    peer = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
    nobody = invites.found(
        "gone", [f"/ip4/127.0.0.1/tcp/9/p2p/{peer}"], tiny, "tiny@0", private=False
    )
    with real_engine(tmp_path, "--invite", nobody.text()) as engine:
        status = engine.wait_state("offline")
        assert "bootstrap" in status["reason"]
        with pytest.raises(ApiFailed, match=r"not ready \(offline\)"):
            engine.complete("Hello")


def test_swarm_with_another_version_of_the_model_is_refused_by_name(
    founder: RealEngine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    save_tiny("llama", other, seed=5)
    real = invites.parse(invite_of(founder))
    mixed = invites.Invite(
        real.name, real.swarm_id, real.bootstrap, str(other), real.model_id, real.key
    )
    with real_engine(tmp_path / "home", "--invite", mixed.text()) as engine:
        status = engine.wait_state("error")
        assert real.model_id in status["reason"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "{taken}"], "is taken by another program"),
        (["--invite", "shoal://v1/AAAA"], "invite"),
        (["--stages", "9"], "cannot be spread over 9 stages"),
        (["--set", "stage.no_such=1"], "stage.no_such"),
        (["--set", "stage.kv_budget_bytes=-5"], "kv_budget_bytes"),
    ],
)
def test_engine_that_cannot_start_says_why_in_one_line(
    arguments: list[str], sentence: str, tiny: str, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = [word.format(taken=taken.getsockname()[1]) for word in arguments]
        result = shoal(tmp_path, "engine", "--model", tiny, *words)
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert sentence in line


def test_second_engine_of_a_home_names_the_first(alone: RealEngine, tiny: str) -> None:
    result = shoal(alone.home.data_dir.parent, "engine", "--model", tiny)
    assert result.returncode == 1
    assert f"process {alone.process.pid}" in result.stderr


def test_engine_spread_over_local_stages_keeps_its_swarm(tiny: str, tmp_path: Path) -> None:
    with real_engine(tmp_path, "--model", tiny, "--stages", "2") as engine:
        engine.wait(lambda status: status["can_chat"])
        with pytest.raises(ApiFailed, match="started with --stages"):
            engine.api.call("POST", "/shoal/v1/swarm/create", {"name": "reef"})
        assert engine.status()["can_chat"]
