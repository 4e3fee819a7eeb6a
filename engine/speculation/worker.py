"""The draft's own process: holds its weights and what it knows of each sequence.

Started by `engine.speculation.worker_process` with our PID as its argument; a JSON object on each
line, asked on standard input and answered on standard output. It is another process than the stage's
worker, so that one's own chats keep drafting while the stage alone is paused.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from engine.core.errors import EngineError
from engine.core.lifetime import die_with_parent
from engine.core.loading import loading
from engine.core.model_spec import ModelSpec
from engine.core.sampling_params import SamplingParams
from engine.models.child import own_stdout
from engine.models.layout import ModelFiles
from engine.sampling.rejection import read_weights
from engine.speculation.distilled import load_distilled
from engine.speculation.draft_model import DraftModel
from engine.speculation.model_draft import ModelDraft, together
from engine.speculation.sampled_chain import ChainSampler

Message = dict[str, Any]


class Drafts:
    """The sequences that are drafted for; each place of a proposal takes `level_s` at least."""

    def __init__(self, model: DraftModel, level_s: float = 0.0) -> None:
        self._model = model
        self._level_s = level_s
        self._sequences: dict[int, tuple[ModelDraft, list[int]]] = {}
        self._opened: dict[int, tuple[SamplingParams, int, int]] = {}
        """What `ChainSampler` needs of each."""
        self._samplers: dict[int, ChainSampler] = {}
        """Of those whose chains are drawn."""

    def answer(self, message: Message) -> Message:
        """Carry out one message."""
        match message["op"]:
            case "open":
                sampling = dict(message["sampling"])
                sampling["logit_bias"] = tuple(
                    (int(i), float(b)) for i, b in sampling["logit_bias"]
                )
                sampling["stop_token_ids"] = tuple(sampling["stop_token_ids"])
                opened = (
                    SamplingParams(**sampling),
                    message["prompt_tokens"],
                    message["capacity_tokens"],
                )
                self._sequences[message["sequence"]] = (ModelDraft(self._model, *opened), [])
                self._opened[message["sequence"]] = opened
                self._samplers.pop(message["sequence"], None)
                return {}
            case "follow":
                draft, ids = self._taken(message)
                draft.follow(ids)
                return {}
            case "propose":
                return self._propose(message)
            case "draw":
                return self._draw(message)
            case "draw_again":
                target = read_weights(base64.b64decode(message["target"]))
                sampler, place = self._samplers.get(message["sequence"]), message["place"]
                knows = sampler is not None and place < sampler.num_drawn
                return {"id": sampler.draw_again(place, target) if sampler and knows else None}
            case "close":
                for known in (self._sequences, self._opened, self._samplers):
                    known.pop(message["sequence"], None)
                return {}
            case other:
                raise AssertionError(f"unknown message {other!r}")

    def _propose(self, message: Message) -> Message:
        started_s = time.perf_counter()
        steps = []
        for row in message["rows"]:
            draft, ids = self._taken(row)
            draft.width = message["width"]
            steps.append(draft.steps(ids, message["num_tokens"], message["depth"]))
        trees = together(self._model, steps)
        self._last_at_least(started_s, max(max(tree.depths(), default=0) for tree in trees))
        described = [{"ids": tree.ids, "parents": tree.parents} for tree in trees]
        return {"trees": described, "draft_s": time.perf_counter() - started_s}

    def _draw(self, message: Message) -> Message:
        started_s = time.perf_counter()
        _, ids = self._taken(message)
        chain = self._sampler(message).draw(ids, message["num_tokens"])
        self._last_at_least(started_s, len(chain.ids))
        weights = base64.b64encode(chain.whole if message["whole"] else chain.of_ids).decode()
        draft_s = time.perf_counter() - started_s
        return {"ids": chain.ids, "weights": weights, "draft_s": draft_s}

    def _sampler(self, message: Message) -> ChainSampler:
        number = message["sequence"]
        if number not in self._samplers:
            sequence = self._sequences[number][0].sequence
            self._samplers[number] = ChainSampler(self._model, *self._opened[number], sequence)
        return self._samplers[number]

    def _last_at_least(self, started_s: float, levels: int) -> None:
        lasts_s = self._level_s * levels
        time.sleep(max(0.0, started_s + lasts_s - time.perf_counter()))

    def _taken(self, message: Message) -> tuple[ModelDraft, list[int]]:
        """A sequence with the ids that a message brings."""
        draft, ids = self._sequences[message["sequence"]]
        position: int = message["position"]
        if position < len(ids):
            draft.take_back(position)
        ids[position:] = message["ids"]
        return draft, ids


def load(message: Message) -> DraftModel:
    """The model that a message of `DraftProcess.start` describes."""
    if message["threads"]:
        torch.set_num_threads(message["threads"])
    dtype, device = getattr(torch, message["dtype"]), torch.device(message["device"])
    target = _files(message["target"])
    if message["sibling"] is not None:
        return DraftModel.sibling(_files(message["sibling"]), target, dtype=dtype, device=device)
    return load_distilled(Path(message["distilled"]), target, dtype=dtype, device=device)


def _files(described: Message) -> ModelFiles:
    spec = {**described["spec"], "eos_token_ids": tuple(described["spec"]["eos_token_ids"])}
    return ModelFiles(ModelSpec(**spec), Path(described["directory"]), described["source"])


def main() -> None:
    """Entry of the process."""
    die_with_parent(int(sys.argv[1]))
    # Ctrl-C in a terminal reaches the whole group; the agent decides when the worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_grad_enabled(False)
    drafts: Drafts | None = None
    # Whatever libraries print must not come between our lines.
    with own_stdout() as print_line:
        for line in sys.stdin:
            answer: Message
            try:
                message = json.loads(line)
                if drafts is None:
                    with loading():
                        drafts = Drafts(load(message), message["level_s"])
                    answer = {}
                else:
                    answer = drafts.answer(message)
            except EngineError as error:
                answer = {"error": error.code, "message": str(error)}
            except (torch.OutOfMemoryError, MemoryError):
                text = "There is no memory left for the draft model."
                answer = {"error": "resource_error", "message": text}
            print_line(answer)
    # Skip interpreter shutdown: freeing memory piece by piece only delays giving it back.
    os._exit(0)
