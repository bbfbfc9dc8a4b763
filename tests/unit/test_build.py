"""The short Python API: the same sink as in YAML."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from airflow_provider_sinks.connectors.kafka.short import kafka
from airflow_provider_sinks.connectors.postgres.short import postgres
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.build import Sink
from airflow_provider_sinks.core.spec.sink import SinkSpec

SCHEMA = "viewtime long, userid string, pageid string"


def test_python_and_mappings_say_the_same() -> None:
    built = Sink(
        name="pageviews_enriched",
        source=kafka("kafka_prod", "pageviews", schema=SCHEMA, start={0: 5}),
        lookups={"users": postgres("pg_prod", "public.users", refresh=timedelta(seconds=60))},
        query="SELECT p.userid, u.region FROM source p LEFT JOIN users u USING (userid)",
        target=kafka("kafka_prod", "pageviews-enriched", key=["userid"], config={"retention.ms": 1000}),
        every=timedelta(seconds=1),
        dead_letter="pageviews-dlq",
    )

    read = SinkSpec.parse(
        {
            "name": "pageviews_enriched",
            "source": {
                "kafka": {
                    "connection": "kafka_prod",
                    "topic": "pageviews",
                    "schema": SCHEMA,
                    "start": {"0": 5},
                }
            },
            "lookups": {
                "users": {"postgres": {"connection": "pg_prod", "table": "public.users", "refresh": "1m"}}
            },
            "query": "SELECT p.userid, u.region FROM source p LEFT JOIN users u USING (userid)",
            "target": {
                "kafka": {
                    "connection": "kafka_prod",
                    "topic": "pageviews-enriched",
                    "key": "userid",
                    "config": {"retention.ms": "1000"},
                }
            },
            "trigger": {"every": "1s"},
            "dead_letter": {"topic": "pageviews-dlq"},
        }
    )
    assert built == read


def test_select_and_where() -> None:
    sink = Sink(
        name="pageviews_clean",
        source=kafka("kafka_prod", "pageviews", schema=SCHEMA),
        select=["userid", "pageid", "viewtime"],
        where="pageid IS NOT NULL",
        target=kafka("kafka_prod", "pageviews-clean", key=["userid"]),
    )

    assert isinstance(sink, SinkSpec)
    assert sink.shape.columns == ("userid", "pageid", "viewtime")
    assert sink.trigger.available_now


def test_a_keyword_of_the_other_role_is_named_with_all_other_problems() -> None:
    with pytest.raises(ConfigurationError) as error:
        Sink(
            name="x",
            source=kafka("k", "a", schema="a int", key=["a"]),
            target=kafka("k", "b", kye=["a"], start="latest"),  # type: ignore[call-arg]
            chekpoint="/c",
        )

    assert [str(problem) for problem in error.value.problems] == [
        'source.kafka.key: is not known (it belongs to a target; did you mean "key_as"?)',
        'target.kafka.kye: is not known (did you mean "key"?)',
        "target.kafka.start: is not known (it belongs to a source)",
        'chekpoint: is not known (did you mean "checkpoint"?)',
    ]


def test_sqlglot_is_not_imported_before_a_query_is_read() -> None:
    code = (
        "import sys; from airflow_provider_sinks.core.connection import resolved; "
        "from airflow_provider_sinks.core.spec import build, sink_file; "
        "sys.exit(sum(name in sys.modules for name in ('sqlglot', 'airflow', 'pyspark', 'confluent_kafka')))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_misspelt_keyword_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError) as error:
        Sink(name="s", sorce="k/a", target="k/b", seelct=["value"])  # type: ignore[call-arg]

    assert [str(problem) for problem in error.value.problems] == [
        'sorce: is not known (did you mean "source"?)',
        'seelct: is not known (did you mean "select"?)',
    ]


def test_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(ConfigurationError) as error:
        Sink(name="s")  # type: ignore[call-arg]

    assert [str(problem) for problem in error.value.problems] == ["source: is missing", "target: is missing"]
