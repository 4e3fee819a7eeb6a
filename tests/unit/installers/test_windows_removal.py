"""Removing Shoal from Windows, and the chats that outlast it."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from installers.windows.provision import Exit
from tests.support.windows.installation import Pc


def test_removal_keeps_chats_and_the_next_installation_has_them(pc: Pc) -> None:
    pc.run("install")
    store = pc.windows.linux / "home/shoal/.local/share/shoal"
    (store / "shoal.sqlite3").write_text("chats")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert pc.windows.state["distributions"] == {}
    with tarfile.open(pc.state / "kept" / "engine.tar") as kept:
        assert ".local/share/shoal/shoal.sqlite3" in kept.getnames()
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "chats"
    assert not (pc.state / "kept" / "engine.tar").exists()


def test_engine_is_ended_before_its_chats_are_saved(pc: Pc) -> None:
    pc.run("install")
    before = len(pc.windows.calls())
    assert pc.run("remove", "--keep-data") is Exit.DONE
    said = pc.windows.said()[before:]
    saved = next(i for i, call in enumerate(said) if "tar -cf" in call)
    assert "--terminate Shoal" in said[:saved]


def kept_chats(pc: Pc) -> tuple[Path, Path]:
    """A computer whose chats wait to be put back: the archive, and where the chats will be."""
    pc.run("install")
    store = pc.windows.linux / "home/shoal/.local/share/shoal"
    (store / "shoal.sqlite3").write_text("chats")
    (store / "node.key").write_text("key")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    return pc.state / "kept" / "engine.tar", store


def test_chats_whose_way_back_is_cut_are_neither_lost_nor_half_there(pc: Pc) -> None:
    archive, store = kept_chats(pc)
    aside = archive.rename(archive.with_suffix(".aside"))
    assert pc.run("install") is Exit.DONE
    aside.rename(archive)
    for cut in (1500, 1536):  # inside a file, and between two
        pc.windows.put(cut_input_bytes=cut)
        assert pc.run("install") is Exit.FAILED
        assert f"are safe in {archive}" in pc.said
        assert not (store / "shoal.sqlite3").exists()
    pc.windows.put(cut_input_bytes=None)
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "chats"
    assert (store / "node.key").read_text() == "key"
    assert not (store.parents[2] / ".restore").exists()
    assert [kept.name for kept in archive.parent.iterdir()] == ["restored.tar"]


def test_kept_chats_stay_when_the_engine_has_chats_of_its_own_also_after_the_next_removal(
    pc: Pc,
) -> None:
    archive, store = kept_chats(pc)
    aside = archive.with_suffix(".aside")
    archive.rename(aside)
    assert pc.run("install") is Exit.DONE
    (store / "shoal.sqlite3").write_text("newer chats")
    whole = aside.rename(archive).read_bytes()
    assert pc.run("install") is Exit.DONE
    assert (store / "shoal.sqlite3").read_text() == "newer chats"
    assert archive.with_name("engine-1.tar").read_bytes() == whole
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert archive.with_name("engine-1.tar").read_bytes() == whole
    assert archive.exists()


def test_engine_that_never_ran_has_nothing_to_keep(pc: Pc) -> None:
    pc.run("install")
    shutil.rmtree(pc.windows.linux / "home/shoal/.local")
    assert pc.run("remove", "--keep-data") is Exit.DONE
    assert not list((pc.state / "kept").iterdir())
    assert pc.windows.state["distributions"] == {}


def test_removal_without_keeping_leaves_nothing(pc: Pc) -> None:
    pc.run("install")
    assert pc.run("remove") is Exit.DONE
    assert not (pc.state / "kept").exists()
    assert not (pc.root / "linux").exists()
    assert pc.windows.said()[-2:] == ["--terminate Shoal", "--unregister Shoal"]
