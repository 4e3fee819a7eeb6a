from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.core.generation import DraftMode
from engine.core.ids import SessionId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles, read_spec
from engine.protocol.rows import Row, RowFlags
from engine.server.replica_order import ReplicaOrder, weights_bytes_of
from engine.server.stage import Sampled, Stage
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_files import WEIGHTS
from engine.speculation.sampled_chain import ChainSampler
from tests.support.tiny_draft import write_tiny_draft
from tests.support.tiny_models import save_tiny

PROMPT = [5, 99, 301, 7, 260, 44, 12]
PARAMS = SamplingParams(temperature=2.0, top_p=0.95, repetition_penalty=1.2, max_new_tokens=40)
CAPACITY, DRAFTED = len(PROMPT) + 40, 4
BUDGET = 8 << 20


class Bed:
    """A model, a draft of it, and a stage that holds all of it and may hold the draft."""

    def __init__(self, folder: Path) -> None:
        self.target = save_tiny("llama", folder / "model")
        self.spec: ModelSpec = read_spec(self.target, "tiny@0")
        self.draft = folder / "drafts" / "tiny"
        self.sha256 = write_tiny_draft(self.draft, self.target, self.spec)

    def order(self, budget_bytes: int = BUDGET) -> ReplicaOrder:
        return ReplicaOrder(budget_bytes, self.draft, self.sha256)

    def stage(self, replica: ReplicaOrder | None) -> Stage:
        return Stage(
            self.target,
            self.spec,
            Span(0, self.spec.num_hidden_layers),
            dtype=torch.float32,
            device=torch.device("cpu"),
            progress=lambda done, total: None,
            replica=replica,
        )

    def client(self, params: SamplingParams) -> ChainSampler:
        files = ModelFiles(self.spec, self.target, "")
        device = torch.device("cpu")
        model = load_distilled(self.draft, files, dtype=torch.float32, device=device)
        return ChainSampler(model, params, len(PROMPT), CAPACITY + DRAFTED)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    return Bed(tmp_path_factory.mktemp("replica"))


def answer(
    bed: Bed, stage: Stage, session: int, seed: int, *, sha256: str | None = None
) -> tuple[list[int], int]:
    """An answer in DISCO by client and stage, and how often the client had to draw itself."""
    params = replace(PARAMS, seed=seed)
    stage.open(
        SessionId(session),
        Span(0, bed.spec.num_hidden_layers),
        CAPACITY,
        len(PROMPT),
        params,
        draft_tokens=DRAFTED,
        draft_sha256=bed.sha256 if sha256 is None else sha256,
    )
    sampler = bed.client(params)
    ids, position, accepted, refusals = list(PROMPT), 0, 0, 0
    while len(ids) < CAPACITY - DRAFTED:
        chain = sampler.draw(ids, DRAFTED)
        got = forward(
            stage, session, position, [*ids[position:], *chain.ids], accepted, chain.of_ids
        )
        ids += chain.ids[: got.accepted]
        if got.refusal:
            refusals += 1
            ids.append(sampler.draw_again(got.accepted, np.frombuffer(got.refusal, "<f2")))
        else:
            ids.append(got.id)
        accepted, position = got.accepted, len(ids) - 1
    return ids[len(PROMPT) :], refusals


def forward(
    stage: Stage, session: int, position: int, ids: Sequence[int], accepted: int, weights: bytes
) -> Sampled:
    parents = tuple(range(-1, DRAFTED - 1))
    flags = RowFlags.SAMPLE | RowFlags.OPEN
    row = Row(
        SessionId(session),
        position,
        len(ids),
        0,
        flags,
        parents,
        accepted,
        DraftMode.DISCO,
        weights,
    )
    return stage.forward([row], np.array(ids, np.int32), None).sampled[0]


def test_replica_answers_every_refusal_of_sessions_that_share_it(bed: Bed) -> None:
    stage = bed.stage(bed.order())
    for session in (1, 2, 3):
        _, refusals = answer(bed, stage, session, seed=session)
        assert refusals == 0
    use = stage.take_replica_use()
    assert use.rounds > 10
    assert use.disagreements == 0
    assert use.max_difference < 1e-3  # a step of a two-byte number below 1
    assert stage.take_replica_use().rounds == 0


