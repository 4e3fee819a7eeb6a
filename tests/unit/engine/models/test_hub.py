from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import hf_hub_download

from engine.core.errors import (
    DiskFull,
    ModelCorrupt,
    ModelError,
    ModelNotFound,
    ModelUnavailable,
)
from engine.core.plans import Span
from engine.localapi.schema import Progress
from engine.models.layout import ModelFiles
from engine.models.prepare import prepare
from engine.models.storage import FetchLimits
from engine.models.weights import load_tensors
from tests.support.fake_hub import FakeHub, Repository
from tests.support.tiny_models import save_tiny

REPO = "shoal/tiny"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    directory = save_tiny("llama", tmp_path / "published" / "tiny", sharded=True)
    server = FakeHub(tiny=directory)
    for name in ("HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_HUB_DISABLE_SYMLINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with server:
        yield server


@pytest.fixture
def repository(hub: FakeHub) -> Repository:
    return hub.repositories[REPO]


async def get(tmp_path: Path, span: Span | None = None, **options: Any) -> ModelFiles:
    return await prepare(REPO, tmp_path / "models", "float32", span, lambda _: None, **options)


def shards(repository: Repository, span: Span) -> set[str]:
    index = json.loads((repository.directory / "model.safetensors.index.json").read_text())
    names = load_tensors(repository.directory, span)
    return {index["weight_map"][name] for name in names}


def blobs(tmp_path: Path) -> Path:
    return tmp_path / "hf" / "hub" / "models--shoal--tiny" / "blobs"


async def test_identity_needs_no_weights(hub: FakeHub, tmp_path: Path) -> None:
    files = await get(tmp_path)
    assert files.spec.num_hidden_layers == 4
    assert files.spec.model_id.startswith("shoal/tiny@")
    assert files.revision == "1" * 40
    assert not any(name.endswith(".safetensors") for name in hub.sent_bytes)


async def test_only_the_shards_of_the_span_are_fetched(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    files = await get(tmp_path, Span(1, 2))
    fetched = {name for name in hub.sent_bytes if name.endswith(".safetensors")}
    assert fetched == shards(repository, Span(1, 2))
    assert len(fetched) < 5
    got = load_tensors(files.directory, Span(1, 2))
    expected = load_tensors(repository.directory, Span(1, 2))
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    with pytest.raises(ModelCorrupt, match="cannot be read"):
        load_tensors(files.directory, Span(0, 4))


async def test_local_copy_has_the_same_hash(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    from_hub = await get(tmp_path)
    local = await prepare(
        str(repository.directory), tmp_path / "models", "float32", None, lambda _: None
    )
    assert local.spec.model_id.partition("@")[2] == from_hub.spec.model_id.partition("@")[2]
    assert local.spec.name == "tiny"


async def test_download_that_is_cut_goes_on_where_it_was(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    name = min(shards(repository, Span(0, 1)))
    size = (repository.directory / name).stat().st_size
    repository.cut_once_after[name] = size // 2
    files = await get(tmp_path, Span(0, 4))
    assert (files.directory / name).read_bytes() == (repository.directory / name).read_bytes()
    assert hub.sent_bytes[name] == size
    assert len(hub.ranges[name]) == 1


async def test_cancelled_download_ends_at_once_and_is_resumed_by_the_next_process(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    name = min(shards(repository, Span(0, 1)))
    size = (repository.directory / name).stat().st_size
    repository.stall_once_after[name] = size // 2
    task = asyncio.create_task(get(tmp_path, Span(0, 1)))
    assert await asyncio.to_thread(hub.stalled.wait, 30)
    await asyncio.sleep(0.2)  # let the child write what has arrived
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert [path.name for path in blobs(tmp_path).glob("*-part")]
    files = await get(tmp_path, Span(0, 1))
    assert (files.directory / name).read_bytes() == (repository.directory / name).read_bytes()
    start = int(hub.ranges[name][-1].removeprefix("bytes=").rstrip("-"))
    assert 0 < start <= size // 2 + 16384
    assert not list(blobs(tmp_path).glob("*-part"))


async def test_part_that_a_power_cut_has_spoiled_is_found_out_and_fetched_anew(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    name = min(shards(repository, Span(0, 1)))
    whole = (repository.directory / name).read_bytes()
    await get(tmp_path)
    part = blobs(tmp_path) / f"{hashlib.sha256(whole).hexdigest()}.shoal-part"
    part.write_bytes(bytes(len(whole) // 2))  # as some file systems leave what was not synced
    files = await get(tmp_path, Span(0, 1))
    assert (files.directory / name).read_bytes() == whole
    assert hub.ranges[name] == [f"bytes={len(whole) // 2}-"]
    assert hub.sent_bytes[name] == len(whole) - len(whole) // 2 + len(whole)


async def test_progress_counts_bytes_of_all_shards(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    await prepare(REPO, tmp_path / "models", "float32", Span(0, 4), seen.append)
    downloading = [progress for progress in seen if progress.what == f"Downloading {REPO}"]
    total = sum(path.stat().st_size for path in repository.directory.glob("*.safetensors"))
    assert downloading[-1].done == downloading[-1].total == total
    assert [p.done for p in downloading] == sorted(p.done for p in downloading)


async def test_second_time_downloads_nothing(hub: FakeHub, tmp_path: Path) -> None:
    first = await get(tmp_path, Span(0, 4))
    sent = hub.sent_bytes.copy()
    assert await get(tmp_path, Span(0, 4)) == first
    assert hub.sent_bytes == sent


async def test_works_without_network_once_everything_is_cached(
    hub: FakeHub, tmp_path: Path
) -> None:
    online = await get(tmp_path, Span(0, 4))
    hub.stop()
    assert await get(tmp_path, Span(0, 4)) == online


async def test_cache_that_another_program_filled_works_without_network(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    online = await get(tmp_path)
    shutil.rmtree(tmp_path / "models")
    cache = tmp_path / "hf" / "hub"
    shutil.rmtree(cache)
    for path in repository.files():
        await asyncio.to_thread(
            hf_hub_download, REPO, path.name, cache_dir=cache, endpoint=hub.url, token=False
        )
    hub.stop()
    offline = await get(tmp_path, Span(0, 4))
    assert offline.spec == online.spec
    assert len(load_tensors(offline.directory, Span(0, 4))) > 30


async def test_without_network_a_missing_shard_is_named(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    await get(tmp_path, Span(0, 1))
    hub.stop()
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await get(tmp_path, Span(0, 4))


async def test_without_network_an_unknown_model_says_how_it_failed(
    hub: FakeHub, tmp_path: Path
) -> None:
    hub.stop()
    with pytest.raises(ModelUnavailable, match=r"cannot be reached.*not in the cache"):
        await get(tmp_path)


async def test_offline_switch_is_named(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelUnavailable, match="HF_HUB_OFFLINE"):
        await get(tmp_path)


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (404, "RepoNotFound", "no model shoal/tiny"),
        (401, "RepoNotFound", "no model shoal/tiny"),
        (403, "GatedRepo", "accepted its terms"),
        (403, "", "refuses access"),
    ],
)
async def test_model_that_we_may_not_have_says_why(
    repository: Repository, tmp_path: Path, status: int, code: str, says: str
) -> None:
    repository.status, repository.error_code = status, code
    with pytest.raises(ModelNotFound, match=says):
        await get(tmp_path)


async def test_hub_that_is_down_is_worth_another_try(
    repository: Repository, tmp_path: Path
) -> None:
    repository.status = 503
    with pytest.raises(ModelUnavailable, match="503") as caught:
        await get(tmp_path)
    assert caught.value.retryable


async def test_name_that_is_no_hub_id_is_refused(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="neither a folder here nor"):
        await prepare("no such model!", tmp_path / "models", "float32", None, lambda _: None)


async def test_repository_without_safetensors_is_refused(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    for path in repository.directory.glob("model*"):
        path.unlink()
    (repository.directory / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(ModelError, match="safetensors"):
        await get(tmp_path)
    assert "pytorch_model.bin" not in hub.sent_bytes


async def test_unsupported_family_is_refused_before_weights(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    path = repository.directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "mamba"}))
    with pytest.raises(ModelError, match="family mamba"):
        await get(tmp_path, Span(0, 4))
    assert not any(name.endswith(".safetensors") for name in hub.sent_bytes)


@pytest.mark.parametrize("damage", ["truncated", "altered"])
async def test_damaged_file_in_the_cache_is_fetched_again(
    hub: FakeHub, repository: Repository, tmp_path: Path, damage: str
) -> None:
    files = await get(tmp_path, Span(0, 4))
    name = min(shards(repository, Span(0, 1)))
    blob = (files.directory / name).resolve()
    content = blob.read_bytes()
    blob.write_bytes(content[:-100] if damage == "truncated" else content[:-1] + b"\x55")
    hub.sent_bytes.clear()
    again = await get(tmp_path, Span(0, 4))
    assert (again.directory / name).read_bytes() == content
    assert set(hub.sent_bytes) == {name}
    assert not list(blobs(tmp_path).glob("*.damaged"))


async def test_damaged_config_in_the_cache_is_fetched_again(hub: FakeHub, tmp_path: Path) -> None:
    files = await get(tmp_path)
    blob = (files.directory / "config.json").resolve()
    blob.write_bytes(blob.read_bytes()[:100])
    assert await get(tmp_path) == files


async def test_file_that_is_never_right_is_corrupt_and_not_kept(
    repository: Repository, tmp_path: Path
) -> None:
    name = min(shards(repository, Span(0, 1)))
    content = (repository.directory / name).read_bytes()
    repository.contents[name] = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(ModelCorrupt, match="promises"):
        await get(tmp_path, Span(0, 1))
    assert name not in {path.name for path in blobs(tmp_path).parent.glob("snapshots/*/*")}
    assert not list(blobs(tmp_path).glob("*-part"))


async def test_too_little_disk_is_said_before_downloading(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    name = min(shards(repository, Span(0, 1)))
    repository.announced_sizes[name] = 10**15
    with pytest.raises(DiskFull, match="free some space"):
        await get(tmp_path, Span(0, 1))
    assert name not in hub.sent_bytes


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (FetchLimits(models_bytes=1000), r"more, but models have \d+ MB of the 0 MB .*delete one"),
        (FetchLimits(disk_free_bytes=1 << 60), r"where only 0 MB can be used.*disk_free_bytes"),
    ],
    ids=["cap", "floor"],
)
async def test_what_the_persons_limits_forbid_is_refused_with_numbers_before_a_byte_of_weights(
    hub: FakeHub, tmp_path: Path, limits: FetchLimits, says: str
) -> None:
    with pytest.raises(DiskFull, match=says):
        await get(tmp_path, Span(0, 4), limits=limits)
    assert not any(name.endswith(".safetensors") for name in hub.sent_bytes)


async def test_all_that_comes_takes_turns_on_the_line(hub: FakeHub, tmp_path: Path) -> None:
    asked: list[int] = []

    async def take(num_bytes: int) -> int:
        asked.append(num_bytes)
        return 1000

    await get(tmp_path, Span(0, 4), take=take)
    sent_bytes = sum(hub.sent_bytes.values())
    # The listing comes on top; what came after the last question does not.
    assert sent_bytes - 1000 <= sum(asked) <= sent_bytes + 10_000
    assert len(asked) > 10


async def test_download_waits_for_its_turn_and_nothing_is_read_meanwhile(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    turn, asked = asyncio.Event(), asyncio.Event()

    async def take(num_bytes: int) -> int:
        asked.set()
        await turn.wait()
        return 1 << 30

    getting = asyncio.create_task(get(tmp_path, Span(0, 4), take=take))
    await asked.wait()
    assert not getting.done()
    turn.set()
    assert (await getting).spec.num_hidden_layers == 4


async def test_disk_that_fills_up_leaves_no_part_behind(
    repository: Repository, tmp_path: Path
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")

    name = min(shards(repository, Span(0, 1)))
    sha256 = hashlib.sha256((repository.directory / name).read_bytes()).hexdigest()
    await get(tmp_path)
    part = blobs(tmp_path) / f"{sha256}.shoal-part"
    part.symlink_to("/dev/full")
    with pytest.raises(DiskFull, match="is full"):
        await get(tmp_path, Span(0, 1))
    assert not part.is_symlink()


async def test_two_processes_fetch_each_shard_once(
    hub: FakeHub, repository: Repository, tmp_path: Path
) -> None:
    first, second = await asyncio.gather(get(tmp_path, Span(0, 4)), get(tmp_path, Span(0, 4)))
    assert first == second
    for path in repository.directory.glob("*.safetensors"):
        assert hub.sent_bytes[path.name] == path.stat().st_size
