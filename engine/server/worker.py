"""The worker process: holds weights and KV, computes what the agent sends, knows no network.

Started by `engine.server.worker_process` with FD, MEMORY_FD, BYTES and PID as its arguments.
It dies with the agent: by the kernel's parent-death signal, and when the socket closes.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.config import StageEmulation
from engine.core.errors import EngineError, WorkerFailed
from engine.core.generation import DraftMode, TokenLogprobs
from engine.core.ids import SessionId
from engine.core.lifetime import die_with_parent
from engine.core.loading import loading
from engine.core.model_spec import ModelSpec
from engine.core.plans import Span
from engine.core.sampling_params import SamplingParams
from engine.protocol.frames import Dtype
from engine.protocol.rows import Row, RowFlags
from engine.server.link import Message, SharedRegions, WorkerSocket
from engine.server.replica_order import ReplicaOrder
from engine.server.stage import Stage
from engine.speculation.pruner_files import SHIPPED, PrunersFound, find_pruners

TORCH_DTYPES = {
    Dtype.FLOAT32: torch.float32,
    Dtype.BFLOAT16: torch.bfloat16,
    Dtype.FLOAT16: torch.float16,
}


_NO_MEMORY = {
    "load": "The blocks and their KV room do not fit into the device's memory; hold fewer blocks "
    "(stage.blocks) or lower stage.kv_budget_bytes.",
    "open": "This stage ran out of memory for the request.",
}


class Worker:
    """One stage behind a socket."""

    def __init__(self, socket: WorkerSocket, regions: SharedRegions) -> None:
        self._socket = socket
        self._regions = regions
        self._stage: Stage | None = None
        self._stretched: StageEmulation | None = None
        """How long a pass shall take at least."""

    def run(self) -> None:
        """Serve messages until the agent is gone."""
        while (message := self._socket.receive()) is not None:
            try:
                self._handle(message)
            except EngineError as error:
                self._fail(message, error.code, str(error))
            except (torch.OutOfMemoryError, MemoryError):
                self._fail(message, "cache_full", _NO_MEMORY.get(message["op"], _NO_MEMORY["open"]))
            except (ValueError, IndexError, TypeError) as error:
                # What somebody asked for, and no check has caught: the other sessions live on.
                text = f"The stage could not compute what was asked of it ({type(error).__name__})."
                self._fail(message, "model_error", text)
            except RuntimeError as error:  # torch reports device faults this way
                self._fail(message, "worker_failed", f"The stage could not compute: {error}")

    def _fail(self, message: Message, code: str, text: str) -> None:
        sessions = [sequence["session"] for sequence in message.get("sequences", ())]
        if message["op"] == "keep":
            self._loaded().close(SessionId(sessions[0]))
        self._socket.send(
            {
                "op": "error",
                "of": message["op"],
                "code": code,
                "message": text,
                "sessions": sessions,
            }
        )

    def _handle(self, message: Message) -> None:
        match message["op"]:
            case "load":
                with loading():
                    self._load(message)
            case "open":
                self._open(message)
            case "copy":
                self._copy(message)
            case "keep":
                for sequence in message["sequences"]:
                    session = SessionId(sequence["session"])
                    self._loaded().keep_prefix(session, sequence["tokens"])
            case "close":
                for session in message["sessions"]:
                    self._loaded().close(SessionId(session))
            case "forward":
                self._forward(message)
            case other:
                raise AssertionError(f"unknown message {other!r}")

    def _loaded(self) -> Stage:
        assert self._stage is not None, "the agent loads a stage first"
        return self._stage

    def _load(self, message: Message) -> None:
        if message["threads"]:
            torch.set_num_threads(message["threads"])
        if message["device"].startswith("cuda") and not torch.cuda.is_available():
            raise WorkerFailed(
                "The GPU does not answer, perhaps because the computer has slept or its driver has "
                "changed; restart the computer, or let model.device be cpu."
            )
        emulate = StageEmulation(**message["emulate"]) if message["emulate"] else None
        computes = emulate is None or emulate.computes
        self._stretched = emulate if computes else None
        directory, span = Path(message["directory"]), Span(*message["span"])
        spec = ModelSpec(
            **{**message["spec"], "eos_token_ids": tuple(message["spec"]["eos_token_ids"])}
        )
        found = PrunersFound({}, ())
        if computes and span.start == 0 and span.end < spec.num_hidden_layers:
            found = find_pruners(spec, span.end, (SHIPPED, directory))
        self._stage = Stage(
            directory,
            spec,
            span,
            dtype=TORCH_DTYPES[Dtype(message["dtype"])],
            device=torch.device(message["device"]),
            kv_dtype=message["kv_dtype"],
            kv_budget_bytes=message["kv_budget_bytes"],
            emulate=None if computes else emulate,
            replica=ReplicaOrder.of(message["replica"]) if message["replica"] else None,
            progress=lambda done, total: self._socket.send(
                {"op": "progress", "done": done, "total": total}
            ),
            pruners=found.pruners,
        )
        pruners = [
            (depth, pruner.measure_tree_s(), pruner.measured)
            for depth, pruner in found.pruners.items()
        ]
        self._socket.send({"op": "ready", "pruners": pruners, "refused": found.refused})

    def _open(self, message: Message) -> None:
        for sequence in message["sequences"]:
            sampling = dict(sequence["sampling"])
            sampling["logit_bias"] = tuple((int(i), float(b)) for i, b in sampling["logit_bias"])
            sampling["stop_token_ids"] = tuple(sampling["stop_token_ids"])
            self._loaded().open(
                SessionId(sequence["session"]),
                Span(*message["span"]),
                sequence["capacity_tokens"],
                sequence["prompt_tokens"],
                SamplingParams(**sampling),
                kv_offload=sequence["kv_offload"],
                draft_tokens=sequence["draft_tokens"],
                draft_sha256=sequence["draft_sha256"],
            )

    def _copy(self, message: Message) -> None:
        for sequence in message["sequences"]:
            session, source = SessionId(sequence["session"]), SessionId(sequence["source"])
            self._loaded().copy_prefix(session, source, sequence["tokens"])

    def _forward(self, message: Message) -> None:
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        slot = message["slot"]
        rows = [
            Row(
                SessionId(session),
                position,
                count,
                0,
                RowFlags(flags),
                tuple(parents),
                accepted,
                DraftMode(mode),
                weights,
                tuple(kept),
            )
            for (
                session,
                position,
                count,
                flags,
                parents,
                accepted,
                mode,
                weights,
                kept,
            ) in message["rows"]
        ]
        ids = np.frombuffer(message["ids"], np.int32)
        hidden = None
        thresholds = message["thresholds"]
        if message["width"]:
            dtype = TORCH_DTYPES[Dtype(message["dtype"])]
            shape = (len(ids), message["width"])  # [N, D]
            hidden = torch.frombuffer(
                self._regions.to_worker[slot], dtype=dtype, count=shape[0] * shape[1]
            ).reshape(shape)
        output = self._loaded().forward(rows, ids, hidden, thresholds)
        replica = self._loaded().take_replica_use()
        if self._stretched is not None:
            lasts_s = self._stretched.stage_s * max(1.0, len(ids) / self._stretched.rows)
            lasts_s += replica.seconds
            time.sleep(max(0.0, started_s + lasts_s - time.perf_counter()))
        answer: dict[str, Any] = {
            "op": "done",
            "hidden_bytes": 0,
            "kept": output.kept,
            "judged_s": output.judged_s,
        }
        if output.hidden is not None:
            raw = output.hidden.contiguous().cpu().view(torch.uint8).flatten()
            target = torch.frombuffer(
                self._regions.to_agent[slot], dtype=torch.uint8, count=len(raw)
            )
            target.copy_(raw)
            answer["hidden_bytes"] = len(raw)
        answer["sampled"] = [
            (
                sampled.session,
                sampled.id,
                None if sampled.finish is None else sampled.finish.value,
                None if sampled.logprobs is None else _packed(sampled.logprobs),
                sampled.accepted,
                [_packed(logprobs) for logprobs in sampled.path_logprobs],
                sampled.refusal,
            )
            for sampled in output.sampled
        ]
        answer["replica"] = dataclasses.astuple(replica)
        compaction = self._loaded().take_compaction_use()  # behind the last answer, or in this pass
        answer["compaction"] = dataclasses.astuple(compaction)
        answer["compute_s"] = time.perf_counter() - started_s
        answer["cpu_s"] = time.process_time() - started_cpu_s  # of all threads
        self._socket.send(answer)
        self._loaded().tidy()  # while the answer is on its way


def _packed(logprobs: TokenLogprobs) -> tuple[float, list[tuple[int, float]]]:
    return logprobs.logprob, list(logprobs.top)


def main() -> None:
    """Entry of the process."""
    fd, memory_fd, region_bytes, parent_pid = (int(argument) for argument in sys.argv[1:5])
    die_with_parent(parent_pid)
    # Ctrl-C in a terminal reaches the whole group; the agent decides when the worker ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_grad_enabled(False)
    Worker(WorkerSocket(fd), SharedRegions(memory_fd, region_bytes)).run()
    # Skip interpreter shutdown: freeing gigabytes piece by piece only delays giving them back.
    os._exit(0)
