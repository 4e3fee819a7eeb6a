from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.cli.program import main
from engine.core.errors import ConfigError, ModelCorrupt, ModelError, StorageError
from engine.models.families import read_config
from engine.models.layout import ModelFiles
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_files import find_draft
from engine.speculation.pruner_files import find_pruners
from engine.speculation.training.answers import (
    commonest_ids,
    group_file,
    make_answers,
    read_answers,
)
from engine.speculation.training.distilling import TrainingProgress, train
from engine.speculation.training.evaluation import committed_per_round, count_right
from engine.speculation.training.student import Student, answer_places, divergence, padded
from engine.speculation.training.teacher import Answer, Teacher
from engine.speculation.tree import ROOT, TokenTree

PROMPTS = [[n, n + 1, 2 * n + 5, 301] for n in range(5, 45)]
VOCABULARY = 200
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def answers(target: ModelFiles, tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    directory = tmp_path_factory.mktemp("answers")
    _make(directory, target, PROMPTS)
    return read_answers(directory, 1)


def _make(directory: Path, target: ModelFiles, prompts: list[list[int]]) -> None:
    make_answers(
        directory,
        prompts,
        lambda: Teacher(target, torch.float32),
        max_answer_tokens=16,
        temperature=0.7,
        seed=1,
        on_progress=lambda done, total: None,
    )


def _student(target: ModelFiles, answers: list[Answer]) -> Student:
    ids = commonest_ids(answers, VOCABULARY, target.spec.vocab_size)
    config = read_config(target.directory, target.spec)
    torch.manual_seed(0)
    return Student(config, 1, target, torch.tensor(ids))


class Killed(Exception):
    pass


def _train(
    student: Student, answers: list[Answer], directory: Path, kill_after: int | None = None
) -> list[float]:
    losses: list[float] = []

    def on_progress(progress: TrainingProgress) -> None:
        losses.append(progress.loss)
        if progress.step == kill_after:
            raise Killed

    train(
        student,
        answers,
        directory,
        steps=30,
        batch_tokens=160,
        learning_rate=3e-3,
        seed=2,
        on_progress=on_progress,
        checkpoint_every_s=0.0,
    )
    return losses


def _loss(student: Student, answers: list[Answer]) -> float:
    with torch.no_grad():
        features = student.features(padded(answers))[answer_places(answers)]
        log_p = student.target_log_probabilities(torch.cat([a.hidden for a in answers]))
        return divergence(log_p, student.log_probabilities(features)).item()


def test_a_teacher_answers_as_the_model_does_and_ends_where_it_ends(
    target: ModelFiles, answers: list[Answer]
) -> None:
    teacher = Teacher(target, torch.float32)
    alone = teacher.answer([PROMPTS[2]], 16, [0.0], seed=7)[0]
    together = answers[2]
    assert together.prompt == tuple(PROMPTS[2])
    assert together.tokens == alone.tokens
    for answer in answers:
        assert answer.hidden.shape == (len(answer.tokens), target.spec.hidden_size)
        ended = answer.tokens[-1] in target.spec.eos_token_ids
        assert ended or len(answer.tokens) == 16
        assert not set(answer.tokens[:-1]) & set(target.spec.eos_token_ids)


def test_groups_that_are_there_are_not_made_again(target: ModelFiles, tmp_path: Path) -> None:
    prompts = [[n % 500, 7, 8] for n in range(70)]
    _make(tmp_path, target, prompts)
    first = group_file(tmp_path, 0).read_bytes()
    group_file(tmp_path, 1).unlink()
    group_file(tmp_path, 0).touch()
    made_ns = group_file(tmp_path, 0).stat().st_mtime_ns
    second_before = read_answers(tmp_path, 1)
    _make(tmp_path, target, prompts)
    assert group_file(tmp_path, 0).stat().st_mtime_ns == made_ns
    assert group_file(tmp_path, 0).read_bytes() == first
    assert len(read_answers(tmp_path, 2)) == 70
    assert [a.tokens for a in read_answers(tmp_path, 1)] == [a.tokens for a in second_before]
    group_file(tmp_path, 1).write_bytes(b"not a file of answers")
    with pytest.raises(StorageError, match="delete the file"):
        read_answers(tmp_path, 2)


def test_a_student_learns_and_one_that_was_killed_learns_the_same(
    target: ModelFiles, answers: list[Answer], tmp_path: Path
) -> None:
    whole = _student(target, answers)
    before = _loss(whole, answers)
    _train(whole, answers, tmp_path / "whole")
    assert _loss(whole, answers) < 0.8 * before
    killed = _student(target, answers)
    with pytest.raises(Killed):
        _train(killed, answers, tmp_path / "killed", kill_after=11)
    resumed = _student(target, answers)
    assert len(_train(resumed, answers, tmp_path / "killed")) == 30 - 11
    for name, weight in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], weight, atol=1e-6, rtol=0)


