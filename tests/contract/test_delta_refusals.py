"""What a Delta table demands that is not done, and what a storage refuses: told, and nothing is written."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError

from airflow_provider_sinks.connectors.delta import log
from airflow_provider_sinks.connectors.delta.options import NO_CONNECTION
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.registry import kind
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.decision.facts import Existence, Unfit
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.streaming import patience
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.testing.connector_contract import FIRST
from airflow_provider_sinks.testing.played_start import (
    SINK,
    SOURCE,
    PlayedStart,
    PlayedTask,
    begins,
    ends,
    rows_of,
)
from tests.contract.delta_harness import DeltaHarness

NEXT = {0: range(20, 25)}
COLUMNS: list[dict[str, Any]] = [
    {"name": "part", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "at", "type": "long", "nullable": True, "metadata": {}},
    {"name": "what", "type": "string", "nullable": True, "metadata": {}},
]


@pytest.fixture
def lake(tmp_path: Path) -> DeltaHarness:
    return DeltaHarness(tmp_path)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.01)


def made_by_others(
    lake: DeltaHarness,
    protocol: dict[str, Any] | None = None,
    properties: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """A table as other programs make it, with what delta-rs would not let us make."""
    columns = [*COLUMNS[:2], {**COLUMNS[2], "metadata": metadata or {}}]
    found = {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
        "configuration": properties or {},
        "createdTime": 0,
    }
    log = lake.path() / "_delta_log"
    log.mkdir(parents=True)
    entries = [
        {"commitInfo": {"timestamp": 0, "operation": "CREATE TABLE"}},
        {"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 4}},
        {"metaData": found},
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, entries)))


def unfit(lake: DeltaHarness) -> Unfit | None:
    found = lake.connector().observe(SOURCE).data
    assert found.existence is Existence.PRESENT
    return found.unfit


def features(*writer: str, reader: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(reader),
        "writerFeatures": list(writer),
    }


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (
            {"protocol": features("deletionVectors", reader=("deletionVectors",))},
            "has the feature deletionVectors",
        ),
        ({"protocol": features("rowTracking", "domainMetadata")}, "has the feature domainMetadata"),
        ({"protocol": features("inCommitTimestamp")}, "has the feature inCommitTimestamp"),
        ({"protocol": features("identityColumns")}, "has the feature identityColumns"),
        (
            {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
            "is of reader version 2 and writer version 5",
        ),
        (
            {"properties": {"delta.constraints.small": "at < size"}},
            "has a rule that is not checked: constraint small, at < size",
        ),
        (
            {"metadata": {"delta.generationExpression": "reflect('java.lang.System', 'getenv', 'HOME')"}},
            "has a rule that is not checked: generated column what, reflect(",
        ),
        (
            {"metadata": {"delta.generationExpression": "java_method('java.lang.System', 'gc')"}},
            "has a rule that is not checked: generated column what, java_method(",
        ),
        (
            {"metadata": {"delta.generationExpression": "(SELECT max(at) FROM source)"}},
            "has a rule that is not checked: generated column what, (SELECT",
        ),
        ({"metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}}, "has column what as varchar(3)"),
        ({"metadata": {"delta.identity.start": 1}}, "numbers rows in column what"),
        (
            {"metadata": {"delta.invariants": '{"expression": {"expression": "x"}}'}},
            "has a rule that is not checked: invariant of column what, x",
        ),
        (
            {"metadata": {"delta.invariants": "at > 5"}},
            "has a rule that is not checked: invariant of column what, {at > 5}",
        ),
        (
            {"metadata": {"delta.invariants": "[]"}},
            "has a rule that is not checked: invariant of column what, {[]}",
        ),
        (
            {"properties": {"delta.setTransactionRetentionDuration": "interval 7 days"}},
            "forgets transactions after interval 7 days",
        ),
    ],
)
def test_what_is_not_written_makes_a_table_unfit(
    lake: DeltaHarness, table: dict[str, Any], what: str
) -> None:
    made_by_others(lake, **table)
    found = unfit(lake)
    assert found is not None
    assert found.what.startswith(what)
    assert found.why
    assert found.repair


def test_a_table_of_others_that_demands_nothing_is_written(lake: DeltaHarness) -> None:
    made_by_others(lake, properties={"delta.enableChangeDataFeed": "false", "delta.appendOnly": "true"})
    assert unfit(lake) is None
    PlayedStart(lake).start().epoch(1, FIRST)
    assert lake.visible() == rows_of(FIRST)


_RULED: dict[str, dict[str, Any]] = {
    "a constraint": {"properties": {"delta.constraints.small": "at < 5"}},
    "a generated column": {"metadata": {"delta.generationExpression": "CAST(at AS STRING)"}},
    "an invariant": {"metadata": {"delta.invariants": '{"expression": {"expression": "what > \'a\'"}}'}},
}


@pytest.mark.parametrize("table", _RULED.values(), ids=list(_RULED))
def test_what_spark_checks_is_written_where_rows_are_appended(
    lake: DeltaHarness, tmp_path: Path, table: dict[str, Any]
) -> None:
    made_by_others(lake, **table)
    assert unfit(lake) is None
    replaces = DeltaHarness(tmp_path, mode="upsert", key=["part", "at"])
    found = replaces.connector().observe(SOURCE).data.unfit
    assert found is not None
    assert found.what.startswith("has a rule that is not checked: ")
    assert found.why == "Rules are checked for rows that are appended alone."


def test_rows_of_a_table_that_is_for_appends_alone_are_not_replaced(tmp_path: Path) -> None:
    lake = DeltaHarness(tmp_path, mode="upsert", key=["part", "at"])
    made_by_others(lake, properties={"delta.appendOnly": "true"})
    found = unfit(lake)
    assert found is not None
    assert found.what == "takes rows only, and none that replace others"


def test_a_table_for_letters_that_has_other_columns_is_unfit(lake: DeltaHarness) -> None:
    PlayedStart(lake).start()
    schema = lake.table().schema()
    DeltaTable.create(lake.path(suffix="_dead"), schema, mode="overwrite")
    found = lake.connector().observe(SOURCE).dead_letter
    assert found is not None
    assert found.unfit is not None
    assert (found.unfit.what, found.unfit.why) == ("has at as bigint", "Dead letters have at as timestamp.")


# ---- a storage that refuses


def commit(start: PlayedStart) -> bool:
    task = PlayedTask(start, 2, 0, NEXT).go_on()
    assert task.token
    record = start.record(2, begins(NEXT), ends(NEXT), rows=5, rows_total=start.rows_total + 5)
    return commit_staged(start.connector, record, [task.token], Patience(timedelta(seconds=0.2)))


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (OSError("Generic S3 error: 403 Forbidden: AccessDenied"), ConfigurationError),
        (OSError("Generic S3 error: <Code>InvalidAccessKeyId</Code>"), AuthenticationError),
        (PermissionError(13, "Permission denied"), ConfigurationError),
        (DeltaProtocolError("unsupported writer feature"), ConfigurationError),
        (OSError(28, "No space left on device"), UnavailableError),
        (CommitFailedError("403 Forbidden"), ConfigurationError),
    ],
    ids=str,
)
def test_a_commit_that_is_refused_is_no_doubt_and_what_was_staged_is_given_up(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: type[SinkError]
) -> None:
    start = PlayedStart(lake).start()
    start.epoch(1, FIRST)
    files = sorted(lake.folder.rglob("sinks-*.parquet"))
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", _raising(raised))
        with pytest.raises(told) as failed:
            commit(start)
    assert str(raised.args[-1]) in failed.value.detail
    assert sorted(lake.folder.rglob("sinks-*.parquet")) == files
    assert commit(start)
    assert lake.visible() == rows_of(FIRST, NEXT)


@pytest.mark.parametrize(
    "word", ["forbidden", "403", "unauthorized", "quota", "AccessDenied", "ExpiredToken"]
)
def test_a_word_in_a_path_is_no_answer_of_the_storage(word: str) -> None:
    path = f"/lake/{word}/orders"

    def lose() -> None:
        raise OSError(f"error sending request for url (https://store{path}/_delta_log/1.json): timed out")

    with pytest.raises(InDoubtError):
        log.commit(NO_CONNECTION, path, lose)


def test_a_table_for_letters_with_a_partition_that_reads_as_something_else_is_unfit(
    lake: DeltaHarness,
) -> None:
    PlayedStart(lake).start()
    path = lake.path(suffix="_dead")
    schema = lake.table(suffix="_dead").schema()
    DeltaTable.create(path, schema, mode="overwrite", partition_by=["value"])
    found = lake.connector().observe(SOURCE).dead_letter
    assert found is not None
    assert found.unfit is not None
    assert found.unfit.what == "is partitioned by value"


def test_a_storage_that_does_not_answer_is_no_missing_table(
    lake: DeltaHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = PlayedStart(lake).start()
    monkeypatch.setattr("deltalake.DeltaTable", _raising(DeltaError("dispatch failure: timed out")))
    with pytest.raises(UnavailableError, match="could not be asked"):
        start.connector.observe(SOURCE)
    assert not start.connector.health_check().is_well
    monkeypatch.setattr("deltalake.DeltaTable", _raising(OSError("Access Denied: s3:ListBucket")))
    found = start.connector.observe(SOURCE).data
    assert (found.existence, "s3:ListBucket" in found.reason) == (Existence.UNKNOWN, True)
    with pytest.raises(RefusedError, match="is gone, or hidden"):
        start.connector.announce(start.announcement)


def test_a_validation_says_of_each_table_whether_it_can_be_written(lake: DeltaHarness) -> None:
    spec = lake.spec()
    checks = list(kind(spec).target_checks(spec, None))
    assert [check.outcome for check in checks] == [Outcome.PASS, Outcome.PASS]
    assert all("is not there; the sink makes it" in check.detail for check in checks)
    made_by_others(lake, properties={"delta.constraints.small": "at < size"})
    (failed, _) = kind(spec).target_checks(spec, None)
    assert failed.outcome is Outcome.FAIL
    assert re.search(r"is not checked: constraint small, at < size: 'size' is no column", failed.detail)
    assert SINK in failed.name


def _raising(error: Exception) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail
