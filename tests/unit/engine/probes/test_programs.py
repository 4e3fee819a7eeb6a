import shutil
import subprocess

from engine.probes.programs import running


def test_a_program_is_found_by_its_name_as_the_person_wrote_it(tmp_path):
    game = tmp_path / "Shoal-Test-Game"
    shutil.copy(shutil.which("sleep"), game)
    wanted = ["shoal-test-game.EXE", "shoal-test-other"]
    assert running(wanted) == frozenset()
    with subprocess.Popen([game, "60"]) as process:
        assert running(wanted) == {"shoal-test-game.EXE"}
        process.kill()
    assert running(wanted) == frozenset()


def test_nobody_is_looked_for_without_names():
    assert running([]) == frozenset()
