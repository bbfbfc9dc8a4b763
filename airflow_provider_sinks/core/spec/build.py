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
from typing import Any, Required, TypedDict, Unpack

from airflow_provider_sinks.core.spec.sink import SinkSpec

Every = timedelta | str


class KafkaKeywords(TypedDict, total=False):
    """What ``kafka()`` takes beside connection and topic: as a source, then as a target, then as both."""

    schema: str | Mapping[str, Any]
    key_as: Mapping[str, Any]
    start: str | Mapping[int, int]
    watermark: Mapping[str, Any]
    max_offsets_per_epoch: int
    options: Mapping[str, str | int]

    key: str | Sequence[str]
    key_format: str
    key_schema: str | Mapping[str, Any]
    record: str
    auto_register: bool | str
    value: str
    tombstones: bool | str
    deletes: str
    compact_epoch: bool
    schemas_enable: bool
    key_in_value: bool
    headers: str | Mapping[str, str]
    timestamp: str | Mapping[str, str]
    partition_by: str | Sequence[str]
    partitions: int
    replication_factor: int
    config: Mapping[str, str | int | bool]
    compression: str

    format: str
    envelope: str
    registry: str
    subjects: str


class PostgresKeywords(TypedDict, total=False):
    """What ``postgres()`` takes beside connection and table: as a lookup, as a target, then as both."""

    refresh: Every
    max_bytes: int

    key: str | Sequence[str]
    mode: str
    create: bool
    tombstones: str
    progress: str
    on_schema_change: str

    columns: Sequence[str]


class IcebergKeywords(TypedDict, total=False):
    """What ``iceberg()`` takes beside catalog and table."""

    key: str | Sequence[str]
    mode: str
    create: bool
    columns: Sequence[str]
    partition_by: str | Sequence[str]
    properties: Mapping[str, str | int | bool]
    on_schema_change: str


class DeltaKeywords(TypedDict, total=False):
    """What ``delta()`` takes beside the path."""

    connection: str
    key: str | Sequence[str]
    mode: str
    create: bool
    columns: Sequence[str]
    partition_by: str | Sequence[str]
    on_schema_change: str


class SparkFormatKeywords(TypedDict, total=False):
    """What ``spark_format()`` takes beside the format."""

    path: str
    connection: str
    table: str
    options: Mapping[str, str | int | bool]


class SinkKeywords(TypedDict, total=False):
    """What ``Sink()`` takes: first what each sink must have, then what most have, then the rest."""

    name: Required[str]
    source: Required[str | Mapping[str, Any]]
    target: Required[str | Mapping[str, Any]]

    select: str | Sequence[str] | None
    where: str | None
    query: str | None
    lookups: Mapping[str, Any] | None
    every: Every | None

    dead_letter: str | Mapping[str, Any]
    progress: str | Mapping[str, Any]
    writers: str
    output_mode: str
    checkpoint: str
    transaction_timeout: Every
    transactional_id_prefix: str
    patience: Every


def kafka(connection: str, topic: str, **options: Unpack[KafkaKeywords]) -> dict[str, Any]:
    """Name a Kafka topic, as a source or as a target.

    Whether a keyword fits is checked where the role is known: in :func:`Sink`, with all other problems.

    :param connection: id of an Airflow connection of type ``kafka``.
    """
    return {"kafka": {"connection": connection, "topic": topic, **options}}


def postgres(connection: str, table: str, **options: Unpack[PostgresKeywords]) -> dict[str, Any]:
    """Name a Postgres table, as a target or to join with.

    :param connection: id of an Airflow connection of type ``postgres``.
    :param table: ``schema.table``.
    """
    return {"postgres": {"connection": connection, "table": table, **options}}


def iceberg(catalog: str, table: str, **options: Unpack[IcebergKeywords]) -> dict[str, Any]:
    """Name an Iceberg table, as a target.

    :param catalog: id of an Airflow connection of type ``iceberg``.
    :param table: ``namespace.table``.
    """
    return {"iceberg": {"catalog": catalog, "table": table, **options}}


def delta(path: str, **options: Unpack[DeltaKeywords]) -> dict[str, Any]:
    """Name a Delta table, as a target.

    :param path: its folder, or ``s3://bucket/folder``, to which a connection of type ``delta`` leads.
    """
    return {"delta": {"path": path, **options}}


def spark_format(format: str, **options: Unpack[SparkFormatKeywords]) -> dict[str, Any]:  # noqa: A002  Spark's word
    """Name a format of Spark's, as a target: Spark's own writer writes it, and Spark's own guarantee holds.

    :param format: ``parquet``, ``orc``, ``csv``, ``json``, ``text``, ``jdbc``, ``console``, ``noop``, or any
        other that Spark has installed.
    """
    return {"spark": {"format": format, **options}}


def Sink(**keywords: Unpack[SinkKeywords]) -> SinkSpec:  # noqa: N802  it reads as what it makes
    """Declare a sink. One that is missing or misspelt is said with all other problems.

    - ``source``: ``kafka(...)``, or ``"connection/topic"`` for raw bytes.
    - ``target``: ``kafka(...)``, ``postgres(...)``, ``iceberg(...)``, ``delta(...)``,
      ``spark_format(...)``, or ``"connection/topic"``.
    - ``select``: expressions of the output; or write a whole ``query`` from ``source``.
    - ``lookups``: tables to join with, by the names that the query gives them.
    - ``every``: how often an endless sink runs an epoch; without it the sink takes what is there and ends.

    :raises ConfigurationError: with all problems at once.
    """
    given: dict[str, Any] = {key: value for key, value in keywords.items() if value is not None}
    if isinstance(given.get("select"), str):
        given["select"] = [given["select"]]
    if "every" in given:
        given["trigger"] = {"every": given.pop("every")}
    return SinkSpec.parse(given, reads_files=True)
