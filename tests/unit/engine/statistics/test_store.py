import pytest

from engine.core.clock import SystemClock
from engine.localapi.statistics import Range
from engine.statistics import store
from engine.statistics.store import KEPT_S, STEP_S, Sample
from engine.storage.database import Database

NOON = 1_796_040_000.0  # a multiple of every step


@pytest.fixture
async def database(tmp_path):
    opened = await Database.open(tmp_path / "shoal.db", SystemClock())
    yield opened
    await opened.close()


def sample(after_s: float, *, seconds: float = 10.0, served: int = 5, **fields) -> Sample:
    return Sample(NOON + after_s, seconds, served, 1, 1000, 500, 1 << 30, **fields)


async def written(database: Database, *samples: Sample) -> None:
    await database.write(lambda connection: store.add(connection, list(samples)))


async def read(database: Database, span: Range, after_s: float):
    return await database.read(lambda connection: store.read(connection, span, NOON + after_s))


async def test_samples_add_up_in_the_steps_of_every_range(database):
    await written(database, *(sample(10 * n, gpu_c=50.0 + n) for n in range(60)))  # ten minutes
    hour = await read(database, Range.HOUR, 600)
    assert [s.unix_s - NOON for s in hour.samples] == [10 * n for n in range(60)]
    assert {s.tokens_served for s in hour.samples} == {5}
    day = await read(database, Range.DAY, 600)
    assert [(s.tokens_served, s.sent_bytes, s.seconds) for s in day.samples] == [
        (150, 30_000, 300.0)
    ] * 2
    assert day.samples[0].gpu_c == pytest.approx(64.5)  # the mean
    (week,) = (await read(database, Range.WEEK, 600)).samples
    assert (week.tokens_served, week.ram_bytes) == (300, 1 << 30)
    assert hour.today.tokens_served == hour.all.tokens_served == 300


async def test_means_are_of_what_was_seen(database):
    await written(
        database,
        sample(0, seconds=4.0, gpu_busy_share=1.0),
        sample(5, seconds=1.0, gpu_busy_share=0.0),
        sample(6, seconds=5.0),  # nobody could tell
    )
    (step,) = (await read(database, Range.HOUR, 10)).samples
    assert step.gpu_busy_share == pytest.approx(0.8)
    assert step.gpu_memory_bytes is None
    assert step.seconds == 10.0


async def test_what_is_older_than_its_range_is_forgotten_but_counts_in_all(database):
    for day in range(9):
        await written(database, sample(86400 * day))
    for span in Range:
        now = await read(database, span, 86400 * 8 + 5)
        assert len(now.samples) == {Range.HOUR: 1, Range.DAY: 2, Range.WEEK: 8}[span]
    assert now.all.tokens_served == 45
    assert now.today.tokens_served == 5

    def count(connection):
        return connection.execute("SELECT COUNT(*) FROM statistics_steps").fetchone()[0]

    assert await database.read(count) == 1 + 2 + 8


def test_a_plot_has_a_few_hundred_points():
    assert {span: KEPT_S[span] // STEP_S[span] for span in Range} == {
        Range.HOUR: 360,
        Range.DAY: 288,
        Range.WEEK: 336,
    }
