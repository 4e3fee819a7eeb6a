from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.errors import ModelCorrupt, ModelError
from engine.speculation.pruner import Pruner, load_pruner, write_pruner
from engine.speculation.tree import EMPTY, ROOT, TokenTree

D = 2
SIZES: dict[str, Any] = {"hidden_size": D, "vocab_size": 10}
ABOUT = {"target": "tiny@0", "num_blocks": 3}


def weights() -> dict[str, torch.Tensor]:
    """A head that reads token 4 from the first number and token 7 from the second; a judge that
    looks at a token's own probability alone."""
    return {
        "down": torch.eye(D),
        "up": torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]]),
        "vocabulary": torch.tensor([4, 7, 8]),
        "mlp.0": torch.tensor([[0.0, 10.0, 0.0]]),
        "mlp.0.bias": torch.zeros(1),
        "mlp.1": torch.ones(1, 1),
        "mlp.1.bias": torch.tensor([-5.0]),
    }


def test_tokens_that_the_first_stage_does_not_expect_go_with_what_follows_them() -> None:
    pruner = Pruner(weights(), 10)
    tree = TokenTree((4, 7, 7, 4, 3), (ROOT, ROOT, 0, 1, 0))
    says_4, says_7 = [1.0, 0.0], [0.0, 1.0]
    # After the root comes 4, and after node 0 comes 7; node 3 is right after node 1, which is wrong.
    hidden = torch.tensor([says_4, says_7, says_4, says_4, says_4, says_4])
    kept = pruner.kept(tree, hidden, 0.5)
    assert kept == [True, False, True, True, False]
    assert tree.pruned(kept)[0] == TokenTree((4, 7), (ROOT, 0))
    assert pruner.kept(tree, hidden, 0.0) == [True] * 5
    assert pruner.kept(EMPTY, hidden[:1], 0.5) == []


def test_a_pruner_comes_back_as_it_was_written(tmp_path: Path) -> None:
    tensors = weights()
    tensors["vocabulary"] = tensors["vocabulary"].int()
    write_pruner(tmp_path, tensors, ABOUT)
    pruner = load_pruner(tmp_path, target="tiny@0", num_blocks=3, **SIZES)
    tree = TokenTree((4, 7), (ROOT, ROOT))
    assert pruner.kept(tree, torch.tensor([[1.0, 0.0]] * 3), 0.5) == [True, False]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target": "other@0"}, "was made for the first 3 blocks of tiny@0"),
        ({"num_blocks": 4}, "was made for the first 3 blocks of tiny@0"),
    ],
)
def test_a_pruner_for_another_stage_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    write_pruner(tmp_path, weights(), ABOUT)
    with pytest.raises(ModelError, match=said):
        load_pruner(tmp_path, **{**ABOUT, **SIZES, **changed})


def test_a_damaged_pruner_is_refused(tmp_path: Path) -> None:
    whole: dict[str, Any] = {**ABOUT, **SIZES}
    with pytest.raises(ModelCorrupt, match="missing"):
        load_pruner(tmp_path, **whole)
    for name, tensor, said in (
        ("up", torch.zeros(3, 5), "other shapes"),
        ("vocabulary", torch.tensor([4, 7, 10]), "does not have"),
    ):
        write_pruner(tmp_path, {**weights(), name: tensor}, ABOUT)
        with pytest.raises(ModelCorrupt, match=said):
            load_pruner(tmp_path, **whole)
    write_pruner(tmp_path, weights(), ABOUT)
    path = tmp_path / "pruner.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelCorrupt, match="not those that were written"):
        load_pruner(tmp_path, **whole)
    (tmp_path / "pruner.json").write_text(json.dumps({"target": 3}), encoding="utf-8")
    with pytest.raises(ModelCorrupt, match="makes no sense"):
        load_pruner(tmp_path, **whole)
