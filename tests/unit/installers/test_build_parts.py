"""What installers are built from: lists with hashes, and archives that are always the same."""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from installers import build as build_command
from installers.package import archives, locks
from installers.package.plan import Build, BuildFailed, source_date_s

ROOT = Path(__file__).parents[3]
LOCKS = ROOT / "installers" / "locks"
PIN = re.compile(r"(?m)^([a-z0-9-]+)==(\S+)")


def pins(lock: Path) -> dict[str, str]:
    return dict(PIN.findall(lock.read_text("utf-8")))


def a_build(tmp_path: Path, *, is_fast: bool = True) -> Build:
    return Build(
        root=ROOT,
        work=tmp_path / "work",
        out=tmp_path / "out",
        version="1.2.3",
        epoch_s=1_700_000_000,
        is_fast=is_fast,
    )


@pytest.mark.parametrize("name", ["engine", "torch", "gui"])
def test_installers_install_the_versions_that_are_tested(name: str) -> None:
    tested = dict(PIN.findall((ROOT / "resources" / "constraints.txt").read_text("utf-8")))
    locked = pins(LOCKS / f"{name}.txt")
    assert {key: tested[key] for key in locked if key in tested} == {
        key: value for key, value in locked.items() if key in tested
    }
    assert locked


def test_every_locked_package_has_hashes() -> None:
    for lock in LOCKS.glob("*.txt"):
        lines = lock.read_text("utf-8").splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if "==" in line and not line.startswith("#"):
                assert following.startswith("    --hash=sha256:"), f"{lock.name}: {line}"


def test_the_list_of_the_engine_has_all_that_the_project_asks_for_and_no_pytorch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {re.split(r"[^\w-]", line)[0].replace("_", "-") for line in project["dependencies"]}
    locked = set(pins(LOCKS / "engine.txt"))
    assert wanted - locked == {"torch"}
    assert not {
        name for name in locked if name.startswith(("nvidia-c", "cuda", "triton", "pyside"))
    }
    assert "torch" in pins(LOCKS / "torch.txt")


def test_the_list_of_the_app_has_all_that_the_app_imports() -> None:
    imported = set()
    for folder in ("app", "engine/core", "engine/localapi"):
        for file in (ROOT / folder).rglob("*.py"):
            if "bench" in file.parts:  # runs from a checkout only
                continue
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported.add(node.module.partition(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"app", "engine"}
    assert foreign == {"PySide6", "platformdirs", "pydantic", "pygments"}
    wanted = (LOCKS / "gui.in").read_text("utf-8").splitlines()
    assert {line.partition("-")[0] for line in wanted if not line.startswith("#")} == foreign


def test_pytorch_for_cpus_is_the_same_version_and_has_a_file_for_each_python() -> None:
    version = pins(LOCKS / "torch.txt")["torch"]
    text = (LOCKS / "torch-cpu.txt").read_text("utf-8")
    assert f"\ntorch=={version}+cpu \\\n" in text
    pythons = ("3.11", "3.12", "3.13", "3.14")
    assert len(set(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", text))) == len(pythons)


def test_hashes_of_pytorch_for_cpus_are_taken_from_the_page_of_its_index() -> None:
    names = {
        "torch-9.1%2Bcpu-cp311-cp311-manylinux_2_28_x86_64": "a",
        "torch-9.1+cpu-cp314-cp314-manylinux_2_28_x86_64": "b",
        "torch-9.1%2Bcpu-cp314-cp314t-manylinux_2_28_x86_64": "c",
        "torch-9.1%2Bcpu-cp310-cp310-manylinux_2_28_x86_64": "d",
        "torch-9.1%2Bcpu-cp311-cp311-manylinux_2_28_aarch64": "e",
        "torch-9.1%2Bcpu-cp311-cp311-win_amd64": "f",
        "torch-9.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64": "0",
    }
    page = "\n".join(
        f'<a href="/whl/cpu/{name}.whl#sha256={digit * 64}">{name}.whl</a><br/>'
        for name, digit in names.items()
    )
    a, b = (f"    --hash=sha256:{digit * 64}" for digit in "ab")
    assert locks.cpu_torch(page, "9.1") == f"torch==9.1+cpu \\\n{a} \\\n{b}\n"
    with pytest.raises(BuildFailed, match="names no hash of torch"):
        locks.cpu_torch(page, "9.2")


def test_a_list_divides_into_pytorch_and_the_rest() -> None:
    a, t, n = "attrs==1 \\\n    --hash=sha256:a\n", "torch==2 \\\n    --hash=sha256:b\n", "nvidia-"
    cublas, ml = f"{n}cublas==3 \\\n    --hash=sha256:c\n", f"{n}ml-py==4 \\\n    --hash=sha256:d\n"
    assert locks.split(f"# made\n{a}{cublas}{ml}{t}") == (a + ml, cublas + t)


def test_a_folder_packs_to_the_same_bytes_whoever_packs_it_and_when(tmp_path: Path) -> None:
    packed = []
    for moment, names in ((1.0, ("b/z", "a", "b/y")), (9e8, ("a", "b/y", "b/z"))):
        folder = tmp_path / str(moment)
        for name in names:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
            file.chmod(0o600 if moment < 2 else 0o664)
            os.utime(file, (moment, moment))
        (folder / "b" / "program").write_text("x")
        (folder / "b" / "program").chmod(0o711 if moment < 2 else 0o755)
        (folder / "link").symlink_to("a")
        packed.append(archives.plain_tar(a_build(tmp_path), folder))
    assert packed[0] == packed[1]
    assert archives.compressed(a_build(tmp_path), packed[0])[1] == ".gz"


def test_a_wheel_is_settled_to_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for names in (("b.py", "a.py"), ("a.py", "b.py")):
        archive = tmp_path / f"{names[0]}.zip"
        with zipfile.ZipFile(archive, "w") as target:
            for name in names:
                target.writestr(name, "content of " + name)
        archives.settled_zip(a_build(tmp_path), archive)
        files.append(archive.read_bytes())
    assert files[0] == files[1]


def test_sums_are_read_by_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b.run").write_bytes(b"abc")
    (tmp_path / "a.deb").write_bytes(b"")
    build_command.write_sums(tmp_path)
    build_command.write_sums(tmp_path)  # its own file is not counted
    assert (tmp_path / "SHA256SUMS").read_text() == (
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.deb\n"
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.run\n"
    )


def test_the_time_of_the_sources_is_given_or_that_of_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert source_date_s(tmp_path) == 1_700_000_000
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(BuildFailed, match="no number of seconds"):
        source_date_s(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert source_date_s(tmp_path) == source_date_s(tmp_path)


def test_a_program_that_is_missing_or_fails_is_told_in_one_sentence(tmp_path: Path) -> None:
    build = a_build(tmp_path)
    with pytest.raises(BuildFailed, match="because no-such-program is missing"):
        build.run("no-such-program", purpose="try it")
    with pytest.raises(BuildFailed, match="said “nonsense”"):
        build.run(sys.executable, "-c", "raise SystemExit('nonsense')", purpose="try it")
