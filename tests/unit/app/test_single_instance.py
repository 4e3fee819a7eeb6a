from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.single_instance import SingleInstance
from engine.localapi.running import Home

CLAIM = (
    "import sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication; "
    "from app.single_instance import SingleInstance; from engine.localapi.running import Home; "
    "app = QCoreApplication([]); one = SingleInstance(Home.under(Path(sys.argv[1]))); "
    "print(one.claim(*sys.argv[2:]), flush=True); sys.stdin.read()"
)


def claim_elsewhere(folder: Path, *invite: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(folder), *invite],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_later_claim_raises_the_first(qtbot: QtBot, tmp_path: Path) -> None:
    first = SingleInstance(Home.under(tmp_path))
    assert first.claim()
    for _ in range(2):
        with qtbot.waitSignal(first.raised, timeout=10_000):
            later = claim_elsewhere(tmp_path)
        assert later.communicate(timeout=10)[0].strip() == "False"
        qtbot.wait(50)
    first.release()


def test_claims_of_different_homes_do_not_meet(qtbot: QtBot, tmp_path: Path) -> None:
    one = SingleInstance(Home.under(tmp_path / "one"))
    two = SingleInstance(Home.under(tmp_path / "two"))
    assert one.claim()
    assert two.claim()
    one.release()
    two.release()


def test_killed_app_leaves_the_claim_free(qtbot: QtBot, tmp_path: Path) -> None:
    first = claim_elsewhere(tmp_path)
    assert first.stdout is not None
    assert first.stdout.readline().strip() == "True"
    first.kill()
    first.communicate(timeout=10)
    second = SingleInstance(Home.under(tmp_path))
    assert second.claim()
    second.release()


def test_later_claim_hands_its_invite_over(qtbot: QtBot, tmp_path: Path) -> None:
    first = SingleInstance(Home.under(tmp_path))
    assert first.claim()
    invite = "shoal://" + "a" * 8000
    with qtbot.waitSignal(first.opened, timeout=10_000) as opened:
        later = claim_elsewhere(tmp_path, invite)
    assert opened.args == [invite]
    assert later.communicate(timeout=10)[0].strip() == "False"
    first.release()
