from engine.config import LinkFaults
from engine.swarm.faults import Faults


def strikes(count: int, **fields) -> list[bool]:
    faults = Faults(LinkFaults(**fields))
    return [faults.strikes() for _ in range(count)]


def test_the_same_seed_always_condemns_the_same_transfers():
    assert strikes(500, fail_rate=0.05, seed=7) == strikes(500, fail_rate=0.05, seed=7)
    assert strikes(500, fail_rate=0.05, seed=7) != strikes(500, fail_rate=0.05, seed=8)


def test_as_many_transfers_fail_as_was_asked_for():
    assert 400 < sum(strikes(10_000, fail_rate=0.05, seed=1)) < 600
    assert not any(strikes(10_000, seed=1))
