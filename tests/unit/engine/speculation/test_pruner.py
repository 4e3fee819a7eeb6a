from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from engine.core.errors import ModelCorrupt
from engine.core.model_spec import ModelSpec
from engine.models.layout import ModelFiles
from engine.speculation.pruner import Pruner
from engine.speculation.pruner_files import find_pruners, load_pruner, write_pruner
from engine.speculation.tree import ROOT, TokenTree
from tests.support.pruning import pruner_tensors

SIZES: dict[str, Any] = {"hidden_size": 2, "vocab_size": 10}
ABOUT: dict[str, Any] = {"target": "tiny@0", "num_blocks": 3}


def weights() -> dict[str, Tensor]:
    """Hidden state (1, 0) says 4 and (0, 1) says 7; who is not expected is out."""
    tensors = pruner_tensors(2, 3, floor=-2.0)
    tensors["down"] = torch.eye(2)
    tensors["up"] = torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
    tensors["outer"] = torch.zeros(2, len(tensors["inner"]))
    tensors["vocabulary"] = torch.tensor([4, 7, 8])
    return tensors


def test_tokens_that_the_first_stage_does_not_expect_go_with_what_follows_them() -> None:
    pruner = Pruner(weights(), 10)
    tree = TokenTree((4, 7, 7, 4, 3), (ROOT, ROOT, 0, 1, 0))
    says_4, says_7 = [1.0, 0.0], [0.0, 1.0]
    # After the root comes 4, and after node 0 comes 7; node 3 is right after node 1, which is wrong.
    hidden = torch.tensor([says_4, says_7, says_4, says_4, says_4, says_4])
    (kept,) = pruner.kept([tree], hidden, [0.5])
    assert kept == [True, False, True, False, False]
    assert tree.pruned(kept)[0] == TokenTree((4, 7), (ROOT, 0))
    assert pruner.kept([tree], hidden, [0.0]) == [[True] * 5]


def test_trees_of_a_batch_are_judged_as_each_by_itself() -> None:
    pruner = Pruner(weights(), 10)
    trees = [TokenTree((4, 7), (ROOT, ROOT)), TokenTree((7, 4, 8), (ROOT, 0, 0))]
    hidden = torch.randn(7, 2, generator=torch.Generator().manual_seed(1))
    together = pruner.log_scores(trees, hidden)
    apart = [pruner.log_scores(trees[:1], hidden[:3]), pruner.log_scores(trees[1:], hidden[3:])]
    torch.testing.assert_close(together, torch.cat(apart))


def test_a_pruner_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_pruner(tmp_path, {**weights(), "vocabulary": torch.tensor([4, 7, 8]).int()}, ABOUT)
    pruner = load_pruner(tmp_path, **SIZES)
    hidden = torch.tensor([[1.0, 0.0]] * 3)
    assert pruner.kept([TokenTree((4, 7), (ROOT, ROOT))], hidden, [0.5]) == [[True, False]]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"up": torch.zeros(3, 5)}, "other shapes"),
        ({"vocabulary": torch.tensor([4, 7, 10])}, "does not have"),
        ({"vocabulary": torch.tensor([-1, 7, 8])}, "does not have"),
        ({"up": torch.full((3, 2), torch.nan)}, "no number"),
        ({"mlp.0": torch.zeros(5000, 8), "mlp.0.bias": torch.zeros(5000)}, "other shapes"),
    ],
)
def test_a_pruner_with_weights_that_do_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Tensor], said: str
) -> None:
    write_pruner(tmp_path, {**weights(), **changes}, ABOUT)
    with pytest.raises(ModelCorrupt, match=said):
        load_pruner(tmp_path, **SIZES)


def test_a_damaged_pruner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelCorrupt, match="missing"):
        load_pruner(tmp_path, **SIZES)
    write_pruner(tmp_path, weights(), ABOUT)
    path = tmp_path / "pruner.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ModelCorrupt, match="not those that were written"):
        load_pruner(tmp_path, **SIZES)
    path.unlink()
    with pytest.raises(ModelCorrupt, match="weights are missing"):
        load_pruner(tmp_path, **SIZES)
    for content in ({"target": 3}, {**ABOUT, "format": 1, "sha256": ""}):
        (tmp_path / "pruner.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(ModelCorrupt, match="makes no sense"):
            load_pruner(tmp_path, **SIZES)


def test_a_file_that_lies_about_its_sizes_is_refused_before_they_are_taken(tmp_path: Path) -> None:
    import hashlib

    write_pruner(tmp_path, weights(), ABOUT)
    path = tmp_path / "pruner.safetensors"
    about = json.loads((tmp_path / "pruner.json").read_text(encoding="utf-8"))
    for content in (
        b"",
        b"\xff" * 16,
        save({"up": torch.zeros(1)}),
        path.read_bytes().replace(b'"shape":[3,2]', b'"shape":[9,9]'),
    ):
        path.write_bytes(content)
        about["sha256"] = hashlib.sha256(content).hexdigest()
        (tmp_path / "pruner.json").write_text(json.dumps(about), encoding="utf-8")
        with pytest.raises(ModelCorrupt, match="cannot be used"):
            load_pruner(tmp_path, **SIZES)


def test_a_stage_finds_what_fits_it_and_says_what_is_damaged(
    tmp_path: Path, target: ModelFiles
) -> None:
    spec: ModelSpec = replace(target.spec, **SIZES)
    about = {"target": spec.model_id}
    for name, depth in (("a", 1), ("b", 3), ("c", 4)):
        write_pruner(tmp_path / name, weights(), {**about, "num_blocks": depth})
    write_pruner(tmp_path / "d", weights(), {**ABOUT, "target": "other@0", "num_blocks": 2})
    (tmp_path / "b" / "pruner.safetensors").write_bytes(b"")
    found = find_pruners(spec, 3, [tmp_path, tmp_path / "nowhere"])
    assert list(found.pruners) == [1]
    (text,) = found.refused
    assert "remove the folder" in text
    assert "sent on whole" in text
