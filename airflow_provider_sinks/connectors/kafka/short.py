"""How a topic is named in the short Python API, as a source or as a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack


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


def kafka(connection: str, topic: str, **options: Unpack[KafkaKeywords]) -> dict[str, Any]:
    """Name a Kafka topic, as a source or as a target.

    Whether a keyword fits is checked where the role is known: in :func:`Sink`, with all other problems.

    :param connection: id of an Airflow connection of type ``kafka``.
    """
    return {"kafka": {"connection": connection, "topic": topic, **options}}
