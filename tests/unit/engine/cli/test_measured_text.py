from engine.cli.measured_text import lines
from tests.support.measured import fitted, measured_profile, quantity


def test_everything_measured_is_shown_with_its_spread():
    block = measured_profile().block.model_dump() | {"ram_attention": fitted(0.002, 5e-6)}
    text = "\n".join(
        lines(
            measured_profile(
                device="cuda",
                dtype="bfloat16",
                block=block,
                power_w=quantity(180, "W", spread=12),
                to_device_bytes_per_s=quantity(12e9, "B/s", spread=1e8),
                to_ram_bytes_per_s=quantity(11e9, "B/s", spread=1e8),
                gpus=[
                    {
                        "name": "RTX 4090",
                        "uuid": "GPU-1",
                        "driver": "570.1",
                        "memory_total_bytes": quantity(24 << 30, "B"),
                        "memory_free_bytes": quantity(20 << 30, "B"),
                        "power_limit_w": quantity(450, "W"),
                        "temperature_c": quantity(50, "°C"),
                    }
                ],
                table=[
                    {
                        "where": "ram",
                        "batch": 16,
                        "context": 512,
                        "mlp_s": quantity(0.0012),
                        "attention_s": quantity(0.0034),
                        "mlp_residual": 0.07,
                        "attention_residual": -0.12,
                    }
                ],
                network={
                    "reachability": "direct",
                    "uplink_bytes_per_s": quantity(2.5e6, "B/s", spread=5e4),
                    "peers": [
                        {
                            "peer": "QmAAAAAAzzzzzz",
                            "path": "relayed",
                            "rtt_s": quantity(0.1, spread=0.002),
                            "uplink_bytes_per_s": quantity(2.5e6, "B/s", spread=5e4),
                            "note": "It was busy.",
                        }
                    ],
                },
            )
        )
    )
    for shown in (
        "RTX 4090, 20.0 GiB of 24.0 GiB free, driver 570.1, at most 450 W, 50 °C",
        "2 ± 0 ms, and 5 ± 0 ms per row and 1,000 tokens",
        "12000 ± 100 MB/s to the GPU, 11000 ± 100 MB/s back",
        "180 ± 12 W under load",
        "16      512  ram         1.200      +7%          3.400     -12%",
        "Uplink       20 ± 0 Mbit/s",
        "To zzzzzz (relayed): 100 ± 2 ms there and back, 20 ± 0 Mbit/s up. It was busy.",
    ):
        assert shown in text, text
