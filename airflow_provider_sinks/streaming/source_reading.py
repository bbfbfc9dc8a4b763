"""By what a job reads the records of its source: nothing more than the spec says, or what a registry adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.schema_registry.source_schemas import (
    reader_schemas,
    source_registry,
    with_schemas,
)
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.evolution import OnSchemaChange
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.written_schemas import WrittenSchemas


@dataclass(frozen=True)
class SourceReading:
    """What stays the same for a whole run: schemas to read by are those of its start.

    :param spec: the sink, with those schemas written down.
    """

    spec: SinkSpec
    written: WrittenSchemas | None = None

    @classmethod
    def of(
        cls, spark: SparkSession, spec: SinkSpec, connections: ResolvedConnections, patience: Patience
    ) -> SourceReading:
        """Ask the registry, where there is one.

        :raises ConfigurationError: Spark lacks its Avro jar, or the schema cannot be used.
        :raises UnavailableError: the registry did not answer for longer than one may wait.
        """
        if Format.AVRO in spec.registered_formats:
            demand_avro(spark, spec.name)
        registry = source_registry(spec, connections)
        if registry is None:
            return cls(spec)
        readers = patience.ask(registry.service, lambda: reader_schemas(spec.source.kafka, registry))
        for reader in readers:
            say(f"the source's {reader.part} is read by {reader.schema.name or 'a type'}, of {reader.origin}")
        takes_all = spec.shape.columns is None  # by a star
        policy = spec.on_schema_change if takes_all else OnSchemaChange.REFUSE
        written = WrittenSchemas(registry, readers, patience, policy)
        written.foresee()
        return cls(with_schemas(spec, readers), written)

    def learns(self, error: BaseException) -> bool:
        """Return whether a task failed for a schema that had not been asked for, and is known now."""
        return self.written is not None and self.written.learns(error)

    def epoch_is_whole(self) -> None:
        """Say that the tries of an epoch are over."""
        if self.written is not None:
            self.written.epoch_is_whole()

    def close(self) -> None:
        """End the client."""
        if self.written is not None:
            self.written.close()


def packages_of(spec: SinkSpec) -> tuple[str, ...]:
    """Return the packages that tasks read and write with, beside those of the target's writers."""
    return ("google.protobuf", "ptars") if Format.PROTOBUF in spec.registered_formats else ()


def demand_avro(spark: SparkSession, sink: str) -> None:
    """Raise :class:`ConfigurationError` where Spark lacks its Avro jar: it is no part of Spark.

    Spark itself has the functions' names; what they stand for is in the jar.
    """
    jvm: Any = spark._jvm  # noqa: SLF001  PySpark has no word for it
    if isinstance(jvm.org.apache.spark.sql.avro.AvroDataToCatalyst, JavaClass):
        return
    raise ConfigurationError(
        f'Spark of sink "{sink}" cannot read and write Avro',
        (),
        'Give packages="org.apache.spark:spark-avro_2.13:<version of Spark>", or jars=.',
    )
