from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core.errors import (
    CacheFull,
    LocalProtocolError,
    ModelCorrupt,
    ModelError,
    RemoteProtocolError,
    RequestError,
)
from engine.core.generation import FinishReason
from engine.core.ids import SessionId
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.rows import Row, RowFlags
from tests.support.stages import (
    ENDLESS,
    Chain,
    Reference,
    agreement,
    edit_config,
    prompts,
    save_families,
    stage,
)
from tests.support.tiny_models import FAMILIES, Family, save_tiny

CUTS = [(), (2,), (1, 3)]
NEW_TOKENS = 16
MIXED = prompts(1, 5, 17, 33)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every family, with heads tied and untied, and the two kinds of sliding windows."""
    folder = tmp_path_factory.mktemp("models")
    made = save_families(folder)
    made["llama, tied"] = save_tiny("llama", folder / "tied", tie=True)
    made["llama, rope llama3"] = edit_config(
        save_tiny("llama", folder / "rope"),
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    )
    return made


@pytest.fixture(scope="module")
def greedy(models: dict[str, Path]) -> dict[str, list[list[int]]]:
    """The reference's answers to `MIXED`."""
    return {kind: Reference(path).generate(MIXED, NEW_TOKENS) for kind, path in models.items()}


KINDS = [
    *FAMILIES,
    "llama, tied",
    "mistral, window",
    "qwen2, window",
    "qwen3, window",
    "llama, rope llama3",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", CUTS, ids=["1 stage", "2 stages", "3 stages"])
def test_greedy_answers_of_a_mixed_batch_equal_the_reference(
    models: dict[str, Path], greedy: dict[str, list[list[int]]], kind: str, cuts: tuple[int, ...]
) -> None:
    assert Chain(models[kind], cuts).generate(MIXED, NEW_TOKENS) == greedy[kind]


@pytest.mark.parametrize("family", FAMILIES)
def test_types_that_onednn_does_not_multiply_take_the_plain_way_to_the_same_answers(
    models: dict[str, Path], greedy: dict[str, list[list[int]]], family: Family
) -> None:
    chain = Chain(models[family], (2,), dtype=torch.float64)
    assert chain.generate(MIXED, NEW_TOKENS) == greedy[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_mostly_picks_float32s_tokens(models: dict[str, Path], family: Family) -> None:
    chain = Chain(models[family], (2,), dtype=torch.bfloat16)
    reference = Reference(models[family])
    assert agreement(chain, reference, prompts(*[24] * 20)) >= 0.6


def test_the_windows_of_these_models_are_narrow_enough_to_matter(
    greedy: dict[str, list[list[int]]],
) -> None:
    for family in ("mistral", "qwen2", "qwen3"):
        assert greedy[family] != greedy[f"{family}, window"]


@pytest.mark.parametrize("kind", KINDS)
def test_prefill_in_random_chunks_beside_decoding_rows_equals_the_reference(
    models: dict[str, Path], greedy: dict[str, list[list[int]]], kind: str
) -> None:
    rng = np.random.default_rng(1)
    long, short = prompts(60)[0], MIXED[1]
    chain = Chain(models[kind], (2,))
    chain.open(1, len(long))
    chain.open(2, len(short))
    answer = [chain.step((2, 0, short))[0].id]
    done, next_of_long = 0, -1
    while done < len(long):
        count = min(int(rng.integers(1, 20)), len(long) - done)
        chunk = (1, done, long[done : done + count])
        done += count
        sampled = chain.step(chunk, (2, len(short) + len(answer) - 1, answer[-1:]))
        next_of_long = sampled[0].id
        answer.append(sampled[1].id)
    assert next_of_long == int(Reference(models[kind]).logits(long)[-1].argmax())
    assert answer == greedy[kind][1][: len(answer)]
    assert len(answer) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_any_order_with_rows_coming_and_going_equal_the_reference(
    models: dict[str, Path], greedy: dict[str, list[list[int]]], kind: str
) -> None:
    rng = np.random.default_rng(2)
    chain = Chain(models[kind], (1,))
    # Two rounds of the prompts, so that rooms are used again by other sequences.
    waiting = [(session, session % len(MIXED)) for session in range(2 * len(MIXED))]
    rows: dict[int, tuple[int, list[int]]] = {}  # session: position, next ids
    answers: dict[int, list[int]] = {}
    while waiting or rows:
        if waiting and rng.random() < 0.5:
            session, which = waiting.pop(0)
            capacity = int(rng.choice([60, 100]))
            chain.open(session, len(MIXED[which]), capacity)
            rows[session], answers[session] = (0, MIXED[which]), []
        taking_part = [session for session in rows if rng.random() < 0.8]
        rng.shuffle(taking_part)
        if not taking_part:
            continue
        for sampled in chain.step(*[(session, *rows[session]) for session in taking_part]):
            position, ids = rows[sampled.session]
            rows[sampled.session] = (position + len(ids), [sampled.id])
            answers[sampled.session].append(sampled.id)
            if len(answers[sampled.session]) == NEW_TOKENS:
                del rows[sampled.session]
                for part in chain.stages:
                    part.close(sampled.session)
    assert [answers[session] for session in range(2 * len(MIXED))] == greedy[kind] * 2


@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_are_the_references_log_softmax(models: dict[str, Path], family: Family) -> None:
    (prompt,) = prompts(20)
    chain = Chain(models[family], (1,))
    chain.open(1, len(prompt), sampling=SamplingParams(temperature=2.0, logprobs=3))
    (sampled,) = chain.step((1, 0, prompt))
    expected = Reference(models[family]).logits(prompt)[-1].log_softmax(-1)
    assert sampled.logprobs is not None
    assert sampled.logprobs.logprob == pytest.approx(float(expected[sampled.id]), abs=1e-4)
    top = expected.topk(3)
    assert [token for token, _ in sampled.logprobs.top] == top.indices.tolist()
    assert [value for _, value in sampled.logprobs.top] == pytest.approx(
        top.values.tolist(), abs=1e-4
    )


def test_going_back_forgets_what_followed(models: dict[str, Path]) -> None:
    (prompt,) = prompts(30)
    reference = Reference(models["llama"])
    chain = Chain(models["llama"], (2,))
    chain.open(1, 10)
    chain.step((1, 0, prompt))
    other = [*prompt[:12], 400, 401, 402]
    (sampled,) = chain.step((1, 12, other[12:]))
    assert sampled.id == int(reference.logits(other)[-1].argmax())
    (sampled,) = chain.step((1, 0, prompt))
    assert sampled.id == int(reference.logits(prompt)[-1].argmax())


def test_going_back_forgets_tokens_for_the_penalties_too(models: dict[str, Path]) -> None:
    (prompt,) = prompts(6)
    presence = SamplingParams(presence_penalty=100.0, max_new_tokens=50)
    answers = []
    for detour in (False, True):
        chain = Chain(models["llama"])
        chain.open(1, len(prompt), sampling=presence)
        (sampled,) = chain.step((1, 0, prompt))
        if detour:
            best = int(Reference(models["llama"]).logits([*prompt, sampled.id])[-1].argmax())
            chain.step((1, len(prompt), [best]))
        (sampled,) = chain.step((1, len(prompt), [sampled.id]))
        answers.append(sampled.id)
    assert answers[0] == answers[1]


def test_sampled_tokens_do_not_depend_on_stages_or_neighbours(models: dict[str, Path]) -> None:
    (prompt, other) = prompts(9, 14)
    sampling = SamplingParams(temperature=1.0, top_p=0.9, seed=7, choice=2, max_new_tokens=100)
    answers = []
    for cuts, crowded in (((), False), ((1, 2), False), ((3,), True)):
        chain = Chain(models["qwen3"], cuts)
        chain.open(1, len(prompt), sampling=sampling)
        chain.open(2, len(other))
        ids, position, answer = prompt, 0, []
        for step in range(20):
            neighbour = [(2, step, other[:1])] if crowded else []
            sampled = chain.step((1, position, ids), *neighbour)[0]
            position += len(ids)
            ids = [sampled.id]
            answer.append(sampled.id)
        answers.append(answer)
    assert answers[0] == answers[1] == answers[2]
    assert len(set(answers[0])) > 3


def test_a_session_may_use_part_of_a_stages_blocks(models: dict[str, Path]) -> None:
    (prompt,) = prompts(12)
    ids = np.array(prompt, np.int32)
    rows = [Row(SessionId(1), 0, len(ids), 0, RowFlags.SAMPLE)]
    whole = stage(models["qwen2"])
    hidden = None
    for span in (Span(0, 1), Span(1, 3), Span(3, 4)):
        whole.open(SessionId(1), span, 40, len(ids), ENDLESS)
        output = whole.forward(rows, ids, hidden)
        hidden = output.hidden
    assert hidden is None
    assert output.sampled[0].id == int(Reference(models["qwen2"]).logits(prompt)[-1].argmax())


def test_hidden_states_are_packed_rows_in_the_stages_dtype(models: dict[str, Path]) -> None:
    first = stage(models["llama"], 0, 2, dtype=torch.bfloat16)
    first.open(SessionId(1), Span(0, 2), 8, 3, ENDLESS)
    output = first.forward([Row(SessionId(1), 0, 3)], np.array([5, 6, 7], np.int32), None)
    assert output.sampled == ()
    assert output.hidden is not None
    assert output.hidden.shape == (3, 64)
    assert output.hidden.dtype == torch.bfloat16
    assert output.hidden.is_contiguous()


def test_only_rows_that_ask_are_sampled(models: dict[str, Path]) -> None:
    chain = Chain(models["llama"])
    chain.open(1, 3)
    assert chain.step((1, 0, [5, 6, 7]), sample=False) == []


def test_a_stop_token_ends_the_answer(models: dict[str, Path]) -> None:
    (prompt,) = prompts(5)
    best = int(Reference(models["llama"]).logits(prompt)[-1].argmax())
    chain = Chain(models["llama"])
    chain.open(1, 5, sampling=SamplingParams(stop_token_ids=(best,), max_new_tokens=1))
    assert chain.step((1, 0, prompt))[0].finish is FinishReason.STOP


def test_an_answer_ends_with_its_last_allowed_token(models: dict[str, Path]) -> None:
    chain = Chain(models["llama"])
    chain.open(1, 5, sampling=SamplingParams(max_new_tokens=2))
    (first,) = chain.step((1, 0, prompts(5)[0]))
    assert first.finish is None
    (second,) = chain.step((1, 5, [first.id]))
    assert second.finish is FinishReason.LENGTH


def test_an_answer_ends_when_its_room_is_full(models: dict[str, Path]) -> None:
    chain = Chain(models["llama"])
    chain.open(1, 5, capacity=6)
    (first,) = chain.step((1, 0, prompts(5)[0]))
    assert first.finish is None
    (second,) = chain.step((1, 5, [first.id]))
    assert second.finish is FinishReason.LENGTH
    with pytest.raises(CacheFull, match="6 tokens"):
        chain.step((1, 6, [second.id]))


def test_closing_gives_the_room_back(models: dict[str, Path]) -> None:
    whole = stage(models["llama"])
    assert whole.kv_bytes == (0, 0)
    whole.open(SessionId(1), Span(0, 4), 100, 5, ENDLESS)
    # k and v, blocks, heads, tokens, d, float32
    assert whole.kv_bytes == (2 * 4 * 2 * 100 * 16 * 4, 0)
    whole.open(SessionId(1), Span(1, 3), 100, 5, ENDLESS)
    assert whole.kv_bytes == (2 * 2 * 2 * 100 * 16 * 4, 0)
    whole.close(SessionId(1))
    whole.close(SessionId(2))
    assert whole.kv_bytes == (0, 0)


def test_rows_that_cannot_be_right_are_refused_and_change_nothing(models: dict[str, Path]) -> None:
    (prompt,) = prompts(5)
    chain = Chain(models["llama"])
    chain.open(1, 5, capacity=10)
    (first,) = chain.step((1, 0, prompt))
    for rows, error in (
        ([(2, 0, [5])], RemoteProtocolError),  # not open
        ([(1, 6, [5])], RemoteProtocolError),  # a gap
        ([(1, 5, [5] * 6)], CacheFull),
        ([(1, 5, [512])], RemoteProtocolError),  # not in the vocabulary
        ([(1, 5, [-1])], RemoteProtocolError),
        ([(1, 2, [5]), (2, 0, [5])], RemoteProtocolError),
        ([(1, 5, [5]), (1, 6, [5])], LocalProtocolError),
    ):
        with pytest.raises(error):
            chain.step(*rows)
    (second,) = chain.step((1, 5, [first.id]))
    assert [first.id, second.id] == Reference(models["llama"]).generate([prompt], 2)[0]


def test_inputs_that_do_not_fit_together_are_refused(models: dict[str, Path]) -> None:
    last = stage(models["llama"], 2, 4)
    last.open(SessionId(1), Span(2, 4), 8, 3, ENDLESS)
    ids = np.array([5, 6, 7], np.int32)
    row = Row(SessionId(1), 0, 3)
    with pytest.raises(LocalProtocolError, match="ids"):
        last.forward([row], ids, None)
    with pytest.raises(LocalProtocolError, match="shape"):
        last.forward([row], ids, torch.zeros(3, 63))
    with pytest.raises(LocalProtocolError):
        last.forward([row], ids[:2], torch.zeros(2, 64))
    with pytest.raises(LocalProtocolError):
        last.forward([], ids[:0], torch.zeros(0, 64))
    last.open(SessionId(2), Span(3, 4), 8, 3, ENDLESS)
    with pytest.raises(LocalProtocolError, match="same blocks"):
        last.forward([row, Row(SessionId(2), 0, 3)], np.tile(ids, 2), torch.zeros(6, 64))


def test_what_a_stage_does_not_have_cannot_be_opened(models: dict[str, Path]) -> None:
    last = stage(models["llama"], 2, 4)
    for span in (Span(1, 4), Span(2, 5), Span(3, 3)):
        with pytest.raises(RemoteProtocolError):
            last.open(SessionId(1), span, 8, 3, ENDLESS)
    biased = SamplingParams(logit_bias=((512, 1.0),))
    with pytest.raises(RequestError, match="511"):
        last.open(SessionId(1), Span(2, 4), 8, 3, biased)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gpt2"}, "gpt2"),
        (
            {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "dynamic",
        ),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantized"),
        ({"num_attention_heads": 8}, "num_attention_heads"),
    ],
)
def test_models_that_would_be_computed_wrong_are_refused(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    from engine.models.families import read_config
    from engine.models.layout import read_spec

    directory = save_tiny("llama", tmp_path / "model")
    spec = read_spec(directory, "tiny@0")
    with pytest.raises(ModelError, match=words):
        read_config(edit_config(directory, **changes), spec)


def test_missing_and_unknown_weights_stop_loading_with_their_names(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    directory = save_tiny("llama", tmp_path / "model")
    path = directory / "model.safetensors"
    tensors = load_file(path)
    for change in ("lost", "extra"):
        broken = dict(tensors)
        if change == "lost":
            for block in range(4):
                del broken[f"model.layers.{block}.mlp.up_proj.weight"]
            words = r"missing weights: model\.layers\.0\.mlp\.up_proj\.weight"
        else:
            broken["model.layers.0.self_attn.q_norm.weight"] = torch.ones(16)
            words = r"unknown weights: model\.layers\.0\.self_attn\.q_norm\.weight"
        save_file(broken, path)
        with pytest.raises(ModelCorrupt, match=words):
            stage(directory, 0, 2)
