"""Trees of drafted tokens in a stage against plain decoding of each of their paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.core.errors import CacheFull, RemoteProtocolError
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags, path_to
from engine.server.stage import Stage
from tests.support.drafting import Prophet, pipelined_answer, plain_answer, speculative_answer
from tests.support.stages import ENDLESS, Chain, prompts, save_families, stage
from tests.support.tiny_models import FAMILIES

TOLERANCE = 1e-4  # float32: another order of sums
EIGHT_BIT_TOLERANCE = 1e-2  # now and then the last bit rounds a key to the number beside
KINDS = [*FAMILIES, "mistral, window", "qwen2, window", "qwen3, window"]
SPAN = Span(0, 3)
ROOM = 20


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return save_families(tmp_path_factory.mktemp("models"))


def random_tree(rng: np.random.Generator, num_tokens: int) -> tuple[list[int], tuple[int, ...]]:
    ids = rng.choice(np.arange(3, 512), num_tokens, replace=False).tolist()
    return ids, tuple(int(rng.integers(-1, node)) for node in range(num_tokens))


def run(part: Stage, *rows: tuple[Row, Sequence[int]]) -> list[Tensor]:
    """Hidden states of each row, [T, D]."""
    ids = np.array([token for _, tokens in rows for token in tokens], np.int32)
    hidden = part.forward([row for row, _ in rows], ids, None).hidden
    assert hidden is not None
    return list(hidden.split([row.count for row, _ in rows]))


def plain_states(part: Stage, *sequences: Sequence[int]) -> list[Tensor]:
    """[D] of the last token of each sequence, computed in one go and without a draft."""
    sessions = [SessionId(1000 + place) for place in range(len(sequences))]
    for session, ids in zip(sessions, sequences, strict=True):
        part.open(session, SPAN, len(ids), len(ids), ENDLESS)
    states = run(
        part,
        *[
            (Row(session, 0, len(ids)), ids)
            for session, ids in zip(sessions, sequences, strict=True)
        ],
    )
    for session in sessions:
        part.close(session)
    return [state[-1] for state in states]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("kv_offload", "kv_dtype", "tolerance"),
    [
        (0.0, "auto", TOLERANCE),
        (0.4, "auto", TOLERANCE),  # the border lies in trees
        (1.0, "auto", TOLERANCE),
        (0.0, "8bit", EIGHT_BIT_TOLERANCE),
        (0.45, "8bit", EIGHT_BIT_TOLERANCE),
    ],
)
def test_every_path_of_every_round_is_as_if_it_were_the_sequence(
    models: dict[str, Path], kind: str, kv_offload: float, kv_dtype: str, tolerance: float
) -> None:
    rng = np.random.default_rng(5)
    part = stage(models[kind], 0, 4, kv_dtype=kv_dtype)
    session, beside = SessionId(1), SessionId(2)
    part.open(session, SPAN, 64, 10, ENDLESS, kv_offload=kv_offload, draft_tokens=ROOM)
    part.open(beside, SPAN, 64, 10, ENDLESS, kv_offload=kv_offload)
    (ids,) = prompts(12)
    others = prompts(40)[0]
    run(part, (Row(session, 0, 11), ids[:11]), (Row(beside, 0, 3), others[:3]))
    accepted = 0
    for turn in range(6):
        drafted, parents = random_tree(rng, int(rng.integers(0, 13)))
        row = Row(session, len(ids) - 1, 1 + len(drafted), 0, RowFlags.SAMPLE, parents, accepted)
        got, _ = run(part, (row, [ids[-1], *drafted]), (Row(beside, 3 + turn, 1), [others[turn]]))
        paths = [
            [drafted[n] for n in path_to(parents, node + 1)] for node in range(-1, len(drafted))
        ]
        expected = plain_states(part, *[[*ids, *path] for path in paths])
        torch.testing.assert_close(got, torch.stack(expected), rtol=tolerance, atol=tolerance)
        accepted = int(rng.integers(0, len(drafted) + 1))
        ids += [drafted[n] for n in path_to(parents, accepted)]
        ids.append(int(rng.integers(3, 512)))
    assert part.kv_bytes


def test_trees_of_a_batch_are_attended_to_behind_what_is_scattered_of_the_last_ones(
    models: dict[str, Path],
) -> None:
    rng = np.random.default_rng(8)
    part = stage(models["llama"], 0, 4)
    sessions = [SessionId(1), SessionId(2), SessionId(3)]
    texts = prompts(12, 15, 13)
    for session, ids in zip(sessions, texts, strict=True):
        part.open(session, SPAN, 64, 10, ENDLESS, draft_tokens=ROOM)
        run(part, (Row(session, 0, len(ids) - 1), ids[:-1]))
    accepted = [0] * len(texts)
    for _ in range(4):
        trees = [random_tree(rng, 7) for _ in texts]
        rows = [
            (Row(s, len(ids) - 1, 8, 0, RowFlags.SAMPLE, parents, node), [ids[-1], *drafted])
            for s, ids, (drafted, parents), node in zip(
                sessions, texts, trees, accepted, strict=True
            )
        ]
        for got, ids, (drafted, parents) in zip(run(part, *rows), texts, trees, strict=True):
            paths = [[drafted[n] for n in path_to(parents, node + 1)] for node in range(-1, 7)]
            expected = plain_states(part, *[[*ids, *path] for path in paths])
            torch.testing.assert_close(got, torch.stack(expected), rtol=TOLERANCE, atol=TOLERANCE)
        accepted = [int(rng.integers(3, 8)) for _ in texts]
        for ids, (drafted, parents), node in zip(texts, trees, accepted, strict=True):
            ids += [*(drafted[n] for n in path_to(parents, node)), int(rng.integers(3, 512))]


SAMPLINGS = {
    "greedy": SamplingParams(max_new_tokens=30),
    "sampled": SamplingParams(max_new_tokens=30, temperature=1.0, top_p=0.95, seed=4),
    "penalised": SamplingParams(
        max_new_tokens=30,
        temperature=0.8,
        seed=9,
        choice=2,
        logprobs=2,
        repetition_penalty=1.3,
        presence_penalty=0.4,
        frequency_penalty=0.3,
        logit_bias=((7, 3.0), (8, -100.0)),
    ),
}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("how", SAMPLINGS)
@pytest.mark.parametrize("width", [1, 3], ids=["chain", "tree"])
@pytest.mark.parametrize("cuts", [(), (1, 3)], ids=["1 stage", "3 stages"])
def test_answer_with_drafts_is_the_one_without(
    models: dict[str, Path], kind: str, how: str, width: int, cuts: tuple[int, ...]
) -> None:
    (prompt,), sampling = prompts(9), SAMPLINGS[how]
    chain = Chain(models[kind], cuts)
    plain = plain_answer(chain, prompt, sampling)
    truth = [*prompt, *(token.id for token in plain)]
    answer, rounds = speculative_answer(chain, prompt, sampling, Prophet(truth, width=width))
    assert [(id_, finish) for id_, _, finish in answer] == [(t.id, t.finish) for t in plain]
    for (_, logprobs, _), token in zip(answer, plain, strict=True):
        assert (logprobs is None) == (token.logprobs is None)
        if token.logprobs is not None:
            assert logprobs.logprob == pytest.approx(token.logprobs.logprob, abs=1e-4)
            assert [i for i, _ in logprobs.top] == [i for i, _ in token.logprobs.top]
    assert rounds < len(plain) * 0.8


@pytest.mark.parametrize(
    ("kind", "how", "kv_offload", "cuts"),
    [
        ("llama", "greedy", 0.0, ()),
        ("mistral, window", "sampled", 0.0, ()),
        ("llama", "penalised", 0.0, (1, 3)),
        ("llama", "sampled", 0.5, (1, 3)),
    ],
)
def test_answer_with_several_chunks_on_their_way_is_the_one_without(
    models: dict[str, Path], kind: str, how: str, kv_offload: float, cuts: tuple[int, ...]
) -> None:
    (prompt,), sampling = prompts(9), SAMPLINGS[how]
    chain = Chain(models[kind], cuts, kv_offload=kv_offload)
    plain = plain_answer(chain, prompt, sampling)
    answer, wasted = pipelined_answer(
        chain,
        prompt,
        sampling,
        [*prompt, *(token.id for token in plain)],
        chunk_tokens=3,
        ahead=3,
        rng=np.random.default_rng(3),
        right_share=0.8,
    )
    assert [(id_, finish) for id_, _, finish in answer] == [(t.id, t.finish) for t in plain]
    for (_, logprobs, _), token in zip(answer, plain, strict=True):
        assert (logprobs is None) == (token.logprobs is None)
        if token.logprobs is not None:
            assert logprobs.logprob == pytest.approx(token.logprobs.logprob, abs=1e-4)
    assert wasted


def test_stop_token_in_a_draft_ends_the_answer_there(models: dict[str, Path]) -> None:
    (prompt,) = prompts(9)
    chain = Chain(models["llama"], (2,))
    plain = [token.id for token in plain_answer(chain, prompt, SAMPLINGS["greedy"])]
    stop = plain[12]
    end = plain.index(stop) + 1
    stopping = SamplingParams(max_new_tokens=30, stop_token_ids=(stop,))
    draft = Prophet([*prompt, *plain], right_share=1.0, width=1)
    answer, _ = speculative_answer(chain, prompt, stopping, draft)
    assert [id_ for id_, _, _ in answer] == plain[:end]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (Row(SessionId(1), 12, 1, accepted=3), RemoteProtocolError),  # the third is at depth 2
        (Row(SessionId(1), 13, 1, accepted=1), RemoteProtocolError),
        (Row(SessionId(1), 12, 1, accepted=4), RemoteProtocolError),
        (Row(SessionId(1), 12, 1, accepted=0), RemoteProtocolError),
        (Row(SessionId(1), 11, 9, parents=tuple(range(-1, 7))), CacheFull),
        (Row(SessionId(1), 11, 6, parents=(-1,)), CacheFull),
    ],
)
def test_row_that_does_not_fit_the_draft_before_it_is_refused_and_harms_nothing(
    models: dict[str, Path], row: Row, error: type[Exception]
) -> None:
    part = stage(models["llama"], 0, 4)
    part.open(SessionId(1), SPAN, 15, 10, ENDLESS, draft_tokens=3)
    (ids,) = prompts(30)
    drafted = Row(SessionId(1), 0, 14, parents=(-1, -1, 1), flags=RowFlags.SAMPLE)
    run(part, (drafted, ids[:14]))
    with pytest.raises(error):
        run(part, (row, ids[: row.count]))
    (after,) = run(part, (Row(SessionId(1), 13, 1, accepted=3), ids[20:21]))
    (expected,) = plain_states(part, [*ids[:11], ids[12], ids[13], ids[20]])
    torch.testing.assert_close(after[0], expected, rtol=TOLERANCE, atol=TOLERANCE)
