"""A start alters an Iceberg or a Delta table: once, behind the fence, and without a row more or less."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.errors import FencedError, UnavailableError
from airflow_provider_sinks.core.evolution import Compatible, Incompatible, NeedsMigration
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.testing.connector_contract import FIRST, SECOND
from airflow_provider_sinks.testing.played_start import SOURCE, WRITERS, PlayedStart, rows_of
from tests.contract.delta_harness import DeltaHarness
from tests.contract.evolving_start import EvolvingStart
from tests.contract.iceberg_harness import IcebergHarness

Lake = DeltaHarness | IcebergHarness
_NESTED = {"type": "array", "elementType": "string", "containsNull": True}
_FIELDS = {"part": "integer", "at": "long", "what": "string", "moment": "timestamp", "tags": _NESTED}


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """A sink that has committed an epoch, and may have its table altered from now on."""
    if request.param == "delta":
        made: Lake = DeltaHarness(tmp_path)
    else:
        server: Postgres = request.getfixturevalue("postgres")
        made = IcebergHarness(server, tmp_path / uuid.uuid4().hex)
    PlayedStart(made).start().epoch(1, FIRST)
    made._target = {**made._target, "on_schema_change": "add_columns"}
    yield made
    _close(made)


def _close(lake: Lake) -> None:
    for left in lake.made:
        left.close()
    if isinstance(lake, IcebergHarness):
        lake.close()


def _output(**more: Any) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": kind} for name, kind in {**_FIELDS, **more}.items()]}


def announcement_of(start: PlayedStart, epoch: int) -> ProgressRecord:
    """Return the record of a start behind the first epoch."""
    ends = {partition: FIRST[partition].stop for partition in FIRST}
    return start.record(epoch, ends, ends, writers=WRITERS)


def _columns(lake: Lake) -> list[str]:
    return [field.name for field in lake.table().schema().fields]


def _read(lake: Lake) -> list[dict[str, Any]]:
    if isinstance(lake, DeltaHarness):
        return lake.rows()
    found: list[dict[str, Any]] = lake.table().scan().to_arrow().to_pylist()
    return found


def test_a_table_is_altered_once_and_rows_before_have_null(lake: Lake) -> None:
    start = EvolvingStart(lake).begun()
    migration, record = start.migration(_output()), announcement_of(start, 1)

    for _ in range(2):
        start.evolvable().apply(migration.steps, record)

    assert _columns(lake) == [*_FIELDS]
    assert start.evolvable().diff(_output()) == Compatible()
    assert start.connector.progress().in_force == record
    assert lake.visible() == rows_of(FIRST)
    assert {(row["moment"], row["tags"] and tuple(row["tags"])) for row in _read(lake)} == {(None, None)}
    assert EvolvingStart(lake).begun().connector.observe(SOURCE).data.unfit is None


def test_a_table_that_was_altered_before_the_announcement_is_written_as_it_is_then(lake: Lake) -> None:
    start = EvolvingStart(lake).begun()
    output: Any = SimpleNamespace(schema=SimpleNamespace(jsonValue=_output))
    connector: Any = start.connector
    connector.expect(output)
    _add(lake, start.migration(_output(moment="string")))

    connector.announce(announcement_of(start, 1))

    assert "moment" in str(connector._known_layout())


def test_a_start_that_is_overtaken_alters_nothing(lake: Lake) -> None:
    start = EvolvingStart(lake).begun()
    steps, record = start.migration(_output()).steps, announcement_of(start, 1)
    EvolvingStart(lake).begun()

    with pytest.raises(FencedError):
        start.evolvable().apply(steps, record)
    assert _columns(lake) == ["part", "at", "what"]


def test_an_older_run_commits_nothing_behind_the_alteration(lake: Lake) -> None:
    older = PlayedStart(lake).start()
    start = EvolvingStart(lake).begun()
    start.evolvable().apply(start.migration(_output()).steps, announcement_of(start, 1))

    with pytest.raises(FencedError):
        older.epoch(2, SECOND)
    assert lake.visible() == rows_of(FIRST)


def test_a_launch_that_never_hears_of_its_alteration_is_followed_by_one_that_has_nothing_to_do(
    lake: Lake,
) -> None:
    start = EvolvingStart(lake).begun()
    steps, record = start.migration(_output()).steps, announcement_of(start, 1)
    with lake.losing_answers(), pytest.raises((InDoubtError, UnavailableError)):
        start.evolvable().apply(steps, record)

    assert EvolvingStart(lake).begun().evolvable().diff(_output()) == Compatible()
    assert _columns(lake) == [*_FIELDS]
    assert lake.visible() == rows_of(FIRST)


def test_a_column_that_somebody_else_has_added_meanwhile_is_compared_anew(lake: Lake) -> None:
    start, other = EvolvingStart(lake).begun(), {"moment": "string"}
    steps, record = start.migration(_output()).steps, announcement_of(start, 1)
    between = EvolvingStart(lake)
    _add(lake, between.migration(_output(**other)))

    with pytest.raises(UnavailableError, match="was altered by somebody else meanwhile"):
        start.evolvable().apply(steps, record)


def _add(lake: Lake, migration: NeedsMigration) -> None:
    """Add one column as any other program does."""
    (step,) = [step for step in migration.steps if step.name == "moment"]
    if isinstance(lake, DeltaHarness):
        from deltalake import Field
        from deltalake.schema import PrimitiveType

        lake.table().alter.add_columns([Field(step.name, PrimitiveType("string"))])
        return
    from pyiceberg.types import StringType

    with lake.table().update_schema() as update:
        update.add_column(step.name, StringType())


def test_iceberg_is_looked_at_with_all_partitionings_that_it_had(tmp_path: Path, postgres: Postgres) -> None:
    lake = IcebergHarness(postgres, tmp_path / "parted")
    PlayedStart(lake).start().epoch(1, FIRST)
    lake._target = {"on_schema_change": "add_columns"}
    with lake.table().update_spec() as update:
        update.add_field("part", "bucket[4]", "moment")
    with lake.table().update_spec() as update:
        update.remove_field("moment")

    found = EvolvingStart(lake).begun().evolvable().diff(_output())

    assert isinstance(found, Incompatible)
    assert [problem.where for problem in found.problems] == ["column 'moment'"]
    assert "of now or of before" in found.problems[0].what
    _close(lake)


def test_iceberg_reads_older_files_by_the_wider_type(tmp_path: Path, postgres: Postgres) -> None:
    lake = IcebergHarness(postgres, tmp_path / "wide")
    PlayedStart(lake).start().epoch(1, FIRST)
    lake._target = {"on_schema_change": "widen"}
    start = EvolvingStart(lake).begun()
    start.evolvable().apply(start.migration(_output(part="long")).steps, announcement_of(start, 1))

    assert str(lake.table().schema().find_type("part")) == "long"
    assert lake.visible() == rows_of(FIRST)
    _close(lake)
