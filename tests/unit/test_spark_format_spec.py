"""What a spec may say about a format of Spark's, what it is told otherwise, and whose guarantee it states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks import Sink, kafka, spark_format
from airflow_provider_sinks.connectors.registry import end_types
from airflow_provider_sinks.connectors.spark_format.formats import FORMATS, format_of
from airflow_provider_sinks.connectors.spark_format.kind import KIND
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.dag.docs import dag_page

_SOURCE = {"kafka": {"connection": "k", "topic": "orders", "schema": "id long, what string"}}
_FILES = {"format": "parquet", "path": "s3a://lake/orders"}
_JDBC = {"format": "jdbc", "connection": "pg", "table": "public.orders"}


def sink(target: Any, **parts: Any) -> SinkSpec:
    whole = {"name": "orders", "source": _SOURCE, "target": {"spark": target}, "checkpoint": "/kept", **parts}
    return SinkSpec.parse(whole)


def options(format_: str, **given: Any) -> dict[str, Any]:
    return {"format": format_, "options": given}


@pytest.mark.parametrize(
    ("target", "parts", "told"),
    [
        ({"format": "parquet"}, {}, "format parquet needs a path (path: /folder, or scheme://place/folder)"),
        ({"format": "jdbc"}, {}, "format jdbc needs connection and table"),
        ({**_FILES, "connection": "pg"}, {}, "connection and table are for format jdbc (leave them out)"),
        ({"format": "noop", "path": "/data"}, {}, "format noop has no path (leave it out)"),
        (
            {"format": "delta"},
            {},
            "format delta has a target of its own, which is exactly once (target: {delta",
        ),
        (
            {"format": "postgres"},
            {},
            "format postgres has a target of its own, which is exactly once (target: {postgres",
        ),
        (
            {"format": "Memory"},
            {},
            "format memory cannot be written by a sink (noop and console write nowhere)",
        ),
        ({"format": "a b"}, {}, "'a b' is no format of Spark's (such as parquet, jdbc, noop)"),
        (
            {**_FILES, "path": "lake"},
            {},
            "target.spark.path: 'lake' is a relative path (write it from the root",
        ),
        ({**_FILES, "path": "/a/../b"}, {}, "target.spark.path: leads out of its folder by .."),
        (
            {**_FILES, "path": "s3a://me:word@b/c"},
            {},
            "target.spark.path: holds a login (give the driver its",
        ),
        ({**_FILES, "path": "ftp://b/c"}, {}, "target.spark.path: 'ftp' is no scheme of a file system"),
        ({**_FILES, "path": "s3a://b/"}, {}, "'s3a://b/' is no folder of its own (write a folder below it)"),
        ({**_FILES, "path": "/"}, {}, "'/' is no folder of its own (write a folder below it)"),
        ({**_FILES, "path": "file:///kept/x"}, {}, "target.spark.path: and checkpoint lie in each other"),
        (
            _FILES,
            {"checkpoint": None},
            "checkpoint: is missing: the target keeps no progress, so it stands besi",
        ),
        (_FILES, {"writers": "per_partition"}, "writers: Spark's own writer writes whole epochs (leave wr"),
        (
            _FILES,
            {"dead_letter": "x"},
            "dead_letter: Spark's own writers set nothing aside (read format text",
        ),
        (
            options("noop", x="1"),
            {},
            "target.spark.options.x: is not an option of noop that can be set (it ta",
        ),
        (
            {**_JDBC, "options": {"url": "jdbc:x"}},
            {},
            "options.url: is not an option of jdbc that can be set",
        ),
        (
            {**_FILES, "options": {"compresion": "zstd"}},
            {},
            "compresion: is not an option of parquet that can be",
        ),
        (
            {**_FILES, "options": {"compression": "zstd", "COMPRESSION": "gzip"}},
            {},
            "options.COMPRESSION: stands there already, in another spelling",
        ),
        (options("mongodb", path="/x"), {}, "options.path: cannot be set: it is path beside options"),
    ],
)
def test_what_does_not_fit_is_told_with_what_would(target: Any, parts: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sink(target, **parts)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"password": "sesame"},
        {"spark.mongodb.auth.token": "sesame"},
        {"fs.azure.account.key": "sesame"},
        {"clientSecret": "sesame"},
        {"user": "sesame"},
        {"uri": "mongodb://me:sesame@host/db"},
        {"extra": "host=h;Password=sesame"},
    ],
)
def test_a_secret_among_the_options_is_refused_and_not_shown(given: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sink(options("mongodb", **given))

    assert "take it out: jdbc has connection, an Airflow connection" in str(caught.value)
    assert "sesame" not in str(caught.value)


def test_options_of_a_format_that_is_not_known_are_taken_as_they_are() -> None:
    spec = sink(options("org.elasticsearch.spark.sql", **{"es.resource": "orders", "es.batch.size": 500}))

    written = spec.to_mapping()["target"]["spark"]["options"]
    assert written == {"es.batch.size": "500", "es.resource": "orders"}


def test_the_short_form_in_python_says_the_same_as_yaml() -> None:
    spec = Sink(
        name="orders",
        source=kafka("k", "orders", schema="id long, what string"),
        target=spark_format("parquet", path="s3a://lake/orders"),
        checkpoint="/kept",
    )

    assert spec == sink(_FILES)
    assert SinkSpec.parse(json.loads(spec.to_json())) == spec


def test_rows_and_progress_have_places_and_one_writer() -> None:
    spec = sink(_FILES)

    assert spec.resources == {Role.DATA: "s3a://lake/orders", Role.PROGRESS: "/kept/orders/progress"}
    assert spec.writer_mode is Writers.SINGLE


def test_what_has_no_name_is_no_other_sink_s() -> None:
    outputs = {sink({"format": "noop"}, name=name).resources[Role.DATA] for name in ("one", "two")}

    assert outputs == {"noop of one", "noop of two"}


@pytest.mark.parametrize(
    ("target", "needed"), [(_JDBC, {"k": "kafka", "pg": "postgres"}), (_FILES, {"k": "kafka"})]
)
def test_only_jdbc_needs_a_connection(target: Any, needed: dict[str, str]) -> None:
    assert end_types(sink(target)) == needed


@pytest.mark.parametrize("name", [*FORMATS, "mongodb"])
def test_each_format_states_its_guarantee_in_one_sentence(name: str) -> None:
    guarantee = format_of(name).guarantee

    assert guarantee.startswith(f"Spark's own writer writes the rows, and its guarantee for {name} holds: ")
    assert guarantee.count(". ") == 0
    assert guarantee.endswith(".")


def test_the_page_of_its_dag_and_what_is_shown_of_it_state_spark_s_guarantee_and_no_other() -> None:
    spec = sink(_JDBC)

    page = dag_page(spec)

    assert spec.engine_guarantee in page
    assert "exactly once" not in page
    assert spec.shown()["guarantee"] == spec.engine_guarantee


def test_a_validation_says_it_before_anything_else(tmp_path: Path) -> None:
    spec = sink({**_FILES, "path": str(tmp_path / "lake")}, checkpoint=str(tmp_path / "kept"))

    checks = list(KIND.target_checks(spec, None))

    assert [(check.name, check.outcome) for check in checks] == [
        ("guarantee", Outcome.PASS),
        (f'data folder "{tmp_path}/lake"', Outcome.PASS),
        (f'progress folder "{tmp_path}/kept/orders/progress"', Outcome.PASS),
    ]
    assert checks[0].detail == spec.engine_guarantee
