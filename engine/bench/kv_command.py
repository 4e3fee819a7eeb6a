"""The arguments of `shoal bench kv`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import get_args

from engine.bench import quantities
from engine.core.errors import ConfigError
from engine.core.kv_room import KvDtype

DTYPES = ("auto", "float32", "bfloat16", "float16")


def add_kv(parser: argparse.ArgumentParser) -> None:
    """Describe the command to a parser."""
    parser.description = (
        "Measure decoding with shares of the KV cache in RAM: attention in both tiers, copies "
        "between them, tokens/s against the share."
    )
    positive = quantities.positive
    parser.add_argument("--model", default="starter", metavar="SOURCE")
    parser.add_argument("--dtype", default="auto", choices=DTYPES)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda …")
    parser.add_argument("--kv-dtype", default="auto", choices=get_args(KvDtype))
    parser.add_argument("--context", type=positive, default=1024, metavar="S", help="tokens cached")
    parser.add_argument(
        "--batch", type=quantities.sizes, default=(1, 8), metavar="LIST", help="such as 1,8"
    )
    parser.add_argument("--steps", type=positive, default=16, metavar="N", help="of each median")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_kv)


def _kv(args: argparse.Namespace) -> int:
    import torch

    from engine.bench import kv
    from engine.config import ModelConfig
    from engine.core.plans import Span
    from engine.localapi.running import Home
    from engine.models.layout import ModelFiles
    from engine.models.prepare import prepare
    from engine.node import compute

    def say(text: str) -> None:
        print(f"{text} …", file=sys.stderr)

    machine = compute.choose(ModelConfig(source=args.model, dtype=args.dtype, device=args.device))
    if machine.device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("torch finds no CUDA device here; choose --device cpu.")
    models_dir = Home.from_environment().models_dir

    async def ready() -> ModelFiles:
        source, dtype = args.model, machine.dtype_name
        files = await prepare(source, models_dir, dtype, None, lambda _: None)
        blocks = Span(0, files.spec.num_hidden_layers)
        return await prepare(source, models_dir, dtype, blocks, lambda _: None)

    say(f"Preparing {args.model}")
    files = asyncio.run(ready())
    report = kv.measure(
        kv.KvBench(
            files=files,
            dtype=getattr(torch, machine.dtype_name),
            device=torch.device(machine.device),
            kv_dtype=args.kv_dtype,
            context_tokens=args.context,
            batch_sizes=args.batch,
            steps=args.steps,
        ),
        say,
    )
    print(report.model_dump_json() if args.json else "\n".join(kv.lines(report)))
    return 0