def test_client_draws_what_the_replica_would_have_drawn(bed: Bed) -> None:
    """But for two-byte numbers in place of p, which these seeds do not see."""
    with_replica, _ = answer(bed, bed.stage(bed.order()), 1, seed=5)
    without, refusals = answer(bed, bed.stage(None), 1, seed=5)
    assert refusals
    assert with_replica == without


def test_replica_runs_only_when_a_token_is_refused(bed: Bed) -> None:
    stage = bed.stage(bed.order())
    stage.open(
        SessionId(1), Span(0, 4), CAPACITY, len(PROMPT), PARAMS,
        draft_tokens=DRAFTED, draft_sha256=bed.sha256,
    )  # fmt: skip
    accepted_by_all = b"\x01\x00" * DRAFTED  # the smallest weight there is
    got = forward(stage, 1, 0, [*PROMPT, *bed.client(PARAMS).draw(PROMPT, DRAFTED).ids], 0,
                  accepted_by_all)  # fmt: skip
    assert got.accepted == DRAFTED
    assert stage.take_replica_use().rounds == 0


def test_client_that_lies_about_a_refused_token_draws_it_itself(bed: Bed) -> None:
    stage = bed.stage(bed.order())
    stage.open(
        SessionId(1), Span(0, 4), CAPACITY, len(PROMPT), PARAMS,
        draft_tokens=DRAFTED, draft_sha256=bed.sha256,
    )  # fmt: skip
    unlikely = int(bed.client(PARAMS).weights_after(PROMPT, ()).argmin())
    ones = np.ones(DRAFTED, "<f2").tobytes()
    got = forward(stage, 1, 0, [*PROMPT, *[unlikely] * DRAFTED], 0, ones)
    assert got.accepted == 0
    assert len(got.refusal) == 2 * bed.spec.vocab_size
    assert stage.take_replica_use().disagreements == 1


@pytest.mark.parametrize(
    "why", ["another-draft", "damaged", "no-room-for-the-draft", "no-room-for-a-sequence"]
)
def test_without_a_replica_the_client_draws_and_its_answer_goes_on(
    bed: Bed, tmp_path: Path, why: str
) -> None:
    order, sha256 = bed.order(), bed.sha256
    if why == "another-draft":
        sha256 = "0" * 64
    elif why == "damaged":
        bad = tmp_path / "bad"
        write_tiny_draft(bad, bed.target, bed.spec)
        with (bad / WEIGHTS).open("r+b") as file:
            file.seek(-4, 2)
            file.write(b"oops")
        order = ReplicaOrder(BUDGET, bad, bed.sha256)
    elif why == "no-room-for-the-draft":
        order = ReplicaOrder(0, why_not="There is none.")
    else:
        order = bed.order(weights_bytes_of(bed.draft, bed.spec))
    ids, refusals = answer(bed, bed.stage(order), 1, seed=5, sha256=sha256)
    assert len(ids) >= CAPACITY - DRAFTED - len(PROMPT)
    assert refusals


def test_what_a_replica_needs_must_fit_into_its_budget(bed: Bed) -> None:
    folders = (bed.draft.parent,)
    needed = weights_bytes_of(bed.draft, bed.spec)
    assert ReplicaOrder.find(bed.spec, needed, folders) == ReplicaOrder(
        needed, bed.draft, bed.sha256
    )
    assert "MiB" in ReplicaOrder.find(bed.spec, needed - 1, folders).refusal(bed.sha256)


def test_why_there_is_no_replica_is_a_sentence(bed: Bed, tmp_path: Path) -> None:
    other = replace(bed.spec, model_id="other@1")
    found = ReplicaOrder.find(bed.spec, BUDGET, (bed.draft.parent,))
    assert found.refusal(bed.sha256) == ""
    assert "another draft" in found.refusal("f" * 64)
    assert "no draft" in ReplicaOrder.find(other, BUDGET, (bed.draft.parent,)).refusal("f" * 64)
    write_tiny_draft(tmp_path / "halves" / "one", bed.target, bed.spec)
    (tmp_path / "halves" / "one" / WEIGHTS).unlink()
    halves = ReplicaOrder.find(bed.spec, BUDGET, (tmp_path / "halves",))
    assert "damaged" in halves.refusal(bed.sha256)
