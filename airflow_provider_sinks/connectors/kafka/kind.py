"""Kafka as a kind of target, and of source: what its entry point leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import HeldUp, Say
from airflow_provider_sinks.connectors.kafka.connection_type import KAFKA
from airflow_provider_sinks.connectors.kafka.envelope_options import WrittenEnvelope
from airflow_provider_sinks.connectors.kafka.message_options import NOW, SOURCE
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_sink
from airflow_provider_sinks.connectors.schema_registry.connection_type import SCHEMA_REGISTRY
from airflow_provider_sinks.connectors.source import SourceKind
from airflow_provider_sinks.connectors.target_form import TargetForm
from airflow_provider_sinks.core.checks.check import Check
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.fields import TOPIC_PATTERN
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from airflow_provider_sinks.connectors.kafka.connector import KafkaConnector
    from airflow_provider_sinks.connectors.kafka.letter_copies import KafkaLetterCopies
    from airflow_provider_sinks.connectors.kafka.source_topic import SourceTopic
    from airflow_provider_sinks.connectors.kafka.stored_letters import KafkaLetters

_FORM = TargetForm(
    fields={
        "target": {"type": "string", "pattern": TOPIC_PATTERN, "title": "Target topic"},
        "key": {"type": "string", "minLength": 1, "title": "Column that is the key"},
        "envelope": {
            "type": "string",
            "enum": [one.value for one in WrittenEnvelope],
            "default": WrittenEnvelope.APPEND.value,
            "title": "What a row does",
            "description": "append: each is kept; upsert: it replaces by its key; debezium: it is a change.",
        },
        "compact_epoch": {
            "type": "boolean",
            "default": False,
            "title": "Only the newest row of each key in an epoch",
        },
        "schemas_enable": {
            "type": "boolean",
            "default": False,
            "title": "Each message has its schema, as Kafka Connect writes JSON",
        },
        "key_in_value": {"type": "boolean", "default": True, "title": "The key is in the value too"},
        "headers": {
            "type": ["null", "object", "string"],
            "additionalProperties": {"type": "string"},
            "default": None,
            "title": "Headers",
            "description": 'Columns by names of headers: {"trace": "trace"}; "source": those of the record.',
        },
        "timestamp": {
            "type": "string",
            "minLength": 1,
            "default": NOW,
            "title": "Time of a message",
            "description": "now, source (the record's own), or a column with a time.",
        },
        "partition_by": {
            "type": ["null", "string"],
            "default": None,
            "title": "Columns that choose the partition",
            "description": "With commas between them; the key where there are none.",
        },
    },
    target=(
        '{"kafka": {"connection": {{ params.connection | tojson }}, "topic": {{ params.target | tojson }},'
        ' "key": [{{ params.key | tojson }}],'
        f' "envelope": {{{{ (none if params.envelope == "{WrittenEnvelope.APPEND}"'
        " else params.envelope) | tojson }},"
        ' "compact_epoch": {{ (params.compact_epoch or none) | tojson }},'
        ' "schemas_enable": {{ (params.schemas_enable or none) | tojson }},'
        ' "key_in_value": {{ (none if params.key_in_value else false) | tojson }},'
        ' "headers": {{ (params.headers or none) | tojson }},'
        f' "timestamp": {{{{ (params.timestamp if params.timestamp in ("{NOW}", "{SOURCE}")'
        ' else {"column": params.timestamp}) | tojson }},'
        ' "partition_by":'
        ' {{ ((params.partition_by or "").split(",") | map("trim") | select | list or none) | tojson }}}}'
    ),
)


class KafkaKind:
    """See :class:`.kind.ConnectorKind` and :class:`.source.SourceKind`."""

    sink = KafkaSink
    connection = KAFKA
    connections_beside = (SCHEMA_REGISTRY,)
    """What a sink may name beside the connection of its target."""
    form = _FORM
    writer_module = "airflow_provider_sinks.connectors.kafka.factory"

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> KafkaConnector:
        """Return the Kafka target of a sink; the client library is loaded now."""
        from airflow_provider_sinks.connectors.kafka.connector import KafkaConnector

        return KafkaConnector(spec, connections, read_seconds, held_up, say)

    def source(self, spec: SinkSpec, connections: ResolvedConnections) -> SourceTopic:
        """Return the topic that a sink reads; the client library is loaded now."""
        from airflow_provider_sinks.connectors.kafka.source_topic import SourceTopic

        read = spec.source.kafka
        return SourceTopic(connections.get(read.connection, KafkaOptions), read.topic)

    def letter_copies(self, spec: SinkSpec, connections: ResolvedConnections) -> KafkaLetterCopies:
        """Return the copies in the topic that a replay reads."""
        from airflow_provider_sinks.connectors.kafka.letter_copies import KafkaLetterCopies

        read = spec.source.kafka
        options = connections.get(read.connection, KafkaOptions)
        return KafkaLetterCopies(options.with_files_read(), read.topic, spec.name)

    def letters(self, spec: SinkSpec, connections: ResolvedConnections) -> KafkaLetters:
        """Return the letters of the sink's dead-letter topic."""
        from airflow_provider_sinks.connectors.kafka.stored_letters import KafkaLetters

        sink = kafka_sink(spec)
        options = connections.get(sink.target.kafka.connection, KafkaOptions)
        assert sink.dead_letter is not None  # noqa: S101  whoever asks has looked
        return KafkaLetters(options.with_files_read(), sink.dead_letter.topic)

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        """Encode the columns, and throw the result away."""
        from airflow_provider_sinks.connectors.kafka.encoding import encode
        from airflow_provider_sinks.connectors.kafka.written_schemas import demand_writable

        sink = kafka_sink(spec)
        demand_writable(sink, output.schema.jsonValue())
        encode(output, sink, None).over(output)

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        """Return none: topics, of the source too, are judged with their cluster."""
        del spec, options
        return ()

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        """Fence the run's ids, which ends their transactions."""
        from airflow_provider_sinks.connectors.kafka.open_transactions import abort_open_transactions

        sink = kafka_sink(spec)
        options = connections.get(sink.target.kafka.connection, KafkaOptions)
        abort_open_transactions(options, sink, run, writers, seconds)


KIND: SourceKind = KafkaKind()
