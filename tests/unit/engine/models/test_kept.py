import json

import pytest
from huggingface_hub import constants

from engine.core.errors import DiskFull, ModelError, ModelNotFound
from engine.models.kept import delete, kept, kept_bytes
from engine.models.storage import FetchLimits, require_free


@pytest.fixture
def models_dir(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "models"
    converted = folder / "starter-float32"
    converted.mkdir(parents=True)
    (converted / "shoal-manifest.json").write_text("{}")
    (folder / "somebody-elses").mkdir()
    (folder / "somebody-elses" / "config.json").write_text("{}")
    (converted / "model.safetensors").write_bytes(b"x" * 1000)
    (folder / "starter.gguf").write_bytes(b"x" * 300)
    note = folder / "hub" / "models--owner--name.json"
    note.parent.mkdir()
    note.write_text(json.dumps({}))
    blobs = tmp_path / "hub" / "models--owner--name" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "abc").write_bytes(b"x" * 500)
    snapshot = blobs.parent / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(blobs / "abc")
    (tmp_path / "hub" / "models--other--program").mkdir()
    return folder


def test_own_models_are_listed_and_those_of_other_programs_are_not(models_dir):
    assert [(m.name, m.num_bytes) for m in kept(models_dir)] == [
        ("owner/name", 500),
        ("starter-float32", 1002),
    ]
    assert kept_bytes(models_dir) == 500 + 1002 + 300


def test_a_model_is_deleted_unless_it_runs(models_dir, tmp_path):
    running = models_dir / "starter-float32"
    with pytest.raises(ModelError, match="runs now"):
        delete(models_dir, "starter-float32", running)
    delete(models_dir, "owner/name", running)
    assert [m.name for m in kept(models_dir)] == ["starter-float32"]
    assert not (tmp_path / "hub" / "models--owner--name").exists()
    for name in ("owner/name", "other/program", "../models", ""):
        with pytest.raises(ModelNotFound):
            delete(models_dir, name, running)


def test_a_download_over_the_persons_limits_is_refused_before_it_begins(tmp_path):
    with pytest.raises(DiskFull, match=r"models have 900 MB of the 1,000 MB"):
        require_free(tmp_path, 200_000_000, FetchLimits(models_bytes=10**9), 900_000_000)
    with pytest.raises(DiskFull, match=r"leave less of it free \(limits.disk_free_bytes\)"):
        require_free(tmp_path, 1, FetchLimits(disk_free_bytes=1 << 60))
    # Nothing is needed, so a full disk is no reason to refuse.
    require_free(tmp_path, 0, FetchLimits(disk_free_bytes=1 << 60, models_bytes=1), 10)
