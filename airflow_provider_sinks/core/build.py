"""The short Python API: the same sink as in YAML, with keywords that an editor completes.

>>> sink = Sink(
...     name="pageviews_clean",
...     source=kafka("kafka_prod", "pageviews", schema="userid string, pageid string"),
...     where="pageid IS NOT NULL",
...     target=kafka("kafka_prod", "pageviews-clean", key=["userid"]),
... )
>>> sink.writer_mode.value
'per_partition'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from airflow_provider_sinks.core.spec import SinkSpec

Every = timedelta | str


class KafkaKeywords(TypedDict, total=False):
    """What ``kafka()`` takes beside connection and topic: as a source, then as a target, then as both."""

    schema: str
    start: str | Mapping[int, int]
    watermark: Mapping[str, Any]
    max_offsets_per_epoch: int
    options: Mapping[str, str | int]

    key: str | Sequence[str]
    value: str
    tombstones: bool
    partitions: int
    replication_factor: int
    config: Mapping[str, str | int | bool]
    compression: str

    format: str


class PostgresKeywords(TypedDict, total=False):
    """What ``postgres()`` takes beside connection and table."""

    columns: Sequence[str]
    refresh: Every
    max_bytes: int


class SinkKeywords(TypedDict, total=False):
    """What ``Sink()`` takes beside the parts that most sinks have."""

    dead_letter: str | Mapping[str, Any]
    progress: str | Mapping[str, Any]
    writers: str
    output_mode: str
    checkpoint: str
    transaction_timeout: Every
    transactional_id_prefix: str


def kafka(connection: str, topic: str, **options: Unpack[KafkaKeywords]) -> dict[str, Any]:
    """Name a Kafka topic, as a source or as a target.

    Whether a keyword fits is checked where the role is known: in :func:`Sink`, with all other problems.

    :param connection: id of an Airflow connection of type ``kafka``.
    """
    return {"kafka": {"connection": connection, "topic": topic, **options}}


def postgres(connection: str, table: str, **options: Unpack[PostgresKeywords]) -> dict[str, Any]:
    """Name a Postgres table to join with.

    :param connection: id of an Airflow connection of type ``postgres``.
    :param table: ``schema.table``.
    """
    return {"postgres": {"connection": connection, "table": table, **options}}


def Sink(  # noqa: N802  it reads as what it makes
    *,
    name: str,
    source: str | Mapping[str, Any],
    target: str | Mapping[str, Any],
    select: Sequence[str] | None = None,
    where: str | None = None,
    query: str | None = None,
    lookups: Mapping[str, Any] | None = None,
    every: Every | None = None,
    **options: Unpack[SinkKeywords],
) -> SinkSpec:
    """Declare a sink.

    :param source: ``kafka(...)``, or ``"connection/topic"`` for raw bytes.
    :param target: ``kafka(...)``, or ``"connection/topic"``.
    :param select: expressions of the output; or write a whole ``query`` from ``source``.
    :param lookups: tables to join with, by the names that the query gives them.
    :param every: how often an endless sink runs an epoch; without it the sink takes what is there and ends.
    :raises ConfigurationError: with all problems at once.
    """
    given = {
        "name": name,
        "source": source,
        "target": target,
        "select": [select] if isinstance(select, str) else select,
        "where": where,
        "query": query,
        "lookups": lookups,
        "trigger": None if every is None else {"every": every},
        **options,
    }
    return SinkSpec.parse({key: value for key, value in given.items() if value is not None})
