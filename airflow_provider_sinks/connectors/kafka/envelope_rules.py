"""What must hold between the envelope of a Kafka target and the rest of its sink; see :mod:`.rules`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.kafka.envelope_options import (
    Deletes,
    WrittenEnvelope,
)
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.spec.parts import Format, Tombstones
from airflow_provider_sinks.core.spec.rules import QUERY, Rule, needs
from airflow_provider_sinks.core.spec.sink import Writers
from airflow_provider_sinks.core.spec.source import DELETED_FIELD

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.spec import KafkaSink

_T = "target.kafka"


def _key(spec: KafkaSink) -> Iterator[Problem]:
    kafka = spec.target.kafka
    if kafka.replaces and not kafka.key:
        what = f"is missing: with envelope {kafka.written_as} a row replaces by it"
        yield Problem(f"{_T}.key", what, "key: [column], or leave envelope out")


def _tombstones(spec: KafkaSink) -> Iterator[Problem]:
    """Give words that belong to another envelope: one without replacing takes true and false."""
    kafka, where = spec.target.kafka, f"{_T}.tombstones"
    if kafka.replaces and isinstance(kafka.tombstones, bool):
        right = Tombstones.DELETE if kafka.tombstones else Tombstones.IGNORE
        said = str(kafka.tombstones).lower()
        yield Problem(where, f"{said} is for envelope append", f"tombstones: {right}")
    elif not kafka.replaces and isinstance(kafka.tombstones, Tombstones):
        right_word = "true" if kafka.tombstones is Tombstones.DELETE else "false"
        hint = f"tombstones: {right_word}, or envelope: upsert, with a key"
        yield Problem(where, f"{kafka.tombstones} is for envelope upsert and debezium", hint)


def _deletes(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, f"{_T}.deletes"
    if kafka.deletes is None:
        return
    if not kafka.is_debezium:
        other = (
            "a delete is a tombstone" if kafka.written_as is WrittenEnvelope.UPSERT else "tombstones: true"
        )
        what = f"is for envelope debezium, and this one is {kafka.written_as}"
        yield Problem(where, what, f"leave it out ({other}), or envelope: debezium")
    elif not kafka.deletes_rows:
        yield Problem(
            where, "says how to write what tombstones: ignore never writes", "leave one of them out"
        )


def _compact_epoch(spec: KafkaSink) -> Iterator[Problem]:
    kafka = spec.target.kafka
    if not kafka.compact_epoch:
        return
    if not kafka.replaces:
        what = "needs rows that replace each other, and envelope append keeps each"
        yield Problem(f"{_T}.compact_epoch", what, "envelope: upsert, with a key, or leave it out")
    if spec.writers is Writers.PER_PARTITION:
        what = "per_partition does not go with target.kafka.compact_epoch: an epoch brings each key once"
        yield Problem("writers", what, "leave writers out, or compact_epoch")


def _schemas_enable(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, f"{_T}.schemas_enable"
    if not kafka.schemas_enable:
        return
    if kafka.format is not Format.JSON:
        what = f"is for format json, and this one is {kafka.format}"
        has_schema = "leave it out: the registry has the schema"
        yield Problem(where, what, has_schema if kafka.format.is_registered else "leave it out")
    elif kafka.value is not None:
        what = "does not go with value: a schema is made of several columns"
        yield Problem(where, what, "leave value out, and select its fields, such as place.*")


def _debezium(spec: KafkaSink) -> Iterator[Problem]:
    kafka = spec.target.kafka
    if not kafka.is_debezium:
        return
    if kafka.format in (Format.TEXT, Format.BYTES):
        what = f"debezium does not go with format {kafka.format}: its value is a record"
        yield Problem(f"{_T}.envelope", what, "format: json, or envelope: upsert")
    elif kafka.value is not None:
        what = "does not go with envelope debezium: after has every column"
        yield Problem(f"{_T}.value", what, "leave it out, and select its fields, such as place.*")
    if kafka.key_in_value is False:
        what = "false does not go with envelope debezium: after is the whole row"
        yield Problem(f"{_T}.key_in_value", what, "leave it out, or envelope: upsert")


def _output_columns(spec: KafkaSink) -> Iterator[Problem]:
    plan, kafka = spec.readable_shape, spec.target.kafka
    if plan is None or plan.problems or plan.unknown_columns or plan.columns is None:
        return
    if kafka.marks_deletes and DELETED_FIELD in plan.columns:
        what = f"{Deletes.REWRITE} adds {DELETED_FIELD!r}, and the output has such a column"
        yield Problem(f"{_T}.deletes", what, f"name the column otherwise: {DELETED_FIELD} AS deleted")
    is_record = kafka.value is None and kafka.format not in (Format.TEXT, Format.BYTES)
    if kafka.replaces and kafka.deletes_rows and is_record and {*plan.columns} <= {*kafka.key}:
        what = "has every column of the output: each row would be a delete"
        hint = "select a column that is not in the key, or write tombstones: ignore"
        yield Problem(f"{_T}.key", what, hint)


ENVELOPE_RULES: tuple[Rule, ...] = (
    (needs("target"), _key),
    (needs("target"), _tombstones),
    (needs("target"), _deletes),
    (needs("target", "writers"), _compact_epoch),
    (needs("target"), _schemas_enable),
    (needs("target"), _debezium),
    (needs(*QUERY, "target"), _output_columns),
)
