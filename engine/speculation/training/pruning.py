"""Training a pruner: what the first stage can know of what the whole target will say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy, linear

from engine.core.sampling_params import SamplingParams
from engine.models.layout import LM_HEAD, ModelFiles
from engine.models.weights import load_tensors
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_model import DraftModel
from engine.speculation.model_draft import ModelDraft
from engine.speculation.pruner import FEATURES, Pruner, PrunerDescription, write_pruner
from engine.speculation.training.answers import commonest_ids
from engine.speculation.training.evaluation import count_right
from engine.speculation.training.student import divergence
from engine.speculation.training.teacher import Answer

THRESHOLDS: Final = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
TREE_TOKENS: Final = 13
TREE_WIDTH: Final = 4
_RANK: Final = 64
_INNER: Final = 16
_VOCABULARY_SIZE: Final = 8192
_RIDGE: Final = 1e-3
_BATCH_PLACES: Final = 512
_HEAD_RATE: Final = 1e-3
_JUDGE_RATE: Final = 1e-2
_JUDGE_STEPS: Final = 400

Show = Callable[[str, float, float, str], None]


@dataclass(frozen=True, slots=True)
class _Places:
    """Places of answers where a token follows."""

    hidden: Tensor
    """After the first stage, [n, D]."""
    final: Tensor
    """What the target's head reads, [n, D]."""
    candidates: Tensor
    """What a draft proposes, [n, 4]."""


def train_pruner(
    files: ModelFiles,
    draft: Path,
    answers: Sequence[Answer],
    examples: Sequence[Answer],
    directory: Path,
    *,
    num_blocks: int,
    steps: int,
    seed: int,
    show: Show,
) -> PrunerDescription:
    """Make a pruner for a first stage of so many blocks.

    Args:
        files: The target's.
        draft: A distilled draft, whose proposals are judged.
        answers: The target's, to learn from.
        examples: Greedy ones that neither draft nor pruner has learned from.
        directory: Where the pruner goes.
        num_blocks: Of the first stage.
        steps: Of the head's training.
        seed: Of all that is random.
        show: Told how far it is.

    Raises:
        EngineError: Draft and target do not fit, or cannot be read.
    """
    torch.manual_seed(seed)
    first = DraftModel.first_blocks(files, num_blocks)
    drafting = load_distilled(draft, files, dtype=torch.float32, device=torch.device("cpu"))
    head = load_tensors(files.directory, (LM_HEAD,), dtype=torch.float32)[LM_HEAD]
    places = _places(first, drafting, answers, show)
    ids = torch.tensor(commonest_ids(answers, _VOCABULARY_SIZE, files.spec.vocab_size))
    tensors = {"vocabulary": ids, **_first_head(places, head[ids]), **_first_judge()}
    pruner = Pruner(tensors, files.spec.vocab_size)
    _train_head(pruner, tensors, places, head[ids], steps, show)
    _train_judge(pruner, tensors, places, head)
    stored = {name: tensor.detach().half() for name, tensor in tensors.items()}
    stored["vocabulary"] = ids.int()
    show("Evaluating on prompts that were held out", 0, 0, "")
    measured = _measure(pruner, first, drafting, examples)
    about = {"target": files.spec.model_id, "num_blocks": num_blocks, "measured": measured}
    return write_pruner(directory, stored, about)


@torch.inference_mode()
def _places(
    first: DraftModel, drafting: DraftModel, answers: Sequence[Answer], show: Show
) -> _Places:
    hidden, candidates = [], []
    for done, answer in enumerate(answers):
        show("Looking at answers", done, len(answers), "")
        ids = (*answer.prompt, *answer.tokens)[:-1]
        followed = slice(len(answer.prompt) - 1, None)
        chain = range(-1, len(ids) - 1)
        hidden.append(first.sequence(len(ids)).grow(ids, chain)[followed])
        logits = drafting.sequence(len(ids)).grow(ids, chain)[followed]
        best = logits.topk(TREE_WIDTH, dim=1).indices
        known = drafting.vocabulary
        candidates.append(best if known is None else known[best])
    final = torch.cat([answer.hidden for answer in answers]).float()
    # Clones, because training may not use what was made under inference mode.
    return _Places(torch.cat(hidden).clone(), final, torch.cat(candidates).clone())


