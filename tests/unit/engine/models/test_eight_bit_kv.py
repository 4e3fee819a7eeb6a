"""What 8-bit caches cost in accuracy, on the starter model and real text."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

from engine.core.kv_room import KvDtype
from engine.core.plans import Span
from engine.kv.cache import KvPool
from engine.models.attention import PackedRow
from engine.models.block_stack import BlockStack
from engine.models.families import read_config
from engine.models.heads import Ends
from engine.models.layout import read_spec
from tests.support.starter import starter_directory

TEXT = """The shoal turns because each fish keeps its distance to a handful of neighbours, and not
because anyone decides. In 1987 Craig Reynolds showed that three rules are enough: do not collide,
match your neighbours' speed, stay near their middle. Here is the first of them in Python:

def separation(fish, neighbours, radius=1.5):
    away = [fish.position - other.position for other in neighbours]
    return sum(v / abs(v) ** 2 for v in away if 0 < abs(v) < radius)

Q: What did the predator do? A: It swam through the middle, the shoal parted, flowed around it and
closed again. Nobody was eaten (this time); 2,304 herring, give or take, went on northwards. Mehrere
Beobachter haben das gesehen, unter anderem von einem Boot aus."""
MEAN_KL = 6e-4
TOP_1 = 0.97
"""Measured over 1,700 tokens: KL 3.6e-4 nats, 99.2 %; without `KeyMix` 1.0e-3, 98.5 %."""
CPU = torch.device("cpu")


@pytest.mark.parametrize("kv_offload", [0.0, 0.5])
@torch.inference_mode()
def test_eight_bit_caches_hardly_change_the_starter_models_predictions(kv_offload: float) -> None:
    directory = starter_directory()
    spec = read_spec(directory, "starter@0")
    config, span = read_config(directory, spec), Span(0, spec.num_hidden_layers)
    options = {"dtype": torch.float32, "device": CPU}
    blocks = BlockStack(directory, config, span, **options, progress=lambda _done, _total: None)
    ends = Ends(directory, config, first=True, last=True, **options)
    ids = AutoTokenizer.from_pretrained(directory)(TEXT, return_tensors="pt").input_ids[0]

    def log_probabilities(kv_dtype: KvDtype) -> Tensor:
        pool = KvPool(spec.num_key_value_heads, spec.head_dim, **options, kv_dtype=kv_dtype)
        cache = pool.reserve(len(span), len(ids), kv_offload)
        x = blocks.forward(ends.embed(ids), [PackedRow(cache, 0, len(ids), 0)], span)
        return ends.logits(x).log_softmax(-1)

    exact, rounded = log_probabilities("auto"), log_probabilities("8bit")
    divergence = (exact.exp() * (exact - rounded)).sum(-1)
    agreement = (exact.argmax(-1) == rounded.argmax(-1)).float().mean()
    print(f"KL {divergence.mean():.2e} nats, top-1 agreement {agreement:.1%} of {len(ids)}")
    assert 0 < divergence.mean() < MEAN_KL
    assert agreement >= TOP_1
