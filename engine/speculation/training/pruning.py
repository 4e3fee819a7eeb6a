"""Training a pruner: what the first stage can know of what the whole target will say.

First the head learns to guess as the target does, from all answers. Then the judge learns how much such
a guess is worth, from rounds with the draft; of answers that the draft has not learned from, if there
are any, because of the others it knows too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, dropout, linear

from engine.models.layout import LM_HEAD, ModelFiles
from engine.models.weights import load_tensors
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_model import DraftModel
from engine.speculation.pruner import FEATURES, Pruner, node_shapes
from engine.speculation.pruner_files import NAMES, PrunerDescription, write_pruner
from engine.speculation.training.answers import commonest_ids
from engine.speculation.training.rounds import TREE_TOKENS, TREE_WIDTH, Round, left, rounds
from engine.speculation.training.run import Show
from engine.speculation.training.student import divergence
from engine.speculation.training.teacher import Answer
from engine.speculation.tree import ROOT

THRESHOLDS: Final = (0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3)
_RANK: Final = 128
_WIDE: Final = 512
_INNER: Final = 32
_VOCABULARY_SIZE: Final = 4096
_RIDGE: Final = 1e-3
_RIDGE_PLACES: Final = 20_000
_BATCH_PLACES: Final = 256
_HEAD_RATE: Final = 1.5e-3
_LEFT_OUT: Final = 0.15
"""Of a hidden state's numbers, at random: a head forgets answers less easily that way."""
_WARM_UP_STEPS: Final = 40
_COOL_DOWN_SHARE: Final = 0.6
_JUDGE_RATE: Final = 3e-3
_JUDGE_STEPS: Final = 1500
_JUDGE_BATCH: Final = 2048


def train_pruner(
    files: ModelFiles,
    draft: Path,
    answers: Sequence[Answer],
    judged: Sequence[Answer],
    examples: Sequence[Answer],
    directory: Path,
    *,
    num_blocks: int,
    steps: int,
    seed: int,
    data_origin: str,
    show: Show,
) -> PrunerDescription:
    """Make a pruner that judges after so many blocks.

    Args:
        files: The target's.
        draft: A distilled draft, whose proposals are judged.
        answers: The target's, for the head to learn from.
        judged: Greedy ones, for the judge; better some that the draft has not learned from.
        examples: Greedy ones that neither draft nor pruner has learned from.
        directory: Where the pruner goes.
        num_blocks: Of the target.
        steps: Of the head's training.
        seed: Of all that is random.
        data_origin: Kept in the pruner.
        show: Told how far it is.

    Raises:
        EngineError: Draft and target do not fit, or cannot be read.
    """
    torch.manual_seed(seed)
    first = DraftModel.first_blocks(files, num_blocks)
    drafting = load_distilled(draft, files, dtype=torch.float32, device=torch.device("cpu"))
    size = min(_VOCABULARY_SIZE, files.spec.vocab_size)
    ids = torch.tensor(commonest_ids(answers, size, files.spec.vocab_size))
    head = load_tensors(files.directory, (LM_HEAD,), dtype=torch.float32)[LM_HEAD][ids]
    hidden, final = _places(first, answers, show)
    tensors = {"vocabulary": ids, **_first_head(hidden, final, head), **_first_judge()}
    pruner = Pruner(tensors, files.spec.vocab_size)
    _train_head(pruner, tensors, hidden, final, head, steps, show)
    _train_judge(pruner, tensors, _played(first, drafting, judged, "Drafting", show), show)
    stored = {name: tensors[name].detach().half() for name in NAMES}
    stored["vocabulary"] = ids.int()
    as_stored = {name: tensor.float() for name, tensor in stored.items()}
    pruner = Pruner({**as_stored, "vocabulary": ids}, files.spec.vocab_size)
    exam = _played(first, drafting, examples, "Evaluating on prompts that were held out", show)
    about: dict[str, Any] = {
        "target": files.spec.model_id,
        "num_blocks": num_blocks,
        "measured": left(exam, [_scores(pruner, one) for one in exam], THRESHOLDS),
        "data_origin": data_origin,
        "recipe": {
            "answers": len(answers),
            "judged": len(judged),
            "steps": steps,
            "seed": seed,
            "rank": _RANK,
            "wide": _WIDE,
            "tree_tokens": TREE_TOKENS,
            "tree_width": TREE_WIDTH,
        },
    }
    return write_pruner(directory, stored, about)


@torch.no_grad()
def _scores(pruner: Pruner, one: Round) -> Tensor:
    return pruner.log_scores([one.tree], one.hidden)


def _played(
    first: DraftModel, drafting: DraftModel, answers: Sequence[Answer], what: str, show: Show
) -> list[Round]:
    played: list[Round] = []
    for done, answer in enumerate(answers):
        show(what, done, len(answers), "")
        played += rounds(first, drafting, answer)
    return played


