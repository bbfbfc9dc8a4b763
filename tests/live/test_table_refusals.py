"""What a start into a table will not guess about: broken, refused with a hint, mended, running again."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from psycopg import sql

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.stage import KeyValue, Sink, Stage

_FIRST: list[KeyValue] = [("k", '{"id": 1, "userid": "ann"}'), ("k", '{"id": 2, "userid": "bob"}')]
_SECOND: KeyValue = ("k", '{"id": 3, "userid": "eve"}')


@dataclass
class Table:
    """A sink that has written two epochs, of two rows and of one, and the schema of its tables.

    :param saved: the name of a table that holds the progress as it was after the first epoch.
    """

    stage: Stage
    schema: str
    sink: Sink
    saved: str = "saved"

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements, and return the rows of the last one."""
        with self.stage.postgres.connect() as connection:
            for statement in statements:
                done = connection.execute(sql.SQL(statement).format(s=sql.Identifier(self.schema)))
            return done.fetchall() if done.description else []

    def ids(self) -> list[object]:
        """Return what stands in the table."""
        return [row[0] for row in self.sql("SELECT id FROM {s}.orders ORDER BY 1")]

    def restore(self) -> None:
        """Put the progress back to what it was after the first epoch, as a restored backup does."""
        self.sql("TRUNCATE {s}._sinks_progress", "INSERT INTO {s}._sinks_progress SELECT * FROM {s}.saved")


@dataclass(frozen=True)
class Disruption:
    """Something that must stop a start.

    :param breaks: the statements that do the harm.
    :param primary: what the refusal must begin with; ``{...}`` are the sink's names.
    :param hint: what must help, in part; it stands beside what is wrong, or in the hint.
    :param code: how the job ends.
    :param mends: the statements that mend it; none where a person must choose a way on.
    """

    breaks: tuple[str, ...]
    primary: str
    hint: str
    code: ExitCode = ExitCode.REFUSED
    mends: tuple[str, ...] = ()


DISRUPTIONS = {
    "progress table dropped, but Airflow remembers": Disruption(
        ("DROP TABLE {s}._sinks_progress",),
        'progress of sink "{name}" is lost',
        'accept="resume_from_witness-',
    ),
    "the sink's rows of progress deleted, but Airflow remembers": Disruption(
        ("DELETE FROM {s}._sinks_progress",),
        'progress of sink "{name}" is lost',
        'accept="resume_from_witness-',
    ),
    "progress restored from a backup": Disruption(
        ("TRUNCATE {s}._sinks_progress", "INSERT INTO {s}._sinks_progress SELECT * FROM {s}.saved"),
        'progress of sink "{name}" was rolled back',
        'accept="resume_from_witness-',
    ),
    "data table made anew": Disruption(
        ("DROP TABLE {s}.orders", "CREATE TABLE {s}.orders (id int, userid text)"),
        'data table "{table}" is not the one that sink "{name}" has written to',
        'accept="adopt-',
    ),
    "a column dropped": Disruption(
        ("ALTER TABLE {s}.orders RENAME COLUMN userid TO person",),
        'table "{table}" does not fit the query',
        "userid",
        ExitCode.CONFIGURATION,
        ("ALTER TABLE {s}.orders RENAME COLUMN person TO userid",),
    ),
    "the table becomes unlogged": Disruption(
        ("ALTER TABLE {s}.orders SET UNLOGGED",),
        'table "{table}" does not fit the query',
        "SET LOGGED",
        ExitCode.CONFIGURATION,
        ("ALTER TABLE {s}.orders SET LOGGED",),
    ),
}


@pytest.fixture
def table(stage: Stage, schema: str) -> Table:
    """A sink into a table that has run twice, with its progress after the first run kept aside."""
    source = stage.source("refused", {0: _FIRST})
    target = {"postgres": {"connection": "pg", "table": f"{schema}.orders", "create": True}}
    sink = stage.sink("refused", source, from_={"schema": "id int, userid string"}, target=target)
    made = Table(stage, schema, sink)
    sink.run()
    made.sql("CREATE TABLE {s}.saved AS TABLE {s}._sinks_progress")
    stage.produce(source, [(0, *_SECOND)])
    sink.run()
    return made


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in DISRUPTIONS.items()])
def test_start_is_refused_writes_nothing_and_goes_on_once_mended(case: Disruption, table: Table) -> None:
    table.sql(*case.breaks)
    names = {"name": table.sink.parsed.name, "table": f"{table.schema}.orders"}
    rows = table.ids()

    error = table.sink.fail(case.code).error

    assert error is not None
    assert error.primary.startswith(case.primary.format(**names))
    assert case.hint in error.detail + error.hint
    assert table.ids() == rows
    if case.mends:
        table.sql(*case.mends)
        table.stage.produce(table.sink.source, [(0, "k", '{"id": 4, "userid": "zoe"}')])
        assert table.sink.run().rows_total == 4
        assert table.ids() == [1, 2, 3, 4]


def test_rows_that_were_lost_with_their_records_are_written_once_from_the_records_on(table: Table) -> None:
    """As a failover to a replica that lags, or a backup of the whole database, takes both."""
    table.restore()
    table.sql("DELETE FROM {s}.orders WHERE id = 3")
    refused = table.sink.fail(ExitCode.REFUSED)

    status = table.sink.run(accept=table.sink.code(refused, "resume_from_records"))

    assert table.ids() == [1, 2, 3]
    assert (status.generation, status.rows) == (2, 1)


@pytest.mark.parametrize("harm", ["DROP TABLE {s}._sinks_progress", "restored"])
def test_lost_progress_resumes_from_the_witness_without_loss_or_repetition(table: Table, harm: str) -> None:
    table.restore() if harm == "restored" else table.sql(harm)
    table.stage.produce(table.sink.source, [(0, "k", '{"id": 4, "userid": "zoe"}')])
    refused = table.sink.fail(ExitCode.REFUSED)

    status = table.sink.run(accept=table.sink.code(refused, "resume_from_witness"))

    assert table.ids() == [1, 2, 3, 4]
    assert (status.generation, status.rows) == (2, 1)
