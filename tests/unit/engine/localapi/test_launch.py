import pytest

from engine.localapi.launch import EngineFailed, start_engine
from engine.localapi.running import Home


def test_an_engine_that_cannot_start_tells_why_in_its_own_words(tmp_path):
    process = start_engine(["--port", "99999"], Home.under(tmp_path))
    with pytest.raises(EngineFailed, match=r"^The setting api\.port is wrong: .*65535\.$"):
        process.wait_ready(60)
    assert process.process.returncode == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--nonsense"], "^unrecognized arguments: --nonsense$"),
        (["--stages", "0"], "^argument --stages: '0' is not a whole number above zero$"),
    ],
)
def test_wrong_arguments_are_told_as_such(tmp_path, words, told):
    process = start_engine(words, Home.under(tmp_path))
    with pytest.raises(EngineFailed, match=told):
        process.wait_ready(60)
    assert process.process.returncode == 2


def test_an_engine_that_takes_too_long_can_be_ended(tmp_path):
    process = start_engine([], Home.under(tmp_path))
    with pytest.raises(EngineFailed, match="did not answer within 0 s"):
        process.wait_ready(0.01)
    process.process.terminate()
    process.end(20)
    assert process.process.poll() is not None


def test_a_home_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "state").write_text("a file where a folder should be")
    with pytest.raises(EngineFailed, match="can be written"):
        start_engine([], Home.under(tmp_path))
