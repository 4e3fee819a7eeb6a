"""Measured profiles for tests, with defaults so that a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

from engine.localapi.measurements import MeasuredProfile


def quantity(value: float, unit: str = "s", spread: float = 0.0) -> dict[str, Any]:
    return {"value": value, "spread": spread, "unit": unit}


def fitted(base_s: float, unit_s: float) -> dict[str, Any]:
    return {
        "base_s": quantity(base_s),
        "unit_s": quantity(unit_s, "s/row"),
        "residual": quantity(0.05, "1"),
    }


def measured_profile(**fields: Any) -> MeasuredProfile:
    """A CPU that computes in float32: blocks of a million parameters, 2 GB free."""
    known: dict[str, Any] = {
        "measured_unix_s": 1_000_000.0,
        "shoal": "test",
        "quick": False,
        "fingerprint": "0123456789abcdef",
        "device": "cpu",
        "dtype": "float32",
        "threads": 2,
        "model": {
            "name": "tiny",
            "hidden_size": 64,
            "element_bytes": 4,
            "block_parameters": 1_000_000,
            "head_parameters": 500_000,
            "kv_elements_per_token": 100,
        },
        "block": {
            "mlp": fitted(0.003, 0.0002),
            "attention": fitted(0.0005, 1e-6),
            "attention_row_s": quantity(0.00001, "s/row"),
            "prefill_row_s": quantity(0.0001, "s/row"),
            "fixed_s": quantity(0.001),
        },
        "head": fitted(0.004, 0.0004),
        "pass_overhead_s": quantity(0.0003),
        "memory_bytes": quantity(2e9, "B"),
        "ram_bytes": quantity(0, "B"),
        "encode_bytes_per_s": quantity(1e9, "B/s"),
        "decode_bytes_per_s": quantity(2e9, "B/s"),
        "prefill_tokens_per_s": quantity(10_000, "token/s"),
        "table": [],
        "cpu": {"name": "a processor", "cores": 2, "usable_threads": 2, "frequency_hz": None},
        "ram_total_bytes": quantity(4e9, "B"),
        "disk": {"free_bytes": quantity(1e10, "B"), "read_bytes_per_s": None},
        "load": {"cpu_share": quantity(0.1, "1"), "gpu_share": None},
    }
    return MeasuredProfile.model_validate({**known, **fields})
