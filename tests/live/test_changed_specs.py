"""A spec that was changed under a sink: goes on and says so, or is refused before anything is touched."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.local import spark
from tests.airflow.desk import Desk
from tests.live.sink_desk import airflow_db, airflow_url, connections, dag, desk
from tests.live.stage import Sink, Stage

__all__ = ["airflow_db", "airflow_url", "connections", "dag", "desk"]
pytestmark = [
    pytest.mark.filterwarnings("error:::airflow_provider_sinks"),
    pytest.mark.filterwarnings("default"),
]
_SCHEMA = "id int, region string, n int"
_KEYED = {"key": ["id"], "envelope": "upsert"}


def _row(number: int) -> tuple[str, str]:
    return str(number), json.dumps({"id": number, "region": "north", "n": number})


@pytest.fixture
def sink(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Sink:
    """A sink of upserts into a topic, which has written three rows."""
    for name, value in spark.spark_environment().items():
        monkeypatch.setenv(name, value)
    source = stage.source("changed", {0: [_row(n) for n in range(3)]})
    made = stage.sink("changed", source, from_={"schema": _SCHEMA}, to=_KEYED)
    made.run()
    return made


def _into(sink: Sink, **options: object) -> None:
    """Change the options of the sink's target."""
    target = sink.spec["target"]
    assert isinstance(target, dict)
    ((kind, before),) = target.items()
    sink.spec = {**sink.spec, "target": {kind: {**before, **options}}}


def test_a_key_that_changes_under_upserts_is_refused_until_a_person_says_it_once(
    sink: Sink, stage: Stage
) -> None:
    stage.produce(sink.source, [(0, *_row(3))])
    _into(sink, key=["n"])
    ends = stage.end_offsets(sink)

    refused = sink.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert 'target.kafka.key: ["id"] -> ["n"]: needs a new generation' in refused.error.detail
    assert "airflow sinks reset" in refused.error.hint
    assert stage.end_offsets(sink) == ends
    accepted = sink.run(Sink.code(refused, "go_on_changed"))
    assert (accepted.generation, accepted.rows_total) == (1, 4)
    stage.produce(sink.source, [(0, *_row(4))])
    assert sink.run().rows_total == 5


def test_a_new_generation_takes_the_spec_as_it_is(sink: Sink, stage: Stage) -> None:
    _into(sink, envelope="append")

    refused = sink.fail(ExitCode.REFUSED)
    begun = sink.run(Sink.code(refused, "start_over"))

    assert (begun.generation, begun.rows_total) == (2, 3)
    assert len(stage.read(sink.out)) == 6


def test_another_filter_goes_on_and_the_log_says_from_where(sink: Sink, stage: Stage) -> None:
    stage.produce(sink.source, [(0, *_row(n)) for n in range(3, 9)])
    sink.spec = {**sink.spec, "where": "n % 2 = 0"}

    status = sink.run()

    assert (status.generation, status.rows_total) == (1, 6)
    log = sink.launches[-1].log
    assert "goes on from source offsets 0: 3 with what has changed:" in log
    assert "WHERE n % 2 = 0: rows from here on follow it" in log


def _table(stage: Stage, schema: str, kind: str) -> dict[str, object]:
    """Return the target of a table that the sink makes."""
    places: dict[str, dict[str, object]] = {
        "postgres": {"connection": "pg", "table": f"{schema}.orders"},
        "iceberg": {"catalog": "lake", "table": f"{schema}.orders"},
        "delta": {"path": str(stage.folder.parent / "table")},
    }
    return {kind: {**places[kind], "create": True}}


@pytest.mark.parametrize("kind", ["postgres", "iceberg", "delta"])
def test_a_table_loses_no_column_in_silence(stage: Stage, schema: str, kind: str) -> None:
    source, target = stage.source("fewer", {0: [_row(0)]}), _table(stage, schema, kind)
    sink = stage.sink("fewer", source, from_={"schema": _SCHEMA}, target=target, select=["id", "region"])
    sink.run()
    sink.spec = {**sink.spec, "select": ["id", "region AS place"]}
    _into(sink, on_schema_change="add_columns")

    refused = sink.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert 'columns of the target: ["region"] -> none: needs a new generation' in refused.error.detail
    sink.spec = {**sink.spec, "select": ["id", "region", "n"]}
    stage.produce(source, [(0, *_row(1))])
    assert sink.run().rows_total == 2


def test_a_stateful_query_that_changes_begins_anew_or_not_at_all(stage: Stage) -> None:
    counts = "SELECT region, count(*) AS c FROM source GROUP BY region"
    source = stage.source("counts", {0: [_row(n) for n in range(4)]})
    sink = stage.sink("counts", source, from_={"schema": _SCHEMA}, to={"key": ["region"]}, query=counts)
    sink.run()
    sink.spec = {**sink.spec, "query": counts.replace("source", "source WHERE n > 1")}

    refused = sink.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert "the state in Spark's checkpoint was made of rows" in refused.error.detail
    assert "go_on_changed" not in refused.error.hint
    sink.run(Sink.code(refused, "start_over"))
    assert [json.loads(record.value or b"")["c"] for record in stage.read(sink.out)] == [4, 2]


def test_the_plan_says_that_nothing_has_changed(desk: Desk) -> None:
    same = desk.run("plan", desk.sink)

    assert same.code == 0, same.err
    assert "\n  spec:              same as in force\n" in same.out


class TestPlanOfAChange:
    """What the commands say of a change before anything is started."""

    @pytest.fixture
    def sink(self, sink: Sink) -> Sink:
        _into(sink, key=["n"], compression="gzip")
        return sink

    def test_the_plan_refuses_as_the_start_does_with_each_option(self, desk: Desk) -> None:
        shown, data = desk.run("plan", desk.sink), desk.run("plan", desk.sink, "-o", "json").data

        assert shown.code == ExitCode.REFUSED
        assert "\n  spec:              needs a new generation for what has changed:\n" in shown.out
        assert "    target.kafka.compression: lz4 -> gzip: it changes no row\n" in shown.out
        assert data["verdict"]["spec"]["state"] == "needs a new generation"
        changes = {one["option"]: one["needs_new_generation"] for one in data["verdict"]["spec"]["changes"]}
        assert changes == {"target.kafka.key": True, "target.kafka.compression": False}

    def test_a_reset_begins_anew_by_the_spec_as_it_is_now(self, desk: Desk) -> None:
        done = desk.run("reset", desk.sink, "--data", "empty", "--yes")

        assert done.code == 0, done.err
        assert "same as in force" in desk.run("plan", desk.sink).out