@torch.inference_mode()
def _places(first: DraftModel, answers: Sequence[Answer], show: Show) -> tuple[Tensor, Tensor]:
    """Where a token of an answer follows: hidden states of the first stage and of the last, [n, D]."""
    hidden = []
    for done, answer in enumerate(answers):
        show("Looking at answers", done, len(answers), "")
        ids = (*answer.prompt, *answer.tokens)[:-1]
        states = first.sequence(len(ids)).grow(ids, range(-1, len(ids) - 1))
        hidden.append(states[len(answer.prompt) - 1 :].half())
    # Clones, because training may not use what was made under inference mode.
    return torch.cat(hidden).clone(), torch.cat([answer.hidden for answer in answers]).clone()


def _first_head(hidden: Tensor, final: Tensor, head: Tensor) -> dict[str, Tensor]:
    """The best linear guess of the target's last hidden states, along its main directions."""
    every = max(1, len(hidden) // _RIDGE_PLACES)
    x = hidden[::every].float()
    x = x * x.square().mean(1, keepdim=True).rsqrt()
    D = x.shape[1]
    squares = x.T @ x
    squares += _RIDGE * squares.diagonal().mean() * torch.eye(D)
    weights = torch.linalg.solve(squares, x.T @ final[::every].float())  # [D, D]
    guessed = x @ weights
    main = torch.linalg.eigh(guessed.T @ guessed).eigenvectors[:, -_RANK:]  # [D, r]
    return {
        "down": (weights @ main).T.contiguous(),
        "inner": torch.randn(_WIDE, D) / D**0.5,
        "outer": torch.zeros(main.shape[1], _WIDE),
        "up": head @ main,
    }


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
    hidden: Tensor,
    final: Tensor,
    head: Tensor,
    steps: int,
    show: Show,
) -> None:
    """KL(p ‖ p̂) over the vocabulary that the head knows."""
    weights = [tensors[name].requires_grad_() for name in ("down", "inner", "outer", "up")]
    optimiser = torch.optim.AdamW(weights, lr=_HEAD_RATE, betas=(0.9, 0.95), weight_decay=0.05)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")  # bfloat16 where the processor has it
    try:
        for step in range(steps):
            left_share = (steps - step) / (_COOL_DOWN_SHARE * steps)
            for group in optimiser.param_groups:
                group["lr"] = _HEAD_RATE * min(1.0, (step + 1) / _WARM_UP_STEPS, left_share)
            chosen = torch.randint(len(hidden), (_BATCH_PLACES,))
            log_p = linear(final[chosen].float(), head).log_softmax(1)
            x = dropout(hidden[chosen].float(), _LEFT_OUT)
            loss = divergence(log_p, pruner.guesses(x))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            show("Training the head", step + 1, steps, f"divergence {loss.item():.3f}")
    finally:
        torch.set_float32_matmul_precision(precision)
    for weight in weights:
        weight.requires_grad = False


def _train_judge(
    pruner: Pruner, tensors: dict[str, Tensor], played: Sequence[Round], show: Show
) -> None:
    """Whether a node is what the target says (top-K of the paper, for K = 1).

    Of nodes whose parents are right alone: of the others it does not matter.
    """
    features, labels = [], []
    for one in played:
        before = [1 + parent for parent in one.tree.parents]
        log_p = pruner.guesses(one.hidden)
        seen = pruner.seen(log_p, torch.tensor(before), torch.tensor(one.tree.ids))
        right = one.right()
        matters = [parent == ROOT or right[parent] for parent in one.tree.parents]
        rows = torch.cat((seen, torch.tensor(node_shapes(one.tree))), dim=1)
        features.append(rows[torch.tensor(matters)])
        labels.append(torch.tensor(right)[torch.tensor(matters)].float())
    x, y = torch.cat(features).clone(), torch.cat(labels)
    mean, spread = x.mean(0), x.std(0) + 1e-3
    x = (x - mean) / spread
    weights = [tensors[name].requires_grad_() for name in NAMES if name.startswith("mlp")]
    optimiser = torch.optim.AdamW(weights, lr=_JUDGE_RATE, weight_decay=0.01)
    for step in range(_JUDGE_STEPS):
        for group in optimiser.param_groups:
            group["lr"] = _JUDGE_RATE * (1 - step / _JUDGE_STEPS)
        chosen = torch.randint(len(x), (min(len(x), _JUDGE_BATCH),))
        loss = binary_cross_entropy_with_logits(pruner.logits(x[chosen]), y[chosen])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        show("Training the judge", step + 1, _JUDGE_STEPS, f"loss {loss.item():.3f}")
    for weight in weights:
        weight.requires_grad = False
    # From now on it takes features as they are.
    tensors["mlp.0"] /= spread
    tensors["mlp.0.bias"] -= tensors["mlp.0"] @ mean
