"""Pick the next token of each row.

The order is fixed and part of what a request means: logit bias, repetition penalty (over prompt
and answer), presence and frequency penalties (over the answer), temperature, top-k, top-p, min-p.
Each filter sees the distribution that the one before it left, renormalised. A row's result depends
on that row alone, never on its neighbours in the batch.

Where a draft hangs from a row's last token, its tokens are accepted as long as they are what would
have been picked there anyway, with the noise of their positions and the penalties of their path: so
what comes out is what plain decoding gives, whatever was drafted. In [DC]'s modes a chain is judged
by probabilities instead (`engine.sampling.rejection`): what comes out has the same distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.core.errors import ModelError
from engine.core.generation import DraftMode, FinishReason, TokenLogprobs
from engine.core.sampling_params import SamplingParams
from engine.sampling.noise import gumbel_noise
from engine.sampling.rejection import (
    Draws,
    Probabilities,
    TwoBytes,
    normalised,
    residual,
    rounded_up,
)

Scores = npt.NDArray[np.float32]
AskReplica = Callable[[Sequence[int], int, float], TwoBytes | None]
"""(accepted tokens, the refused one, its weight as sent) to the draft's weights there, [V]; None: there
is no replica, or it is another draft."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One row to sample."""

    params: SamplingParams
    position: int
    """Place in the sequence of the token to pick."""
    prompt: npt.NDArray[np.int32]
    generated: npt.NDArray[np.int32]
    last_position: int = 1 << 62
    """Where the sequence ends in any case."""
    drafted: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """[N], a draft's tokens."""
    parents: tuple[int, ...] = ()
    """[N], for each of them which one it follows; -1: the last token before `position`."""
    mode: DraftMode = DraftMode.SHARED
    """How they are verified; but for the first mode a chain, without log-probabilities."""
    weights: TwoBytes = field(default_factory=lambda: np.empty(0, np.float16))
    """What they were drawn by: [N], in DSD all of it, [N, V]."""
    ask_replica: AskReplica = lambda path, refused, weight: None
    """In DISCO."""


@dataclass(frozen=True, slots=True)
class Picked:
    """One row's next token: after those of its draft that are accepted, if there are any."""

    id: int
    logprobs: TokenLogprobs | None = None
    finish: FinishReason | None = None
    accepted: int = 0
    """The last accepted one of the draft's tokens, counted from 1; 0: none is."""
    path_logprobs: tuple[TokenLogprobs, ...] = ()
    """Of the accepted ones, if asked for."""
    refusal: TwoBytes | None = None
    """The target's weights, [V], by which the client draws the next token: in DSSD, and in DISCO
    without a replica. The id is none then."""


def sample(logits: Tensor, requests: Sequence[SampleRequest]) -> list[Picked]:
    """Pick the next token of each row.

    Args:
        logits: [R, V], any float type and device: of each request the one after its last token, then
            those after its draft's tokens.
        requests: One for each row.

    Raises:
        ModelError: A row holds no number to choose by.
    """
    best, ids = logits.max(dim=-1)
    if not bool(torch.isfinite(best).all()):
        raise ModelError(
            "The model produced values that are not numbers; run it in float32 or bfloat16."
        )
    greedy_ids: list[int] = ids.tolist()
    picked, at = [], 0
    for request in requests:
        end = at + 1 + len(request.parents)
        # At temperature 0 the rules are the same: a token stays if it is the likeliest.
        if request.mode is not DraftMode.SHARED and request.parents and request.params.temperature:
            picked.append(_judge(logits[at:end], request))
        else:
            picked.append(_follow(logits[at:end], greedy_ids[at:end], request))
        at = end
    return picked


def _follow(logits: Tensor, greedy_ids: Sequence[int], request: SampleRequest) -> Picked:
    """Go along the draft while it says what would be picked."""
    params = request.params
    is_greedy = _is_plain_greedy(params)
    drafted: list[int] = request.drafted.tolist()
    children = {key: node for node, key in enumerate(zip(request.parents, drafted, strict=True))}
    node, path, path_logprobs = -1, list[int](), list[TokenLogprobs]()
    while True:
        if is_greedy:
            token = Picked(greedy_ids[node + 1])
        else:
            token = _pick(logits[node + 1].float().cpu().numpy(), _after(request, path))
        finish = _finish(params, token.id, request.position + len(path), request.last_position)
        child = children.get((node, token.id)) if finish is None else None
        if child is None:
            return replace(
                token, finish=finish, accepted=node + 1, path_logprobs=tuple(path_logprobs)
            )
        node = child
        path.append(token.id)
        if token.logprobs is not None:
            path_logprobs.append(token.logprobs)


def _judge(logits: Tensor, request: SampleRequest) -> Picked:
    """Go along a drafted chain while its tokens stay, by probabilities.

    A stage that turns out to have no replica for a refused token judges all of the chain again as in
    DSSD, by p rounded to two bytes, which is within 2^-10 of p.
    """
    params = replace(request.params, logprobs=None)
    draws = Draws(params.seed, params.choice)
    drafted: list[int] = request.drafted.tolist()
    for place, id_ in enumerate(drafted):
        at = _after(request, drafted[:place])
        p, sent = _target(logits[place], at)
        q = request.weights[place]  # [V] in DSD
        weight = float(q[id_]) if request.mode is DraftMode.DSD else float(q)
        if draws.accepts(float(p[id_]), weight, at.position):
            finish = _finish(params, id_, at.position, request.last_position)
            if finish is None:
                continue
            return Picked(id_, finish=finish, accepted=place)
        if request.mode is DraftMode.DISCO:
            replica = request.ask_replica(drafted[:place], id_, weight)
            if replica is None:
                return _judge(logits, replace(request, mode=DraftMode.DSSD))
            q = replica
        if request.mode is DraftMode.DSSD:  # whether it is a stop token, the client sees
            is_last = at.position >= request.last_position
            finish = FinishReason.LENGTH if is_last else None
            return Picked(0, finish=finish, accepted=place, refusal=sent)
        token = draws.another(residual(p, q), at.position)
        finish = _finish(params, token, at.position, request.last_position)
        return Picked(token, finish=finish, accepted=place)
    at = replace(_after(request, drafted), params=params)
    token = _pick(logits[len(drafted)].float().cpu().numpy(), at).id
    finish = _finish(params, token, at.position, request.last_position)
    return Picked(token, finish=finish, accepted=len(drafted))


