from __future__ import annotations

import pytest

from engine.core.errors import LocalProtocolError
from engine.core.ids import SessionId
from engine.core.sampling_params import SamplingParams
from tests.support.stages import Chain
from tests.support.stages import prompts as random_prompts
from tests.support.tiny_models import save_tiny

(WORDS,) = random_prompts(60)
PENALISED = SamplingParams(repetition_penalty=1.5, frequency_penalty=1.0, max_new_tokens=500)
OLD, NEW = 1, 2


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny("llama", directory)
    return Chain(directory, (2,))


def answer(chain: Chain, session: int, position: int, tokens: int = 6) -> list[int]:
    """Continue WORDS, of which the first `position` tokens are there already."""
    row = WORDS[position:]
    found: list[int] = []
    for _ in range(tokens):
        (sampled,) = chain.step((session, position, row))
        position, row = position + len(row), [sampled.id]
        found.append(sampled.id)
    return found


@pytest.fixture
def expected(chain: Chain) -> list[int]:
    chain.open(OLD, len(WORDS), sampling=PENALISED)
    return answer(chain, OLD, 0)


def copy(chain: Chain, tokens: int) -> None:
    for stage in chain.stages:
        stage.copy_prefix(SessionId(NEW), SessionId(OLD), tokens)


@pytest.mark.parametrize("kept", [False, True])
def test_copied_beginning_is_as_if_computed_penalties_included(
    chain: Chain, expected: list[int], kept: bool
) -> None:
    if kept:
        for stage in chain.stages:
            stage.keep_prefix(SessionId(OLD), 40)
    chain.open(NEW, len(WORDS), sampling=PENALISED)
    copy(chain, 40)
    for stage in chain.stages:
        stage.close(SessionId(OLD))
    assert answer(chain, NEW, 40) == expected


@pytest.mark.parametrize("position", [0, 25])
def test_replay_into_a_copied_beginning_overwrites_it(
    chain: Chain, expected: list[int], position: int
) -> None:
    chain.open(NEW, len(WORDS), sampling=PENALISED)
    copy(chain, 40)
    assert answer(chain, NEW, 40) == answer(chain, NEW, position) == expected


def test_kept_beginning_takes_no_more_room_than_its_tokens(chain: Chain) -> None:
    stage = chain.stages[0]
    stage.close(SessionId(NEW))
    before = stage.kv_bytes.device
    chain.open(NEW, len(WORDS), capacity=1000)
    answer(chain, NEW, 0)
    opened = stage.kv_bytes.device - before
    stage.keep_prefix(SessionId(NEW), 50)
    assert stage.kv_bytes.device - before == opened * 50 // 1000
    stage.close(SessionId(NEW))
    assert stage.kv_bytes.device == before


def test_what_is_not_there_cannot_be_copied_or_kept(chain: Chain, expected: list[int]) -> None:
    chain.open(NEW, len(WORDS))
    with pytest.raises(LocalProtocolError):
        copy(chain, len(WORDS) + len(expected))
    with pytest.raises(LocalProtocolError):
        chain.stages[0].copy_prefix(SessionId(NEW), SessionId(99), 1)
    with pytest.raises(LocalProtocolError):
        chain.stages[0].keep_prefix(SessionId(NEW), 1)
