"""What a start into an Iceberg or a Delta table will not guess about: broken, refused with a hint, mended."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from psycopg import sql

from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local.object_store import BUCKET, Keys, ObjectStore, delta_extra
from tests.live.lake_spark import LakeSpark
from tests.live.stage import KeyValue, Sink, Stage

_FIRST: list[KeyValue] = [("k", '{"id": 1, "userid": "ann"}'), ("k", '{"id": 2, "userid": "bob"}')]
_SECOND: KeyValue = ("k", '{"id": 3, "userid": "eve"}')
_CREATE = "CREATE TABLE {t} (id int, userid string) USING "


@dataclass
class Table:
    """A sink that has written two rows, and its table; one more row waits in its source.

    :param spark: that of its format.
    :param name: how it calls the table.
    :param folder: of a Delta table.
    """

    stage: Stage
    spark: LakeSpark
    sink: Sink
    name: str
    folder: Path
    undone: list[Callable[[], None]] = field(default_factory=list)

    def ids(self) -> list[object]:
        return [row[0] for row in self.spark.sql("SELECT id FROM {t} ORDER BY 1", self.name)]

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement, self.name)

    def connect(self, conn_id: str, options: ConnectionOptions) -> None:
        """Let a connection of the sink stand for something else, until that is undone."""
        before = self.sink.connections
        self.sink.connections = ResolvedConnections({**before.options, conn_id: options})
        self.undone.append(lambda: setattr(self.sink, "connections", before))

    def undo(self) -> None:
        while self.undone:
            self.undone.pop()()


def _removed(table: Table) -> None:
    kept = table.folder.rename(table.folder.with_name("kept"))

    def bring_back() -> None:
        shutil.rmtree(table.folder, ignore_errors=True)
        kept.rename(table.folder)

    table.undone.append(bring_back)


def _another_folder(table: Table) -> None:
    _removed(table)
    table.do(f"{_CREATE}delta")


def _another_table(table: Table) -> None:
    newest = "SELECT file FROM {t}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    [[file]] = table.spark.sql(newest, table.name)
    table.do("DROP TABLE {t}", f"{_CREATE}iceberg")
    table.undone.append(
        lambda: table.do("DROP TABLE {t}", f"CALL lake.system.register_table('{{t}}', '{file}')")
    )


def _of_another_name(table: Table) -> None:
    lake = table.stage.lake
    table.connect("lake", replace(lake, parameters={**lake.parameters, "name": "moved"}))


def _without_right(table: Table) -> None:
    lake, login = table.stage.lake, f"reader_{uuid.uuid4().hex[:8]}"
    with table.stage.postgres.connect() as connection:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'reader'").format(sql.Identifier(login))
        connection.execute(create)
        grant = sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(sql.Identifier(login))
        connection.execute(grant)
    given = {**lake.parameters, "login": login, "password": "reader"}
    table.connect("lake", replace(lake, parameters=given))


@dataclass(frozen=True)
class Disruption:
    """Something that must stop a start.

    :param breaks: does the harm.
    :param primary: what the refusal must begin with.
    :param told: what must stand in it, in its detail or its hint.
    :param mends: what mends it; else what was done is undone.
    """

    kind: str
    breaks: Callable[[Table], None]
    primary: str
    told: str
    code: ExitCode = ExitCode.REFUSED
    mends: Callable[[Table], None] = Table.undo


DISRUPTIONS = {
    "a Delta table is removed": Disruption("delta", _removed, "progress of sink", "start_over-"),
    "another Delta table stands there": Disruption(
        "delta", _another_folder, "progress of sink", "start_over-"
    ),
    "a column of an Iceberg table has another name": Disruption(
        "iceberg",
        lambda table: table.do("ALTER TABLE {t} RENAME COLUMN userid TO who"),
        "table ",
        "'userid': is not in the table",
        ExitCode.CONFIGURATION,
        lambda table: table.do("ALTER TABLE {t} RENAME COLUMN who TO userid"),
    ),
    "another Iceberg table has the name": Disruption(
        "iceberg", _another_table, "progress of sink", "start_over-"
    ),
    "the connection leads to another catalog": Disruption(
        "iceberg", _of_another_name, "sink ", "has written to another database"
    ),
    "the login may not write the catalog": Disruption(
        "iceberg", _without_right, "sink ", "GRANT UPDATE", ExitCode.UNAVAILABLE
    ),
}


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Disruption:
    found: Disruption = request.param
    return found


@pytest.fixture
def table(stage: Stage, case: Disruption, request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    name = f"shop_{uuid.uuid4().hex[:8]}.orders"
    if case.kind == "delta":
        spark, called = request.getfixturevalue("delta_reader"), f"delta.`{tmp_path / 't'}`"
        target: dict[str, object] = {"path": str(tmp_path / "t"), "create": True}
    else:
        spark, called = request.getfixturevalue("lake_spark"), name
        target = {"catalog": "lake", "table": name, "create": True}
    source = stage.source("refused", {0: _FIRST})
    sink = stage.sink("lake", source, from_={"schema": "id int, userid string"}, target={case.kind: target})
    sink.run()
    stage.produce(source, [(0, *_SECOND)])
    return Table(stage, spark, sink, called, tmp_path / "t")


_CASES = [pytest.param(case, id=name) for name, case in DISRUPTIONS.items()]


@pytest.mark.parametrize("case", _CASES, indirect=True)
def test_a_start_is_refused_writes_nothing_and_goes_on_once_mended(case: Disruption, table: Table) -> None:
    case.breaks(table)

    error = table.sink.fail(case.code).error

    assert error is not None
    assert error.primary.startswith(case.primary)
    assert case.told in f"{error.primary}\n{error.detail}\n{error.hint}"
    assert error.hint
    case.mends(table)
    table.sink.run()
    assert table.ids() == [1, 2, 3]


def test_keys_that_a_store_refuses_are_told_as_that(stage: Stage, object_store: ObjectStore) -> None:
    source = stage.source("keys", {0: _FIRST})
    path = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    target = {"delta": {"path": path, "connection": "store", "create": True}}
    sink = stage.sink("lake", source, from_={"schema": "id int, userid string"}, target=target)
    given = delta_extra(object_store)
    right = ResolvedConnections({**sink.connections.options, "store": DeltaOptions("store", given)})
    wrong = {**given, "aws_secret_access_key": Keys.new().secret}
    sink.connections = ResolvedConnections({**right.options, "store": DeltaOptions("store", wrong)})

    error = sink.fail(ExitCode.CONFIGURATION).error

    assert error is not None
    assert error.hint == "Correct the keys of the Airflow connection."
    assert wrong["aws_secret_access_key"] not in str(error)
    sink.connections = right
    assert sink.run().rows_total == 2
