"""Rounds of [DC]'s modes by hand: one frame of many sessions, each with a chain of its own seed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from engine.core.generation import DraftMode
from engine.core.ids import PeerId, SessionId
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.models.layout import ModelFiles
from engine.protocol.frames import Frame, Kind
from engine.protocol.messages import (
    HopMessage,
    OpenReply,
    OpenRequest,
    SamplingMessage,
    SequenceMessage,
    Sessions,
    message_frame,
    parse,
)
from engine.protocol.rows import Row, RowFlags
from engine.sampling.rejection import Draws, TwoBytes, normalised, read_weights, residual
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_model import DraftModel
from engine.speculation.sampled_chain import ChainSampler
from engine.swarm.links import Links

ANSWER_S = 60


@dataclass(slots=True)
class Likelihoods:
    """What a model says after a prompt and some tokens; each is computed once."""

    model: DraftModel
    params: SamplingParams
    prompt: list[int]
    known: dict[tuple[int, ...], TwoBytes] = field(default_factory=dict)

    def after(self, path: Sequence[int] = ()) -> TwoBytes:
        """[V]."""
        key = tuple(path)
        if key not in self.known:
            sampler = ChainSampler(self.model, self.params, len(self.prompt), 64)
            self.known[key] = sampler.weights_after(self.prompt, key)
        return self.known[key]


def likelihoods(
    target: Path, spec: ModelSpec, draft: Path, params: SamplingParams, prompt: list[int]
) -> tuple[Likelihoods, Likelihoods]:
    """Of the target, and of a distilled draft of it."""
    files, device = ModelFiles(spec, target, ""), torch.device("cpu")
    itself = DraftModel.sibling(files, files, dtype=torch.float32, device=device)
    drafts = load_distilled(draft, files, dtype=torch.float32, device=device)
    return Likelihoods(itself, params, prompt), Likelihoods(drafts, params, prompt)


class ManyRounds:
    """A node that opens sessions with the seeds 0, 1, … and drafts for their first round.

    Args:
        links: Its own.
        spans: Of the stages `s0`, `s1` …
        draft: What it draws from.
        sha256: What it says of that.
        told_share: Of the weights that it tells the stages; 1: the truth.
    """

    def __init__(
        self,
        links: Links,
        spans: Sequence[Span],
        draft: Likelihoods,
        sha256: str,
        *,
        told_share: float = 1.0,
    ) -> None:
        self._links = links
        self._spans = spans
        self._draft = draft
        self._sha256 = sha256
        self._told_share = told_share
        self.refusals = 0
        """Answers in which the stage left it to us to draw."""
        self.no_replica = ""
        self._answers: dict[int, tuple[Row, int]] = {}
        self._opened: asyncio.Queue[OpenReply] = asyncio.Queue()
        self._all_there = asyncio.Event()
        self._expected = 0
        links.on([Kind.OPENED], lambda _, frame: self._opened.put_nowait(parse(frame, OpenReply)))
        links.on([Kind.TOKENS], lambda _, frame: self._take(frame))

    async def run(
        self, mode: DraftMode, first_seed: int, count: int, gamma: int
    ) -> list[list[int]]:
        """What a round commits, for each of so many sessions: one token, or up to γ + 1."""
        seeds = range(first_seed, first_seed + count)
        await self._open(seeds, gamma)
        chains = [self._chain(seed, gamma) for seed in seeds]
        rows, ids = [], list[int]()
        for seed, chain in zip(seeds, chains, strict=True):
            ids += [*self._draft.prompt, *chain]
            rows.append(
                Row(
                    SessionId(1 + seed),
                    0,
                    len(self._draft.prompt) + gamma,
                    0,
                    RowFlags.SAMPLE | RowFlags.OPEN,
                    tuple(range(-1, gamma - 1)),
                    mode=mode,
                    weights=self._weights(mode, chain),
                )
            )
        self._answers.clear()
        self._all_there.clear()
        self._expected = count
        self._links.send(
            self._peers[0], Frame(Kind.STEP, b"", tuple(rows), np.array(ids, np.int32))
        )
        await asyncio.wait_for(self._all_there.wait(), ANSWER_S)
        committed = [
            self._committed(seed, chain) for seed, chain in zip(seeds, chains, strict=True)
        ]
        for peer in self._peers:
            named = Sessions(sessions=tuple(1 + seed for seed in seeds))
            self._links.send(peer, message_frame(Kind.CLOSE, named))
        return committed

    @property
    def _peers(self) -> list[PeerId]:
        return [PeerId(f"s{index}") for index in range(len(self._spans))]

    async def _open(self, seeds: Sequence[int], gamma: int) -> None:
        prompt, params = self._draft.prompt, self._draft.params
        hops = tuple(
            HopMessage(peer=peer, start=span.start, end=span.end)
            for peer, span in zip(self._peers, self._spans, strict=True)
        )
        sequences = tuple(
            SequenceMessage(
                session=1 + seed,
                capacity_tokens=len(prompt) + gamma + 1,
                draft_tokens=gamma,
                prompt_tokens=len(prompt),
                sampling=SamplingMessage.of(replace(params, seed=seed)),
                draft_sha256=self._sha256,
            )
            for seed in seeds
        )
        request = OpenRequest(request=1, model_id="tiny@0", hops=hops, sequences=sequences)
        for peer in self._peers:
            await self._links.connect(peer)
            self._links.send(peer, message_frame(Kind.OPEN, request))
        for _ in self._peers:
            reply = await asyncio.wait_for(self._opened.get(), ANSWER_S)
            assert not reply.refused
            self.no_replica = self.no_replica or reply.no_replica

    def _chain(self, seed: int, gamma: int) -> list[int]:
        draws, chain = Draws(seed, 0), list[int]()
        for _ in range(gamma):
            position = len(self._draft.prompt) + len(chain)
            chain.append(draws.token(self._draft.after(chain), position))
        return chain

    def _weights(self, mode: DraftMode, chain: Sequence[int]) -> bytes:
        whole = [self._draft.after(chain[:place]) for place in range(len(chain))]
        if mode is DraftMode.DSD:
            return np.array(whole, "<f2").tobytes()
        own = [float(q[id_]) * self._told_share for q, id_ in zip(whole, chain, strict=True)]
        return np.array(own, "<f2").tobytes()

    def _take(self, frame: Frame) -> None:
        for row, token in zip(frame.rows, frame.ids.tolist(), strict=True):
            self._answers[row.session] = row, token
        if len(self._answers) == self._expected:
            self._all_there.set()

    def _committed(self, seed: int, chain: list[int]) -> list[int]:
        row, token = self._answers[1 + seed]
        kept = chain[: row.accepted]
        if RowFlags.REFUSED not in row.flags:
            return [*kept, token]
        self.refusals += 1
        rest = residual(normalised(read_weights(row.weights)), self._draft.after(kept))
        position = len(self._draft.prompt) + len(kept)
        return [*kept, Draws(seed, 0).another(rest, position)]