def test_a_damaged_checkpoint_is_said_and_not_trained_over(
    target: ModelFiles, answers: list[Answer], tmp_path: Path
) -> None:
    (tmp_path / "checkpoint.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(StorageError, match="delete it to train from the beginning"):
        _train(_student(target, answers), answers, tmp_path)


def test_rounds_are_counted_against_what_the_target_said() -> None:
    class Parrot:
        def propose(self, ids: tuple[int, ...], num_tokens: int) -> TokenTree:
            return TokenTree.chain([ids[-1] + 1] * num_tokens)

    answer = Answer((1,), (2, 3, 4, 9, 10, 11), torch.zeros(6, 1))
    # After 2: 3 is right, 4 comes with it. After 4: 5 is wrong, 9. After 9: 10 is right, 11.
    assert committed_per_round(lambda _: Parrot(), [answer], 2) == pytest.approx(5 / 3)
    assert count_right(TokenTree((5, 6, 7), (ROOT, ROOT, 1)), [6, 7, 8]) == 2


def test_the_command_trains_a_draft_that_its_target_takes(
    target: ModelFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "prompts.txt"
    data.write_text("\n".join(f"What is {n}?" for n in range(40)), encoding="utf-8")
    words = ["draft", "train", "--target", str(target.directory), "--data", str(data)]
    words += ["-o", str(tmp_path / "run"), "--answers", "30", "--blocks", "1"]
    words += ["--vocabulary", "300", "--threads", "1", "--json"]
    assert main([*words, "--steps", "3"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["target"] == target.spec.model_id
    assert set(first["held_out"]) == {"chain_4", "tree_13", "lookup_8"}
    assert all(1 <= value <= 14 for value in first["held_out"].values())
    for row in first["agreements"]:
        assert 0 <= row["shared_noise"] <= row["most"] <= 1
    assert main([*words, "--steps", "5"]) == 0  # goes on
    assert json.loads(capsys.readouterr().out)["trained_steps"] == 5
    draft = tmp_path / "run" / "draft"
    assert find_draft(target.spec.model_id, [tmp_path, tmp_path / "run"]) == draft
    assert find_draft("another@0", [tmp_path / "run"]) is None
    model = load_distilled(draft, target, dtype=torch.float32, device=CPU)
    assert model.sequence(8).extend([1, 2, 3], 0).shape == (1, 300)
    assert main([*words, "--seed", "1"]) == 1  # another recipe
    assert "another seed" in capsys.readouterr().err
    prune = ["pruner", "train", str(tmp_path / "run"), "--target", str(target.directory)]
    prune += ["--first-blocks", "2", "-o", str(tmp_path / "pruner"), "--steps", "5", "--json"]
    assert main([*prune, "--data", str(data), "--judged", "3"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["recipe"]["judged"] == 3
    measured = described["measured"]
    found = find_pruners(target.spec, 3, [tmp_path])
    assert (list(found.pruners), found.refused) == ([2], ())
    left = [row["surviving"] for row in measured]
    assert left == sorted(left, reverse=True)
    assert all(0 <= row["remaining"] <= 1 for row in measured)
    _check_refusals(draft, target)


def _check_refusals(draft: Path, target: ModelFiles) -> None:
    other = ModelFiles(
        replace(target.spec, model_id="other@000000000000"), target.directory, target.source
    )
    with pytest.raises(ModelError, match="was made for tiny@"):
        load_distilled(draft, other, dtype=torch.float32, device=CPU)
    weights = draft / "draft.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelCorrupt, match="not those that were written"):
        load_distilled(draft, target, dtype=torch.float32, device=CPU)


@pytest.mark.parametrize(
    ("content", "said"), [("\n \n", "holds no prompts"), (None, "cannot be read")]
)
def test_data_without_prompts_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    from engine.speculation.training.recipe import read_prompts

    path = tmp_path / "prompts.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        read_prompts(path)
