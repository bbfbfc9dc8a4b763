"""What a sink may say: all problems at once, the canonical JSON, and what is resolved from it."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from types import FrameType
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec import rules
from airflow_provider_sinks.core.spec.sink import OutputMode, SinkSpec, Writers

SCHEMA = "viewtime long, userid string, pageid string"
PAGEVIEWS: dict[str, Any] = {
    "name": "pageviews_enriched",
    "source": {"kafka": {"connection": "kafka_prod", "topic": "pageviews", "schema": SCHEMA}},
    "lookups": {"users": {"postgres": {"connection": "pg_prod", "table": "public.users", "refresh": "60s"}}},
    "query": "SELECT p.userid, u.region, p.pageid FROM source p LEFT JOIN users u USING (userid)",
    "target": {"kafka": {"connection": "kafka_prod", "topic": "pageviews-enriched", "key": ["userid"]}},
    "trigger": {"every": "1s"},
    "dead_letter": {"topic": "pageviews-dlq"},
}
COUNTS: dict[str, Any] = {
    "name": "counts",
    "source": {
        "kafka": {
            "connection": "kafka_prod",
            "topic": "pageviews",
            "schema": "ts timestamp, userid string",
            "watermark": {"column": "ts", "delay": "1m"},
        }
    },
    "query": (
        "SELECT window.start AS start, userid, count(*) AS views FROM source "
        "GROUP BY window(ts, '1 minute'), userid"
    ),
    "target": {"kafka": {"connection": "kafka_prod", "topic": "counts", "key": ["start", "userid"]}},
}
TEXT: dict[str, Any] = {
    "name": "lines",
    "source": {"kafka": {"connection": "a", "topic": "lines", "format": "text"}},
    "target": {"kafka": {"connection": "a", "topic": "copies"}},
}


def changed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with one option set; dots lead to nested ones."""
    copy: dict[str, Any] = json.loads(json.dumps(base))
    *way, last = path.split(".")
    inner = copy
    for step in way:
        inner = inner.setdefault(step, {})
    inner[last] = value
    return copy