def _target(row: Tensor, at: SampleRequest) -> tuple[Probabilities, TwoBytes]:
    """The target's distribution, [V], and what of it travels; in DSSD it is that for both sides."""
    p = probabilities(row.float().cpu().numpy(), at)
    sent = rounded_up(p)
    return (normalised(sent) if at.mode is DraftMode.DSSD else p), sent


def _after(request: SampleRequest, path: Sequence[int]) -> SampleRequest:
    """What is asked where some of the draft has been accepted."""
    if not path:
        return request
    generated = np.concatenate((request.generated, np.array(path, np.int32)))
    return replace(request, position=request.position + len(path), generated=generated)


def _finish(
    params: SamplingParams, token: int, position: int, last_position: int
) -> FinishReason | None:
    if token in params.stop_token_ids:
        return FinishReason.STOP
    return FinishReason.LENGTH if position >= last_position else None


def _is_plain_greedy(params: SamplingParams) -> bool:
    return params.temperature == 0 and params.logprobs is None and not _changes_logits(params)


def _changes_logits(params: SamplingParams) -> bool:
    return bool(
        params.logit_bias
        or params.repetition_penalty != 1
        or params.presence_penalty
        or params.frequency_penalty
    )


def _pick(raw: Scores, request: SampleRequest) -> Picked:
    params = request.params
    scores = penalise(raw, request) if _changes_logits(params) else raw
    if params.temperature == 0:
        token = int(scores.argmax())
    else:
        scores = restrict(scores, params)
        noise = gumbel_noise(params.seed, params.choice, request.position, len(scores))
        token = int((scores + noise).argmax())
    if params.logprobs is None:
        return Picked(token)
    return Picked(token, _logprobs(raw, token, params.logprobs))


def penalise(raw: Scores, request: SampleRequest) -> Scores:
    """Logits [V] after bias and penalties; `raw` stays as it is."""
    params = request.params
    scores = raw.copy()
    for token, bias in params.logit_bias:
        scores[token] += bias
    if params.repetition_penalty != 1:
        seen = np.unique(np.concatenate([request.prompt, request.generated]))
        values = scores[seen]
        scores[seen] = np.where(
            values < 0, values * params.repetition_penalty, values / params.repetition_penalty
        )
    if params.presence_penalty or params.frequency_penalty:
        seen, counts = np.unique(request.generated, return_counts=True)
        scores[seen] -= params.presence_penalty + params.frequency_penalty * counts
    return scores


def restrict(scores: Scores, params: SamplingParams) -> Scores:
    """Log-probabilities [V] up to a constant after temperature and filters; -inf is excluded.

    Tokens that tie with the last one a filter keeps are kept too, so that the result does not
    depend on the order in which equal numbers are sorted.
    """
    # The best token is at 0 before dividing, so that a tiny temperature cannot overflow it.
    with np.errstate(over="ignore"):
        scores = (scores - scores.max()) / np.float32(params.temperature)
    if 0 < params.top_k < len(scores):
        kth = np.partition(scores, -params.top_k)[-params.top_k]
        scores = np.where(scores >= kth, scores, -np.inf)
    if params.top_p < 1:
        descending = np.sort(scores)[::-1]
        cumulative = np.exp(descending).cumsum(dtype=np.float64)
        # The smallest set that reaches top_p: the last kept is where the sum first gets there.
        last = int(np.searchsorted(cumulative, params.top_p * cumulative[-1]))
        scores = np.where(scores >= descending[last], scores, -np.inf)
    if params.min_p > 0:
        scores = np.where(scores >= np.float32(np.log(params.min_p)), scores, -np.inf)
    return scores


def probabilities(raw: Scores, request: SampleRequest) -> Probabilities:
    """What logits [V] mean under a request's parameters, [V]; its temperature is above 0.

    The target's p as well as a draft's q: penalties, temperature and filters are part of both.
    """
    scores = restrict(penalise(raw, request), request.params).astype(np.float64)
    weights = np.exp(scores - scores.max())
    distribution: Probabilities = weights / weights.sum()
    return distribution


def _logprobs(raw: Scores, token: int, num_top: int) -> TokenLogprobs:
    """The model's own log-softmax of `token` and of its `num_top` best alternatives."""
    peak = float(raw.max())
    logsumexp = peak + float(np.log(np.exp(raw - peak).sum(dtype=np.float64)))
    num_top = min(num_top, len(raw))
    top = np.argpartition(raw, -num_top)[-num_top:] if num_top else np.empty(0, np.int64)
    top = top[np.lexsort((top, -raw[top]))]
    return TokenLogprobs(
        float(raw[token]) - logsumexp, tuple((int(i), float(raw[i]) - logsumexp) for i in top)
    )
