from __future__ import annotations

from app.model_presenters import models_view
from engine.localapi.catalogue import Catalogue, CatalogueModel, Standing


def test_picker_says_what_runs_what_could_and_what_is_missing():
    def model(source: str, standing: Standing, missing: int = 0) -> CatalogueModel:
        return CatalogueModel(
            source=source, name=source, about="", licence="MIT", blocks=24, context_tokens=8192,
            minimum_swarm=3, standing=standing, needed_bytes=3_400_000_000, missing_bytes=missing,
        )  # fmt: skip

    models = (
        model("a", Standing.RUNNING),
        model("b", Standing.POSSIBLE),
        model("c", Standing.TOO_LARGE, 9_000_000_000),
    )
    alone = models_view(Catalogue(models=models, can_choose=True, computers=1), str)
    assert [row.can_use for row in alone.rows] == [False, True, False]
    assert "use it" in alone.rows[0].standing
    assert alone.rows[1].standing == "This computer has room for it."
    assert alone.rows[2].standing.startswith("9.0 GB more room is needed. It usually takes 3")
    assert alone.rows[0].facts == "MIT · 3.4 GB · 24 blocks · context of 8,192 tokens"
    swarm = models_view(Catalogue(models=models, can_choose=False, computers=4), str)
    assert not any(row.can_use for row in swarm.rows)
    assert swarm.rows[1].standing == "The 4 computers that are known have room for it."
    assert "leave it to choose" in swarm.note
    assert models_view(None, str).rows == ()