def _first_head(places: _Places, head: Tensor) -> dict[str, Tensor]:
    """The best linear guess of the target's last hidden states, along its main directions."""
    x = places.hidden * places.hidden.square().mean(1, keepdim=True).rsqrt()
    squares = x.T @ x
    squares += _RIDGE * squares.diagonal().mean() * torch.eye(len(squares))
    weights = torch.linalg.solve(squares, x.T @ places.final)  # [D, D]
    guessed = x @ weights
    main = torch.linalg.eigh(guessed.T @ guessed).eigenvectors[:, -_RANK:]  # [D, r]
    return {"down": (weights @ main).T.contiguous(), "up": head @ main}


def _first_judge() -> dict[str, Tensor]:
    inner, outer = nn.Linear(FEATURES, _INNER), nn.Linear(_INNER, 1)
    return {
        "mlp.0": inner.weight.detach(),
        "mlp.0.bias": inner.bias.detach(),
        "mlp.1": outer.weight.detach(),
        "mlp.1.bias": outer.bias.detach(),
    }


def _train_head(
    pruner: Pruner,
    tensors: dict[str, Tensor],
    places: _Places,
    head: Tensor,
    steps: int,
    show: Show,
) -> None:
    """KL(p ‖ p̂) over the vocabulary that the head knows."""
    weights = [tensors["down"].requires_grad_(), tensors["up"].requires_grad_()]
    optimiser = torch.optim.Adam(weights, lr=_HEAD_RATE)
    for step in range(steps):
        chosen = torch.randint(len(places.hidden), (_BATCH_PLACES,))
        log_p = linear(places.final[chosen], head).log_softmax(1)
        loss = divergence(log_p, pruner.guesses(places.hidden[chosen]))
        for group in optimiser.param_groups:
            group["lr"] = _HEAD_RATE * (1 - step / steps)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        show("Training the head", step + 1, steps, f"divergence {loss.item():.3f}")
    for weight in weights:
        weight.requires_grad = False


def _train_judge(pruner: Pruner, tensors: dict[str, Tensor], places: _Places, head: Tensor) -> None:
    """Whether a candidate is what the target says (top-K of the paper, for K = 1)."""
    features, labels = [], []
    for at in range(0, len(places.hidden), _BATCH_PLACES):
        part = slice(at, at + _BATCH_PLACES)
        log_p = pruner.guesses(places.hidden[part])
        said = linear(places.final[part], head).argmax(1)
        for column in places.candidates[part].T:
            features.append(pruner.features(log_p, torch.arange(len(column)), column))
            labels.append((column == said).float())
    x, y = torch.cat(features), torch.cat(labels)
    names = ("mlp.0", "mlp.0.bias", "mlp.1", "mlp.1.bias")
    weights = [tensors[name].requires_grad_() for name in names]
    optimiser = torch.optim.Adam(weights, lr=_JUDGE_RATE)
    for _ in range(_JUDGE_STEPS):
        loss = binary_cross_entropy(pruner.scores(x), y)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    for weight in weights:
        weight.requires_grad = False


def _measure(
    pruner: Pruner, first: DraftModel, drafting: DraftModel, examples: Sequence[Answer]
) -> list[dict[str, float]]:
    """By τ, over the rounds of greedy answers: nodes and accepted tokens that are left."""
    nodes = accepted = 0
    left_nodes = dict.fromkeys(THRESHOLDS, 0)
    left_accepted = dict.fromkeys(THRESHOLDS, 0)
    for answer in examples:
        room = len(answer.prompt) + len(answer.tokens) + (TREE_WIDTH + 1) * TREE_TOKENS
        draft = ModelDraft(drafting, SamplingParams(), len(answer.prompt), room, width=TREE_WIDTH)
        stage = first.sequence(room)
        done = 1
        while done < len(answer.tokens):
            ids = (*answer.prompt, *answer.tokens[:done])
            tree = draft.propose(ids, TREE_TOKENS)
            last = stage.extend(ids[stage.length :], stage.length)
            hidden = torch.cat([last, stage.grow(tree.ids, tree.parents)])
            following = answer.tokens[done:]
            right = count_right(tree, following)
            nodes += len(tree)
            accepted += right
            for threshold in THRESHOLDS:
                rest, _ = tree.pruned(pruner.kept(tree, hidden, threshold))
                left_nodes[threshold] += len(rest)
                left_accepted[threshold] += count_right(rest, following)
            done += 1 + right
    return [
        {
            "prune_threshold": threshold,
            "surviving": round(left_nodes[threshold] / max(1, nodes), 3),
            "remaining": round(left_accepted[threshold] / max(1, accepted), 3),
        }
        for threshold in THRESHOLDS
    ]
