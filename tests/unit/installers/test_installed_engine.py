"""The engine's environment of an installed Shoal, with a stand-in for uv that does as it is told."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from installers.setup_steps import engine_setup, installed, pip_runs, uv_runs
from installers.setup_steps.frozen import restore_variables
from installers.setup_steps.installed import Installed, Parts
from installers.setup_steps.report import Report, SetupFailed
from installers.setup_steps.torch_build import TorchBuild

CPU = TorchBuild("cpu", "No NVIDIA card was found, so PyTorch for CPUs is used.")
LOG = Path("setup.log")
# Makes environments as uv does; what it installs is in the file beside it.
UV = f"""#!{sys.executable}
import json, os, pathlib, stat, sys
here = pathlib.Path(__file__).parent
told = json.loads((here / "told.json").read_text())
words = [word for word in sys.argv[1:] if word not in ("--color", "never")]
with (here / "asked").open("a") as asked:
    asked.write(" ".join(words[:2]) + "\\n")
failing = told["fails"].get(words[0])
if failing and told["times"] > 0:
    told["times"] -= 1
    (here / "told.json").write_text(json.dumps(told))
    print(failing)
    sys.exit(2)
if words[0] == "venv":
    environment = pathlib.Path(words[-1])
    (environment / "bin").mkdir(parents=True, exist_ok=True)
    (environment / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)
    python = environment / "bin" / "python"
    python.write_text("#!/bin/sh\\nif [ \\"$3\\" = pip ] && [ \\"$4\\" = config ]; then echo global.index-url=x; fi\\n"
        "if [ \\"$2\\" = -c ]; then echo 3.11; fi\\n")
    python.chmod(0o755)
else:
    print("Downloading torch (190.0MiB)")
    print(" Downloaded torch")
