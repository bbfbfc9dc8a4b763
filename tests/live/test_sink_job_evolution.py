"""A sink whose query gives other columns than before: refused, altered once, and killed in between."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit

import pytest
from deltalake import DeltaTable
from psycopg import sql

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkState
from tests.faults.parts import Part
from tests.live.shared_driver import HostedLaunch
from tests.live.stage import KeyValue, Sink, Stage

_SCHEMA = "id bigint, userid string, price double"
_PARTITIONS = 2
_RECORDS = 300


def _record(number: int) -> KeyValue:
    return "k", f'{{"id": {number}, "userid": "user {number}", "price": {number}.5}}'


def _source(stage: Stage) -> str:
    """Make a topic whose records are numbered; each partition has every second of them."""
    held = {p: [_record(n) for n in range(p, _RECORDS, _PARTITIONS)] for p in range(_PARTITIONS)}
    return stage.source("evolution", held)


def _more(stage: Stage, source: str) -> None:
    """Append as many again."""
    stage.produce(source, ((n % _PARTITIONS, *_record(n)) for n in range(_RECORDS, 2 * _RECORDS)))


def _sink(stage: Stage, schema: str, source: str, **target: object) -> Sink:
    table = {"connection": "pg", "table": f"{schema}.orders", "create": True, **target}
    select = ["CAST(id AS int) AS id", "userid"]
    return stage.sink(
        "evolution", source, from_={"schema": _SCHEMA}, target={"postgres": table}, select=select
    )


def _evolve(sink: Sink, policy: str) -> None:
    """Let the sink give a wider id and a new column."""
    target = sink.spec["target"]
    assert isinstance(target, dict)
    options = {**target["postgres"], "on_schema_change": policy}
    sink.spec = {**sink.spec, "select": ["id", "userid", "price"], "target": {"postgres": options}}


def _query(stage: Stage, schema: str, text: LiteralString) -> list[tuple[object, ...]]:
    """Ask Postgres; ``{t}`` in the text is the table."""
    name = sql.Identifier(schema, "orders")
    with stage.postgres.connect() as connection:
        quoted = sql.Literal(name.as_string(connection))
        return connection.execute(sql.SQL(text).format(t=name, q=quoted)).fetchall()


def _columns(stage: Stage, schema: str) -> list[tuple[object, ...]]:
    return _query(
        stage,
        schema,
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = {q}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    )


_BEFORE = [("id", "integer"), ("userid", "text")]
_AFTER = [("id", "bigint"), ("userid", "text"), ("price", "double precision")]
_ALTERED_SECONDS = 120.0
_CLOSE_SECONDS = 0.003


def _log(sink: Sink) -> str:
    launch = sink.launches[-1]
    assert isinstance(launch, HostedLaunch)
    return launch.log


def test_other_columns_are_refused_then_added_once_as_the_option_says(stage: Stage, schema: str) -> None:
    source = _source(stage)
    sink = _sink(stage, schema, source)
    sink.run()
    _more(stage, source)

    _evolve(sink, "refuse")
    refused = sink.fail(ExitCode.CONFIGURATION).error
    assert refused is not None
    assert "column 'price': is not in the table" in refused.detail
    assert refused.hint == "With target.postgres.on_schema_change: add_columns a start adds price."
    assert _columns(stage, schema) == _BEFORE

    _evolve(sink, "widen")
    assert sink.run().rows_total == 2 * _RECORDS
    sink.run()
    assert _columns(stage, schema) == _AFTER
    for statement in ('ADD COLUMN "price" double precision NULL', 'ALTER COLUMN "id" TYPE bigint'):
        planned = f'action: alter data table "{schema}.orders"'
        assert [planned in line for line in _log(sink).splitlines() if statement in line].count(True) == 1
    found = _query(
        stage, schema, "SELECT price IS NULL, count(*), count(DISTINCT id) FROM {t} GROUP BY 1 ORDER BY 1"
    )
    assert found == [(False, _RECORDS, _RECORDS), (True, _RECORDS, _RECORDS)]


def test_add_columns_widens_nothing(stage: Stage, schema: str) -> None:
    sink = _sink(stage, schema, _source(stage))
    sink.run()

    _evolve(sink, "add_columns")
    sink.run()

    assert _columns(stage, schema) == [("id", "integer"), *_AFTER[1:]]


@pytest.mark.parametrize(
    ("policy", "code"), [("add_columns", ExitCode.CONFIGURATION), ("widen", ExitCode.FAILED)]
)
def test_a_lookup_that_grows_under_a_running_sink_is_followed_by_the_next_launch(
    stage: Stage, schema: str, policy: str, code: ExitCode
) -> None:
    with stage.postgres.connect() as connection:
        users = sql.Identifier(schema, "users")
        connection.execute(sql.SQL("CREATE TABLE {} (userid text, level int)").format(users))
        connection.execute(sql.SQL("INSERT INTO {} VALUES ('user 0', 1)").format(users))
    source = stage.source("grows", {0: [_record(0)]})
    target = {"connection": "pg", "table": f"{schema}.orders", "create": True, "on_schema_change": policy}
    lookup = {"postgres": {"connection": "pg", "table": f"{schema}.users", "refresh": "1s"}}
    sink = stage.sink(
        "grows",
        source,
        from_={"schema": _SCHEMA},
        query="SELECT s.id, u.* FROM source s LEFT JOIN users u USING (userid)",
        lookups={"users": lookup},
        target={"postgres": target},
        trigger={"every": "100ms"},
    )
    launch = sink.launch()
    launch.wait_until(lambda: launch.has_passed({0: 1}))
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN city text DEFAULT 'Oslo'").format(users))
    time.sleep(1.1)
    stage.produce(source, [(0, *_record(0))])
    launch.wait_until(lambda: launch.has_passed({0: 2}))
    launch.wait_until(lambda: f"lookup table \"{schema}.users\" has got column 'city'" in launch.log)
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("ALTER TABLE {} ALTER COLUMN level TYPE bigint").format(users))
    time.sleep(1.1)
    stage.produce(source, [(0, *_record(0))])
    assert launch.wait() == code

    again = sink.launch()
    again.wait_until(lambda: again.has_passed({0: 3}))
    assert again.stop() == ExitCode.OK
    level = "bigint" if policy == "widen" else "integer"
    assert _columns(stage, schema)[1:] == [("userid", "text"), ("level", level), ("city", "text")]
    assert _query(stage, schema, "SELECT city, count(*) FROM {t} GROUP BY 1 ORDER BY 1") == [
        ("Oslo", 1),
        (None, 2),
    ]


Rows = list[dict[str, object]]


def _lake(
    stage: Stage, kind: str
) -> tuple[dict[str, object], Callable[[], Rows], Callable[[], Iterable[Path]]]:
    """Return the target of a table of its own, what reads its rows as any other program does, and what
    finds the files that say of which columns it is."""
    if kind == "delta":
        path = stage.folder.parent / "table"
        return (
            {"path": str(path)},
            lambda: DeltaTable(path).to_pyarrow_table().to_pylist(),
            lambda: path.glob("_delta_log/*.json"),
        )
    name = f"shop_{uuid.uuid4().hex[:8]}.orders"

    def read() -> Rows:
        with closing(TableCatalog(stage.lake)) as catalog:
            found: Rows = catalog.load(name).scan().to_arrow().to_pylist()
            return found

    folder = Path(urlsplit(stage.lake.parameters["warehouse"]).path)
    return (
        {"catalog": "lake", "table": name},
        read,
        lambda: folder.glob(f"{name.replace('.', '*/')}/metadata/*.json"),
    )


@pytest.mark.parametrize(("kind", "policy"), [("delta", "add_columns"), ("iceberg", "widen")])
def test_a_table_of_files_gets_a_column_and_every_row_once(stage: Stage, kind: str, policy: str) -> None:
    source, (table, read, _) = _source(stage), _lake(stage, kind)
    one = "id" if kind == "delta" else "CAST(id AS int) AS id"
    target = {kind: {**table, "create": True}}
    sink = stage.sink(kind, source, from_={"schema": _SCHEMA}, target=target, select=[one, "userid"])
    sink.run()
    _more(stage, source)

    sink.spec = {**sink.spec, "select": ["id", "userid", "price"]}
    refused = sink.fail(ExitCode.CONFIGURATION).error
    assert refused is not None
    assert f"With target.{kind}.on_schema_change: {policy} a start adds price" in refused.hint

    sink.spec = {**sink.spec, "target": {kind: {**target[kind], "on_schema_change": policy}}}
    assert sink.run().rows_total == 2 * _RECORDS
    rows = sorted((row["id"], row["price"]) for row in read())
    assert rows == [(n, None if n < _RECORDS else n + 0.5) for n in range(2 * _RECORDS)]


def _postgres_rows(stage: Stage, schema: str) -> Rows:
    found: list[tuple[Any, ...]] = _query(stage, schema, "SELECT to_json(t) FROM {t} AS t")
    return [row for (row,) in found]


@dataclass(frozen=True)
class _Altered:
    """A table that a sink alters.

    :param before: the columns that the query gives first.
    :param has_begun: whether its columns are others already, or are about to be.
    """

    kind: str
    options: dict[str, object]
    before: list[str]
    policy: str
    read: Callable[[], Rows]
    has_begun: Callable[[], bool]

    def target(self, policy: str = "refuse") -> dict[str, object]:
        return {self.kind: {**self.options, "create": True, "on_schema_change": policy}}


def _altered(stage: Stage, schema: str, kind: str) -> _Altered:
    narrow = ["CAST(id AS int) AS id", "userid"]
    if kind == "postgres":
        return _Altered(
            kind,
            {"connection": "pg", "table": f"{schema}.orders"},
            narrow,
            "widen",
            lambda: _postgres_rows(stage, schema),
            lambda: _columns(stage, schema) == _AFTER,
        )
    options, read, files = _lake(stage, kind)
    before, policy = (["id", "userid"], "add_columns") if kind == "delta" else (narrow, "widen")
    return _Altered(kind, options, before, policy, read, lambda: any(map(_has_price, files())))


def _has_price(file: Path) -> bool:
    """Whether a file names the new column, be it written only in part."""
    with suppress(FileNotFoundError):
        return '"price' in file.read_text(errors="replace").replace("\\", "")
    return False


def _wait_closely(condition: Callable[[], bool]) -> None:
    """Wait, and look so often that what comes behind is not there yet."""
    deadline = time.monotonic() + _ALTERED_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "nothing was altered"
        time.sleep(_CLOSE_SECONDS)


@pytest.mark.parametrize("kind", ["postgres", "delta", "iceberg"])
def test_a_launch_that_is_killed_behind_the_alteration_goes_on_exactly(
    stage: Stage, schema: str, kind: str
) -> None:
    source, table = _source(stage), _altered(stage, schema, kind)
    sink = stage.sink(kind, source, from_={"schema": _SCHEMA}, target=table.target(), select=table.before)
    sink.run()
    _more(stage, source)
    sink.spec = {**sink.spec, "select": ["id", "userid", "price"], "target": table.target(table.policy)}

    driver = sink.start()
    driver.wait_until(lambda: driver.in_state(SinkState.STARTING))
    _wait_closely(table.has_begun)
    driver.kill(Part.DRIVER)
    assert len(table.read()) == _RECORDS

    assert sink.run().rows_total == 2 * _RECORDS
    assert table.has_begun()
    rows = sorted((row["id"], row["price"]) for row in table.read())
    assert rows == [(n, None if n < _RECORDS else n + 0.5) for n in range(2 * _RECORDS)]