def problems(data: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        SinkSpec.parse(data)
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize("data", [PAGEVIEWS, COUNTS, TEXT], ids=["query", "stateful", "text"])
def test_json_and_back_is_the_same_sink(data: dict[str, Any]) -> None:
    spec = SinkSpec.parse(data)

    assert SinkSpec.parse(json.loads(spec.to_json())) == spec
    assert SinkSpec.parse(json.loads(spec.to_json())).digest == spec.digest


def test_the_digest_does_not_depend_on_how_it_was_written() -> None:
    same = changed(
        changed(PAGEVIEWS, "transaction_timeout", "1m"), "lookups.users.postgres.refresh", "60000ms"
    )
    same = dict(reversed(same.items()))
    other = changed(PAGEVIEWS, "trigger.every", "2s")

    assert SinkSpec.parse(same).digest == SinkSpec.parse(PAGEVIEWS).digest
    assert SinkSpec.parse(other).digest != SinkSpec.parse(PAGEVIEWS).digest


@pytest.mark.parametrize(
    ("target", "digest"),
    [
        ({"postgres": {"connection": "p", "table": "a.b"}}, "79ff9b541999e6ac"),
        ({"iceberg": {"catalog": "c", "table": "a.b"}}, "947afe05185299a3"),
        ({"delta": {"path": "/lake/b"}}, "aaffe3846f267a03"),
    ],
    ids=["postgres", "iceberg", "delta"],
)
def test_the_digest_of_a_table_is_stable_over_releases(target: dict[str, Any], digest: str) -> None:
    source = {"kafka": {"connection": "k", "topic": "a", "schema": "a int"}}

    assert SinkSpec.parse({"name": "s", "source": source, "target": target}).digest == digest


def test_the_digest_is_stable_over_releases() -> None:
    assert SinkSpec.parse(TEXT).digest == "af7112ea9441bf0a"


def test_what_is_left_out_is_resolved() -> None:
    spec = SinkSpec.parse(PAGEVIEWS)

    assert spec.writer_mode is Writers.PER_PARTITION
    assert spec.stream_mode is OutputMode.APPEND
    assert kafka_sink(spec).progress_topic == "_sinks-progress-pageviews_enriched"
    assert spec.connections == ("kafka_prod", "pg_prod")
    assert spec.refresh_of("users") == timedelta(seconds=60)
    assert spec.source_columns == ("viewtime", "userid", "pageid")
    assert (spec.trigger.available_now, spec.trigger.every) == (False, timedelta(seconds=1))


def test_a_stateful_sink_is_resolved_otherwise() -> None:
    spec = SinkSpec.parse(COUNTS)

    assert spec.writer_mode is Writers.SINGLE
    assert spec.stream_mode is OutputMode.UPDATE
    assert spec.job_sql == COUNTS["query"]
    assert spec.trigger.available_now


def test_short_forms() -> None:
    data = {
        "name": "m",
        "source": "a/b/topic-1",
        "target": "a/b/topic-2",
        "dead_letter": "d",
        "progress": "p",
    }
    spec = SinkSpec.parse({**data, "trigger": "available_now"})

    assert (spec.source.kafka.connection, spec.source.kafka.topic) == ("a/b", "topic-1")
    assert (spec.source.kafka.format, kafka_sink(spec).target.kafka.format) == ("bytes", "bytes")
    assert spec.dead_letter is not None
    assert (spec.resources[Role.DEAD_LETTER], spec.resources[Role.PROGRESS]) == ("d", "p")


def test_a_target_writes_in_the_format_of_its_source_unless_it_says_so() -> None:
    assert kafka_sink(SinkSpec.parse(TEXT)).target.kafka.format == "text"
    assert (
        kafka_sink(SinkSpec.parse(changed(TEXT, "target.kafka.format", "json"))).target.kafka.format == "json"
    )
    assert kafka_sink(SinkSpec.parse(PAGEVIEWS)).target.kafka.format == "json"


def test_partitions_in_start_are_numbers_also_when_json_made_them_text() -> None:
    spec = SinkSpec.parse(changed(PAGEVIEWS, "source.kafka.start", {"1": 7, "0": 5}))

    assert spec.source.kafka.start == {0: 5, 1: 7}
    assert SinkSpec.parse(json.loads(spec.to_json())) == spec


def test_numbers_and_flags_in_a_topic_configuration_are_text() -> None:
    config = {"retention.ms": 604800000, "preallocate": True, "cleanup.policy": "compact"}
    spec = SinkSpec.parse(changed(PAGEVIEWS, "target.kafka.config", config))

    assert kafka_sink(spec).target.kafka.config == {
        "retention.ms": "604800000",
        "preallocate": "true",
        "cleanup.policy": "compact",
    }


def test_all_problems_at_once_also_those_between_the_parts() -> None:
    data = changed(PAGEVIEWS, "writers", "per_partition")
    data = changed(data, "query", "SELECT userid, count(*) AS n FROM source GROUP BY userid")
    data = changed(data, "nam", 1)
    data = changed(data, "dead_letter.partions", 2)

    assert problems(data) == [
        'dead_letter.partions: is not known (did you mean "partitions"?)',
        'nam: is not known (did you mean "name"?)',
        "lookups.users: is never read (JOIN users in the query, or leave it out)",
        (
            "writers: per_partition needs a row-wise query, but it has GROUP BY: one output row comes from "
            "many source rows; count(): one output row comes from many source rows "
            "(leave writers out, or write writers: single)"
        ),
    ]


def ids(cases: list[tuple[str, Any, str]]) -> list[str]:
    return [re.sub(r"\W+", "-", f"{path}-{value}")[:60] for path, value, _ in cases]


K, T = "source.kafka", "target.kafka"
WRONG: list[tuple[str, Any, str]] = [
    ("name", "a.b", "name: 'a.b' is not a name"),
    ("name", "x" * 101, "is not a name (1 to 100 letters"),
    ("name", 5, "name: must be text, not a number"),
    ("source", {"kafka": {}}, "source.kafka.connection: is missing"),
    ("source", {"kafak": {}}, 'source.kafak: is not known (did you mean "kafka"?)'),
    ("source", "pageviews", "source: 'pageviews' is no short form (write connection/topic)"),
    ("source", ["a"], "source: must be a mapping, not a list"),
    (
        f"{T}.topic",
        "_sinks-progress-orders",
        "'_sinks-progress-orders' is named as the progress topic of a sink",
    ),
    ("dead_letter.topic", "_sinks-progress-orders", "is named as the progress topic of a sink"),
    (f"{K}.topic", "page views", "'page views' is not a valid topic name"),
    (f"{K}.topic", "..", "'..' is not a valid topic name"),
    (f"{K}.topic", "x" * 250, "is not a valid topic name (1 to 249"),
    (f"{K}.connection", "kafka://host:9092?x", "is not an Airflow connection id"),
    (f"{K}.connection", "kafka://host", "is not an Airflow connection id (the id of a connection, not its"),
    (f"{K}.connection", "host:9092", "'host:9092' is not an Airflow connection id"),
    (f"{K}.connection", "kafka://me:secret@host", "connection: 'host' is not an Airflow connection id"),
    (f"{K}.registry", "http://host:8081", "source.kafka.registry: 'http://host:8081' is not an Airflow conn"),
    (f"{T}.registry", "http://host:8081", "target.kafka.registry: 'http://host:8081' is not an Airflow conn"),
    ("lookups.users.postgres.connection", "host:5432", "'host:5432' is not an Airflow connection id"),
    (f"{K}.key", ["a"], 'source.kafka.key: is not known (it belongs to a target; did you mean "key_as"?)'),
    (
        f"{K}.format",
        "jsn",
        'is none of json, text, bytes, avro, json_schema, protobuf (did you mean "json"?)',
    ),
    (f"{K}.format", "text", "source.kafka.schema: does not go with format text"),
    (f"{K}.schema", None, "source.kafka.schema: is missing: format json needs one"),
    (f"{K}.schema", "a strng", "'strng' is not a type of Spark (did you mean"),
    (f"{K}.schema", "__sinks_offset long", "names with __sinks_ are the sink's own"),
    (f"{K}.required", ["usrid"], "required[0]: 'usrid' is no column of the schema (did you mean"),
    (f"{K}.start", "newest", "'newest' is no start"),
    (f"{K}.start", {"0": -1}, "-1 is neither a partition nor an offset"),
    (f"{K}.start", {"0": True}, "True is neither a partition nor an offset"),
    (f"{K}.start", {}, "{} is no start (earliest, latest, or {partition: offset})"),
    (f"{K}.max_offsets_per_epoch", 0, "0 is less than 1"),
    (f"{K}.max_offsets_per_epoch", "5", "must be a whole number, not text"),
    (f"{K}.watermark", {"column": "ts", "delay": "1m"}, "'ts' is no column of the source"),
    (f"{K}.watermark", {"column": "viewtime", "delay": "1m"}, "watermark: is for stateful queries"),
    (f"{K}.options", {"minPartitions": 8}, "minPartitions: cannot be set: one task must read"),
    (f"{K}.options", {"maxRecordsPerPartition": 8}, "cannot be set: one task must read"),
    (f"{K}.options", {"failondataloss": "false"}, "because exactly once depends on it"),
    (f"{K}.options", {"kafka.sasl.jaas.config": "x"}, "belong to the connection"),
    (
        f"{K}.options",
        {"kafka.bootstrap.servers": "h:9092"},
        "kafka.bootstrap.servers: cannot be set: the topic",
    ),
    (
        f"{K}.options",
        {"Kafka.Bootstrap.Servers": "h:9092"},
        "Kafka.Bootstrap.Servers: cannot be set: the topic",
    ),
    (f"{K}.options", {"fetchOffset.numRetry": 5}, 'did you mean "fetchOffset.numRetries"?'),
    (f"{K}.options", {"fetchOffset.numRetries": "many"}, "numRetries: 'many' is no whole number (from 0 to"),
    (f"{K}.options", {"kafka.fetch.max.bytes": 10**15}, "fetch.max.bytes: 1,000,000,000,000,000 is out of"),
    (f"{K}.options", {"kafkaConsumer.pollTimeoutMs": 0}, "pollTimeoutMs: 0 is out of bounds (from 1 to"),
    (f"{K}.options", {"groupIdPrefix": "a b"}, "groupIdPrefix: 'a b' is no prefix (1 to 200 letters"),
    ("lookups.source", {"postgres": {"connection": "a", "table": "b.c"}}, "is named as 'source'"),
    ("lookups.USERS", {"postgres": {"connection": "a", "table": "b.c"}}, "is named as 'users'"),
    ("lookups.my-users", "pg/a.b", "'my-users' is not a name for a view"),
    ("lookups.users", "pg/users", "'users' is not a table (schema.table"),
    ("lookups.users.postgres.refresh", 60, "60 is not a duration (a number with ms, s"),
    ("lookups.more", "pg/a.b", "lookups.more: is never read"),
    ("select", ["userid"], "select: does not go with query"),
    ("where", "userid IS NULL", "where: does not go with query"),
    ("query", "SELECT a FROM source JOIN user", "query: reads 'user', which is neither"),
    ("query", "SELECT FROM", "query: is not SQL that Spark can read"),
    ("query", "  ", "query: is empty"),
    (
        "query",
        "SELECT usrid AS userid FROM source",
        "query: 'usrid' is no column of source (did you mean \"userid\"?)",
    ),
    ("query", "SELECT userid FROM source -- " + "x" * 900_000, "bytes long, and each start writes it"),
    ("select", [], "select: is empty: name something, or leave it out"),
    ("checkpoint", "s3a://key:secret@bucket/a", "checkpoint: holds a login (give the driver its credentials"),
    ("checkpoint", "hdfs://user@host/a", "checkpoint: holds a login"),
    (
        "checkpoint",
        "hfds://host/a",
        "checkpoint: 'hfds' is no scheme of a file system (did you mean \"hdfs\"?)",
    ),
    ("checkpoint", "http://host/a", "is no scheme of a file system (one of file, hdfs"),
    ("checkpoint", "/data/../etc", "checkpoint: leads out of its folder by .."),
    ("checkpoint", "s3a://bucket/a/..", "checkpoint: leads out of its folder by .."),
    ("checkpoint", "s3a://bucket/a?key=b", "checkpoint: holds ? or #"),
    ("checkpoint", "data/checkpoints", "is a relative path (write it from the root"),
    (f"{K}.max_offsets_per_epoch", 10**9, "more than 100,000,000 (an epoch must end within"),
    ("lookups.users.postgres.max_bytes", 2**40, "more than 8,589,934,592 (Spark sends no larger table"),
    ("lookups.users.postgres.refresh", "31d", "31d is more than 30d (rows would be joined"),
    ("trigger", {"every": "2d"}, "2d is more than 1d (leave trigger out"),
    (f"{T}.partitions", 10_001, "10,001 is more than 10,000 (each partition costs"),
    (f"{T}.replication_factor", 33, "33 is more than 32 (each replica is a broker"),
    (
        f"{T}.config",
        {"cleanup.polcy": "compact"},
        'is no setting of a topic (did you mean "cleanup.policy"?)',
    ),
    (f"{T}.key", ["userId"], "'userId' is no column of the output (did you mean \"userid\"?)"),
    (f"{T}.key", ["userid", "userid"], "target.kafka.key: names a column twice"),
    (f"{T}.value", "page", "target.kafka.value: 'page' is no column of the output (did you"),
    (f"{T}.value", "userid", "'userid' is the key already"),
    (f"{T}.format", "text", "text needs one column for the value, but there are 2"),
    (f"{T}.tombstones", "yes", "'yes' is none of true, false, ignore, delete"),
    (f"{T}.tombstones", 1, "target.kafka.tombstones: must be one of true, false, ignore, delete"),
    (f"{T}.envelope", "upsret", "'upsret' is none of append, upsert, debezium (did you mean \"upsert\"?)"),
    (f"{T}.compact_epoch", "yes", "must be true or false, not text"),
    (f"{T}.deletes", "drop", "'drop' is none of with_tombstone, without_tombstone, rewrite"),
    (f"{T}.key_in_value", "no", "must be true or false, not text"),
    (f"{T}.headers", "sorce", "'sorce' is no way to make headers (did you mean \"source\"?)"),
    (f"{T}.headers", {}, "target.kafka.headers: names no header (source, or {name: column})"),
    (f"{T}.headers", ["userid"], "target.kafka.headers: names no header"),
    (f"{T}.headers", {" ": "userid"}, "' ' is no name of a header"),
    (f"{T}.headers", {"a\0b": "userid"}, "is no name of a header: it has a zero byte (leave it out)"),
    (f"{T}.headers", {"a": 1}, "headers: 1, for header 'a', is no column"),
    (f"{T}.headers", {"a": "usrid"}, "headers.a: 'usrid' is no column of the output (did you mean"),
    (f"{T}.timestamp", "nwo", "target.kafka.timestamp: 'nwo' is no time (did you mean \"now\"?)"),
    (f"{T}.timestamp", {"colum": "viewtime"}, 'is no time (did you mean "column"?)'),
    (f"{T}.timestamp", {"column": ""}, "target.kafka.timestamp: '' is no column"),
    (f"{T}.timestamp", {"column": "viewtim"}, "timestamp.column: 'viewtim' is no column of the output"),
    (f"{T}.partition_by", "usrid", "target.kafka.partition_by[0]: 'usrid' is no column of the output"),
    (f"{T}.partition_by", ["userid", "userid"], "target.kafka.partition_by: names a column twice"),
    (f"{T}.partitions", True, "must be a whole number, not true or false"),
    (f"{T}.replication_factor", 0, "0 is less than 1"),
    (f"{T}.config", {"a": 1.5}, "target.kafka.config.a: must be text"),
    (f"{T}.compression", "lz", 'did you mean "lz4"?'),
    (f"{T}.topic", "pageviews", "'pageviews' is source.kafka.topic already"),
    ("dead_letter.topic", "pageviews-enriched", "is target.kafka.topic already"),
    ("progress.topic", "pageviews", "'pageviews' is source.kafka.topic already"),
    ("trigger", "availble_now", 'is no trigger (did you mean "available_now"?)'),
    ("trigger", {"every": None}, "is no trigger (available_now, or {every: 1s})"),
    ("trigger", {"evry": "1s"}, 'trigger.evry: is not known (did you mean "every"?)'),
    ("writers", "one", "'one' is none of per_partition, single"),
    ("output_mode", "complete", "'complete' is none of append, update"),
    ("transaction_timeout", "1h", "3600s is out of range (from 1s to 15m"),
    ("patience", "2h", "7200s is out of range (from 1s to 1h"),
    ("transactional_id_prefix", "a.b", "'a.b' is not a name"),
]


@pytest.mark.parametrize(("path", "value", "problem"), WRONG, ids=ids(WRONG))
def test_what_is_wrong_is_said_with_its_place(path: str, value: Any, problem: str) -> None:
    found = problems(changed(PAGEVIEWS, path, value))

    assert problem in "\n".join(found)
    assert len(found) <= 2


@pytest.mark.parametrize(
    "folder",
    [
        "/data/checkpoints",
        "file:///data",
        "hdfs://namenode:8020/sinks",
        "hdfs:///sinks",
        "s3a://bucket/sinks",
        "abfss://container@account.dfs.core.windows.net/sinks",
    ],
)
def test_folders_for_checkpoints(folder: str) -> None:
    assert SinkSpec.parse(changed(PAGEVIEWS, "checkpoint", folder)).checkpoint == folder


def test_a_suggestion_is_never_the_typo() -> None:
    data = {
        "name": "s",
        "source": {"kafka": {"connection": "k", "topic": "a", "schema": "userid string"}},
        "select": ["usrid"],
        "where": "userd IS NOT NULL",
        "target": {"kafka": {"connection": "k", "topic": "b", "key": ["userid"]}},
    }

    assert problems(data) == [
        "select[0]: 'usrid' is no column of source (did you mean \"userid\"?)",
        "where: 'userd' is no column of source (did you mean \"userid\"?)",
    ]


def test_the_settings_of_a_vendors_broker_are_taken() -> None:
    config = {"confluent.value.schema.validation": "true"}

    spec = kafka_sink(SinkSpec.parse(changed(PAGEVIEWS, "target.kafka.config", config)))

    assert spec.target.kafka.config == config


WRONG_WITH_STATE: list[tuple[str, Any, str]] = [
    ("target.kafka.key", [], "target.kafka.key: is missing: a stateful query needs one"),
    ("target.kafka.headers", "source", "headers: source does not go with GROUP BY, count(), window(): a row"),
    ("target.kafka.timestamp", "source", "timestamp: source does not go with GROUP BY, count(), window(): a"),
    ("writers", "per_partition", "per_partition needs a row-wise query, but it has GROUP BY"),
    ("target.kafka.key", ["user"], "'user' is no column of the output"),
]


@pytest.mark.parametrize(("path", "value", "problem"), WRONG_WITH_STATE, ids=ids(WRONG_WITH_STATE))
def test_what_is_wrong_with_state(path: str, value: Any, problem: str) -> None:
    assert problem in "\n".join(problems(changed(COUNTS, path, value)))


def test_append_on_state_needs_a_watermark() -> None:
    data = changed(changed(COUNTS, "output_mode", "append"), "source.kafka.watermark", None)

    assert problems(data) == [
        (
            "output_mode: append on a stateful query needs a watermark "
            "(add source.kafka.watermark, or write output_mode: update)"
        )
    ]


def test_a_query_that_is_not_row_wise_cannot_pass_the_key_through() -> None:
    data = {**TEXT, "query": "SELECT value FROM source WHERE value IN (SELECT 'a')"}

    assert problems(data)[0].startswith(
        "target.kafka.key: is missing: a query that is not row-wise needs one"
    )


def test_only_a_row_wise_query_reads_its_lookups_again() -> None:
    data = changed(PAGEVIEWS, "query", "SELECT userid FROM source LEFT SEMI JOIN users USING (userid)")

    assert problems(data) == [
        (
            "lookups.users.postgres.refresh: only a row-wise query reads its lookups again while it runs "
            "(leave it out: read once, at the start)"
        )
    ]


def test_a_broken_part_keeps_its_rules_quiet_and_no_others() -> None:
    data = changed(changed(PAGEVIEWS, "target.kafka.topik", "x"), "query", "SELECT nothing FROM nowhere")

    assert [problem.split(":")[0] for problem in problems(data)] == [
        "target.kafka.topik",
        "query",
        "query",
    ]


@pytest.mark.parametrize("data", [None, [], "sink", 5], ids=["none", "list", "text", "number"])
def test_a_sink_is_a_mapping(data: Any) -> None:
    assert problems(data) == ["must be a mapping of options"]


def test_select_items_are_checked_one_by_one() -> None:
    data = {**TEXT, "select": ["value FROM users"]}

    assert problems(data) == [
        "select: 'value FROM users' is not one expression (one item per expression; write `query` for more)"
    ]


_HOME = "has a parameter, ${env:HOME}, that nobody gives a value"
_COMMAND = "TRANSFORM(value) USING 'cat'"


@pytest.mark.parametrize(
    ("select", "where", "said"),
    [
        pytest.param(None, "value = ${env:HOME}", [f"where: {_HOME}"], id="environment"),
        pytest.param(["${env:HOME} AS value"], "value > ''", [f"select: {_HOME}"], id="select"),
        pytest.param(
            ["${env:HOME} AS value"],
            "value > ${env:HOME}",
            [f"select: {_HOME}", f"where: {_HOME}"],
            id="both",
        ),
        pytest.param(None, "value = :p", ["where: has a parameter, :p"], id="parameter"),
        pytest.param(None, "value = current_user", ["where: reads current_user"], id="account"),
        pytest.param(None, _COMMAND, ["where: has USING without a bracket"], id="command"),
        pytest.param(None, "__sinks_offset > 1", ["where: names '__sinks_offset'"], id="own-name"),
        pytest.param(None, "value IN (SELECT a FROM users)", ["where: reads 'users'"], id="table"),
        pytest.param(None, "value = '' -- a \\\n", ["where: has a comment"], id="comment"),
        pytest.param(["value"], "value >", ["where: is not SQL"], id="no-sql"),
        pytest.param(
            ["value", "reflect('java.lang.System', 'getenv', value) AS key"],
            "reflect('java.lang.System', 'getenv', 'HOME') = value",
            ["select[1]: calls reflect(), which no query may"],
            id="reflect",
        ),
        pytest.param(
            None,
            "reflect('java.lang.System', 'getenv', 'HOME') = value",
            ["where: calls reflect(), which no query may"],
            id="reflect-in-where",
        ),
    ],
)
def test_what_is_wrong_in_the_sql_is_said_by_the_option_that_it_stands_in(
    select: list[str] | None, where: str, said: list[str]
) -> None:
    found = problems({**TEXT, "select": select, "where": where})

    assert len(found) == len(said), found
    for problem, part in zip(sorted(found), said, strict=True):
        assert problem.startswith(part)


@pytest.mark.parametrize("data", [PAGEVIEWS, COUNTS, TEXT], ids=["row-wise", "stateful", "text"])
def test_a_sink_waits_five_minutes_for_a_service_unless_it_says_otherwise(data: dict[str, Any]) -> None:
    assert SinkSpec.parse(data).patience == timedelta(minutes=5)
    assert SinkSpec.parse({**data, "patience": "90s"}).patience == timedelta(seconds=90)


CALLS_OF_A_NUMBER = 60
"""The text is read twice, alone and in its query, for 54 calls a number; a third time would cost 19 more."""


def of_numbers(count: int) -> dict[str, Any]:
    """Return a sink that keeps the rows whose length stands in a list."""
    return {**TEXT, "where": f"length(value) IN ({', '.join(map(str, range(100_000, 100_000 + count)))})"}


def calls(data: dict[str, Any]) -> int:
    """Return how many functions a parse calls: as many on a busy machine as on a quiet one."""
    count, before = 0, sys.getprofile()

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        del frame, argument
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        SinkSpec.parse(data)
    finally:
        sys.setprofile(before)
    return count


def test_a_number_more_in_a_list_costs_the_same_however_long_the_list_is() -> None:
    calls(of_numbers(1))  # imports sqlglot
    few, more, many = (calls(of_numbers(count)) for count in (1_000, 2_000, 6_000))

    each = (more - few) / 1_000
    assert (many - more) / 4_000 == pytest.approx(each, rel=0.01)
    assert each < CALLS_OF_A_NUMBER


def test_a_list_of_a_hundred_thousand_numbers_is_taken() -> None:
    numbers = ", ".join(str(number) for number in range(100_000))

    spec = SinkSpec.parse({**TEXT, "where": f"length(value) IN ({numbers})"})

    assert f"({numbers})" in spec.job_sql


def test_a_sink_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        SinkSpec.parse(TEXT).name = "other"


@pytest.mark.parametrize("data", [PAGEVIEWS, COUNTS], ids=["row-wise", "stateful"])
def test_another_trigger_gives_what_would_be_parsed_with_it(data: dict[str, Any]) -> None:
    found = SinkSpec.parse(data).with_trigger({"every": "90s"})
    parsed = SinkSpec.parse({**data, "trigger": {"every": "90s"}})

    assert (found, found.to_json(), found.digest) == (parsed, parsed.to_json(), parsed.digest)


def test_another_trigger_is_judged_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SinkSpec.parse(PAGEVIEWS)
    rule = (rules.needs("trigger"), lambda one: [Problem("trigger", f"{one.trigger.every} is too slow")])
    monkeypatch.setattr(rules, "RULES", (*rules.RULES, rule))

    with pytest.raises(ConfigurationError, match="trigger: 1:30:00 is too slow"):
        spec.with_trigger({"every": "90m"})


_OWN_OPTIONS = {
    "key_in_value": False,
    "headers": {"z": "pageid", "a": "region"},
    "timestamp": {"column": "pageid"},
    "partition_by": "region",
}


def test_what_messages_carry_travels_and_is_no_part_of_a_sink_that_says_nothing_of_it() -> None:
    told = SinkSpec.parse(
        changed(PAGEVIEWS, "target", {"kafka": PAGEVIEWS["target"]["kafka"] | _OWN_OPTIONS})
    )

    assert SinkSpec.parse(told.to_mapping()) == told
    kafka = told.to_mapping()["target"]["kafka"]
    assert (kafka["partition_by"], list(kafka["headers"])) == (["region"], ["a", "z"])
    assert not _OWN_OPTIONS.keys() & SinkSpec.parse(PAGEVIEWS).to_mapping()["target"]["kafka"].keys()


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ({"key_in_value": False, "key": []}, "key_in_value: is for a key made of columns"),
        ({"key_in_value": True, "value": "pageid"}, "key_in_value: does not go with value"),
        ({"key_in_value": True, "value": "pageid", "format": "text"}, "does not go with format text"),
        (
            {"key_in_value": False, "key": ["userid", "region", "pageid"]},
            "leaves nothing: every column is in",
        ),
    ],
    ids=["no key", "value", "text", "nothing is left"],
)
def test_a_key_is_left_out_only_of_a_value_that_has_it(target: dict[str, Any], problem: str) -> None:
    found = problems(changed(PAGEVIEWS, "target", {"kafka": PAGEVIEWS["target"]["kafka"] | target}))

    assert problem in "\n".join(found)