"""


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    folder = tmp_path / "lib of Zoë" / "engine"
    folder.mkdir(parents=True)
    (folder / "engine.txt").write_text("attrs==1 \\\n    --hash=sha256:a\n")
    (folder / "torch.txt").write_text("torch==2 \\\n    --hash=sha256:b\n")
    (folder / "torch-cpu.txt").write_text("torch==2+cpu \\\n    --hash=sha256:c\n")
    (folder / "shoal-1-py3-none-any.whl").write_bytes(b"wheel")
    (folder / "uv").write_text(UV)
    (folder / "uv").chmod(0o755)
    tell(folder)
    return Parts(folder)


def tell(folder: Path, times: int = 0, **fails: str) -> None:
    (folder / "told.json").write_text(json.dumps({"fails": fails, "times": times}))


def asked(parts: Parts) -> list[str]:
    return (parts.folder / "asked").read_text().splitlines()


@pytest.fixture
def engine(parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    monkeypatch.setattr(installed, "PAUSE_S", 0.0)
    monkeypatch.setattr(installed, "NEEDED_BYTES", {"cpu": 1000, "cuda": 2000})
    return Installed(parts, tmp_path / "home of Zoë" / "shoal", Report())


def test_the_engine_is_set_up_once_and_then_found_in_place(engine: Installed) -> None:
    assert not engine.is_ready()
    engine.prepare(CPU)
    assert engine.is_ready()
    assert asked(engine.parts) == ["venv --quiet", "pip install", "pip install"]
    engine.prepare(CPU)
    assert len(asked(engine.parts)) == 3
    assert not engine.cache.exists()


def test_a_new_version_is_put_into_the_environment_that_is_there(engine: Installed) -> None:
    engine.prepare(CPU)
    engine.parts.wheel.write_bytes(b"a newer wheel")
    assert not engine.is_ready()
    engine.prepare(CPU)
    assert engine.is_ready()
    assert asked(engine.parts)[3:] == ["pip install", "pip install"]


def test_the_environment_is_made_anew_when_the_system_has_another_python(engine: Installed) -> None:
    engine.prepare(CPU)
    old = engine.path / "lib/python3.11/site-packages/package_of_the_old_one"
    old.mkdir()
    engine.python.write_text("#!/bin/sh\necho 3.13\n")
    assert not engine.is_ready()
    engine.prepare(CPU)
    assert engine.is_ready()
    assert asked(engine.parts)[3:] == ["venv --quiet", "pip install", "pip install"]
    assert not old.exists()


def test_what_was_cut_off_is_made_anew_from_what_was_downloaded(engine: Installed) -> None:
    tell(engine.parts.folder, times=9, pip="error: No space left on device (os error 28)")
    with pytest.raises(SetupFailed, match="because the disk is full; free some space"):
        engine.prepare(CPU)
    assert not engine.is_ready()
    engine.cache.mkdir()
    half = engine.path / "lib/python3.11/site-packages/half_installed"
    half.mkdir()
    tell(engine.parts.folder)
    engine.prepare(CPU)
    assert engine.is_ready()
    assert not half.exists()


def test_a_connection_that_fails_is_tried_again_and_then_told(engine: Installed) -> None:
    cut = "error: error sending request for url (https://pypi.org/simple/attrs/)"
    tell(engine.parts.folder, times=2, pip=cut)
    engine.prepare(CPU)
    assert engine.is_ready()
    engine.remove()
    tell(engine.parts.folder, times=3, pip=cut)
    with pytest.raises(SetupFailed, match="cannot be reached; check the internet connection"):
        engine.prepare(CPU)


def test_a_small_disk_is_told_before_anything_is_downloaded(
    engine: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "NEEDED_BYTES", {"cpu": 1 << 60})
    with pytest.raises(SetupFailed, match=r"needs about \d+ GB of disk, but .* has only"):
        engine.prepare(CPU)
    assert not (engine.parts.folder / "asked").exists()
    assert not engine.path.exists()


def test_a_home_that_cannot_be_written_to_is_told(engine: Installed) -> None:
    engine.data.parent.write_text("not a folder")
    with pytest.raises(SetupFailed, match="could not write to"):
        engine.prepare(CPU)


def test_a_version_beside_another_takes_over_its_packages_and_leaves_it_whole(
    parts: Parts, tmp_path: Path
) -> None:
    engines = []
    for version in ("0.1.0", "0.2.0"):
        folder = tmp_path / "versions" / version
        folder.mkdir(parents=True)
        (folder / "start.json").write_text("{}")
        engine = Installed(parts, folder, Report())
        engine.prepare(CPU)
        library = engine.path / "lib" / "python3.11" / "site-packages" / "library.py"
        if version == "0.1.0":
            library.write_text("large")
        else:
            assert library.read_text() == "large"
        engines.append(engine)
    engines[1].remove()
    assert engines[0].is_ready()
    assert (engines[0].path / "lib/python3.11/site-packages/library.py").read_text() == "large"


def test_removing_leaves_what_is_not_the_setups(engine: Installed) -> None:
    engine.prepare(CPU)
    chats = engine.data / "shoal.sqlite3"
    chats.write_text("chats")
    engine.remove()
    assert list(engine.data.iterdir()) == [chats]
    engine.remove()


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("error: dns error: failed to lookup address", "cannot be reached; check the internet"),
        ("Caused by: operation timed out", "cannot be reached"),
        ("invalid peer certificate: UnknownIssuer", "could not prove who it is; check the clock"),
        ("Hash mismatch for `attrs==1`", "is not the one that was tested"),
        ("error: No interpreter found for Python >=3.11", "install Python 3.11 or newer"),
        ("failed to write: Read-only file system (os error 30)", "a folder cannot be written to"),
        ("thread panicked at the disco", "uv said “thread panicked at the disco”; look into"),
        ("", "uv ended without saying why"),
    ],
)
def test_failures_get_one_sentence_with_what_to_do(output: str, told: str) -> None:
    sentence = uv_runs.explain(output, purpose="install Shoal", log=LOG)
    assert sentence.startswith("Setup could not install Shoal, because ")
    assert told in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_index_proxy_and_certificates_that_pip_knows_hold_for_uv(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True)
    config.write_text(
        "[global]\nindex-url = https://company.example/simple\ncert = /company.pem\n"
        "find-links = /wheels\n  /more\n"
    )
    told = {"HOME": str(tmp_path), "HTTPS_PROXY": "http://proxy:3128", "VIRTUAL_ENV": "/venv"}
    variables = uv_runs.own_variables(told, tmp_path / "downloads")
    assert variables["UV_DEFAULT_INDEX"] == "https://company.example/simple"
    assert variables["SSL_CERT_FILE"] == "/company.pem"
    assert variables["UV_FIND_LINKS"] == "/wheels,/more"
    assert variables["HTTPS_PROXY"] == "http://proxy:3128"
    assert "VIRTUAL_ENV" not in variables
    assert Path(variables["UV_PYTHON_INSTALL_DIR"]).parent == tmp_path
    own = {"UV_DEFAULT_INDEX": "https://own.example", "PIP_INDEX_URL": "https://other.example"}
    assert uv_runs.own_variables(told | own, tmp_path)["UV_DEFAULT_INDEX"] == "https://own.example"


def test_pip_ends_with_whoever_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = tmp_path / "python"
    pip.write_text(
        f"#!{sys.executable}\nimport os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "print('Installing collected packages: torch', flush=True)\ntime.sleep(600)\n"
    )
    pip.chmod(0o755)

    class Interrupted(Report):
        def progress(self, text: str, share: float | None = None) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pip_runs.run_pip(
            pip, ["install"], purpose="install", log=tmp_path / "log", report=Interrupted()
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_programs_that_a_frozen_one_starts_get_the_systems_libraries() -> None:
    environment = {"LD_LIBRARY_PATH": "/frozen", "LD_LIBRARY_PATH_ORIG": "/own", "_PYI_X": "1"}
    restore_variables(environment)
    assert environment == {"LD_LIBRARY_PATH": "/own"}


def test_programs_hear_an_object_a_line(
    engine: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine_setup, "program_folder", lambda: engine.parts.folder.parent)
    monkeypatch.setenv("SHOAL_HOME", str(engine.data))
    assert engine_setup.main(["check", "--json"]) == 0
    offer = json.loads(capsys.readouterr().out)
    assert (offer["ready"], offer["torch"], offer["problem"]) == (False, "cpu", "")
    tell(engine.parts.folder, times=9, venv="error: No interpreter found")
    assert engine_setup.main(["install", "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"step": "python"} in lines
    assert "install Python 3.11 or newer" in lines[-1]["problem"]
    tell(engine.parts.folder)
    assert engine_setup.main(["install"]) == 0
    assert "Set up in" in capsys.readouterr().out
    assert engine_setup.main(["check"]) == 0
    assert capsys.readouterr().out.startswith("The engine is set up in ")
    assert engine_setup.main(["remove"]) == 0
    assert not (engine.data / "data" / "environment").exists()


@pytest.mark.parametrize(
    ("words", "display", "becomes"),
    [
        ([], ":0", ["shoal-app"]),
        (["start"], ":0", ["shoal-app"]),
        (["--model", "starter"], ":0", ["shoal-app", "--", "--model", "starter"]),
        (["shoal://v1/abc"], ":0", ["shoal-app", "shoal://v1/abc"]),
        (["--once"], ":0", ["shoal", "--once"]),
        (["start", "--headless"], ":0", ["shoal", "--headless"]),
        ([], "", ["shoal"]),
        (["status", "--json"], ":0", ["shoal", "status", "--json"]),
    ],
)
def test_the_command_becomes_the_window_or_one_of_the_engine(
    words: list[str],
    display: str,
    becomes: list[str],
    engine: Installed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    became: list[list[str]] = []

    def execv(_program: object, arguments: list[str]) -> None:
        became.append([Path(arguments[0]).name, *arguments[1:]])
        raise SystemExit(0)

    engine.prepare(CPU)
    monkeypatch.setattr(engine_setup, "program_folder", lambda: engine.parts.folder.parent)
    monkeypatch.setattr(engine_setup, "data_folder", lambda *_: engine.data)
    monkeypatch.setattr("os.execv", execv)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(SystemExit):
        engine_setup.main(["launch", "shoal", *words])
    assert became == [becomes]
