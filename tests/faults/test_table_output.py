"""The reader of tables catches what it is there for: rows are written by hand, right and wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.postgres.spec import Mode, postgres_sink
from airflow_provider_sinks.core.progress.identity import Identities, Identity
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.postgres import Postgres
from tests.faults.buckets import BUCKET_ROWS
from tests.faults.feed import Feed, Row
from tests.faults.outcome import Outcome
from tests.faults.stories import IN_BUCKETS
from tests.faults.table_output import TableOutput
from tests.faults.table_watch import TableWatch
from tests.faults.watch import Look, fallen
from tests.faults.world import World

ROWS = BUCKET_ROWS * 2
TABLE = Identity("system", "table", "id", 1)
Write = Callable[[Sequence[Row]], None]


def record(rows_total: int) -> ProgressRecord:
    identities = Identities(TABLE, TABLE, TABLE)
    return ProgressRecord(1, "me", "run", 1, {0: 0}, {0: ROWS}, identities, rows_total=rows_total)


@dataclass
class Written:
    """A table that somebody writes who is no sink."""

    output: TableOutput
    feed: Feed
    insert: Write

    def judged(self) -> Outcome:
        return self.output.examine(self.feed)


@pytest.fixture
def written(world: World, postgres: Postgres, request: pytest.FixtureRequest) -> Iterator[Written]:
    mode: Mode = request.param
    feed = world.feed("by-hand", 1)
    feed.append(ROWS)
    key = {"key": ["key", "bucket"]} if mode is Mode.UPSERT else {}
    target = postgres_sink(
        world.sink("by-hand", feed, IN_BUCKETS, target={"mode": mode, **key}).parsed
    ).target
    output = TableOutput(postgres, target.postgres)
    table, progress = (
        sql.Identifier(*name.split(".")) for name in (target.postgres.table, target.postgres.progress_table)
    )
    replace = sql.SQL(
        " ON CONFLICT (key, bucket) DO UPDATE SET seq = EXCLUDED.seq, id = EXCLUDED.id" if key else ""
    )
    insert = sql.SQL("INSERT INTO {} (id, key, bucket, seq, version) VALUES (%s, %s, %s, %s, 1)").format(
        table
    )

    def write(rows: Sequence[Row]) -> None:
        values = [(row.id, row.key, row.seq // BUCKET_ROWS, row.seq) for row in rows]
        with postgres.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(insert + replace, values)

    with postgres.connect() as connection:
        connection.execute(sql.SQL("CREATE TABLE {} (writer text, record json)").format(progress))
        values = ["p0", record(ROWS).encode().decode()]
        connection.execute(sql.SQL("INSERT INTO {} VALUES (%s, %s)").format(progress), values)
    output.make()
    yield Written(output, feed, write)
    output.close()
    with postgres.connect() as connection:
        connection.execute(sql.SQL("DROP TABLE {}").format(progress))


BOTH = pytest.mark.parametrize("written", Mode, indirect=True)


@BOTH
def test_right_rows_have_nothing_wrong(written: Written) -> None:
    written.insert(written.feed.rows)

    verdict = written.judged().verdict

    assert verdict.wrong == ()


@BOTH
def test_a_row_that_is_written_twice_is_told(written: Written) -> None:
    written.insert(written.feed.rows)
    written.insert(written.feed.rows[-1:])

    assert written.judged().verdict.duplicates == (written.feed.rows[-1].id,)


@BOTH
def test_the_newest_row_of_a_key_that_is_missing_is_told(written: Written) -> None:
    written.insert(written.feed.rows[:-1])

    assert written.judged().verdict.missing == (written.feed.rows[-1].id,)


@BOTH
def test_an_older_row_behind_a_newer_one_of_its_key_is_told(written: Written) -> None:
    *first, older, _, _, _, newer = written.feed.rows
    written.insert([*first, newer, older])

    assert older.id in written.judged().verdict.out_of_order


def test_what_falls_or_goes_is_told() -> None:
    assert fallen({"a": 1, "b": 5, "c": 2}, {"a": 1, "b": 4}) == ["b: 5, then 4", "c: 2, then None"]


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (Look({}, rows=5, progress=[("p0", record(5)), ("driver", record(7))]), []),
        (Look({}, rows=5, progress=[("p0", record(4))]), ["5 rows are visible, and 4 are recorded"]),
        (Look({}, 2, rows=4, progress=[("p0", record(4))]), ["2 rows are visible twice"]),
    ],
)
def test_rows_without_their_record_and_rows_twice_are_told(look: Look, said: list[str]) -> None:
    assert list(look.torn()) == said


def test_a_watch_tells_the_step_back_between_two_looks(postgres: Postgres) -> None:
    watch = TableWatch(postgres, "public.rows", "public.progress", replaces=True)

    watch.take(Look({"a": 2}))
    watch.take(Look({"a": 1}))

    assert watch.fallen == ["a: 2, then 1"]
