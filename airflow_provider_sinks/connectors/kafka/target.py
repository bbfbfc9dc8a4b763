"""What a Kafka topic is written with: the options of ``target.kafka``."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictBool, model_validator

from airflow_provider_sinks.connectors.kafka.envelope_options import (
    Deletes,
    TombstoneRule,
    WrittenEnvelope,
)
from airflow_provider_sinks.connectors.kafka.message_options import SOURCE, Headers, MessageTime, TimeColumn
from airflow_provider_sinks.connectors.kafka.topic_options import Config, Count, Replication
from airflow_provider_sinks.core.schemas.avro_names import NAME
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME
from airflow_provider_sinks.core.schemas.subjects import Part as PartOfRecord
from airflow_provider_sinks.core.spec.fields import Columns, ConnectionId, Text, TopicName
from airflow_provider_sinks.core.spec.parts import (
    ConnectedTarget,
    Format,
    Target,
    Tombstones,
    address,
)
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.schema_options import (
    AutoRegister,
    DeclaredSchema,
    Naming,
    Registering,
    SchemaChoice,
    declared,
)
from airflow_provider_sinks.core.spec.source import VALUE, Source


def _record_name(value: str) -> str:
    if not all(NAME.fullmatch(part) for part in value.split(".")):
        raise UnfitError(f"{value!r} is no name in Avro", "letters, digits, _ and dots, such as shop.Order")
    return value


RecordName = Annotated[Text, AfterValidator(_record_name)]


class Compression(enum.StrEnum):
    """How the target's batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class KeyFormat(enum.StrEnum):
    """How a key is written whose schema a registry has; otherwise it is text, or JSON of several columns."""

    AVRO = "avro"
    JSON_SCHEMA = "json_schema"
    PROTOBUF = "protobuf"


class KafkaTarget(ConnectedTarget):
    """A Kafka topic to write."""

    topic: TopicName
    key: Columns = Field(
        default=(), description="columns of the key; none: the source record's key goes through"
    )
    format: Format = Format.JSON
    key_format: KeyFormat | None = None
    value: Text | None = None
    registry: ConnectionId | None = Field(
        default=None, description="id of an Airflow connection of type http to a schema registry"
    )
    schema_: SchemaChoice | None = Field(
        default=None, alias="schema", description="of the values; none: it is made of the query's types"
    )
    key_schema: SchemaChoice | None = None
    record: RecordName | None = Field(
        default=None, description="full name of the record that is made of the query's types"
    )
    subjects: Naming | None = None
    auto_register: Registering | None = None
    envelope: WrittenEnvelope | None = Field(
        default=None, description="append, the default; upsert: a row replaces by its key; debezium: a change"
    )
    tombstones: TombstoneRule = False
    deletes: Deletes | None = Field(
        default=None, description="how envelope debezium writes a delete; with_tombstone is the default"
    )
    compact_epoch: StrictBool | None = Field(
        default=None, description="true: of the rows of one key in an epoch only the newest is written"
    )
    schemas_enable: StrictBool | None = Field(
        default=None, description="true: JSON as Kafka Connect writes it, with the schema in each message"
    )
    key_in_value: StrictBool | None = Field(
        default=None, description="false: the columns of the key are left out of a value of several columns"
    )
    headers: Headers | None = None
    timestamp: MessageTime | None = None
    partition_by: Columns | None = Field(
        default=None, description="columns that choose the partition in the place of the key"
    )
    partitions: Count | None = None
    replication_factor: Replication | None = None
    config: Config = Field(default_factory=dict)
    compression: Compression = Compression.LZ4

    @model_validator(mode="before")
    @classmethod
    def _deletes_by_default(cls, value: Any) -> Any:
        """Let a row without values be a delete where rows replace each other, unless the spec says it."""
        if not isinstance(value, Mapping) or "tombstones" in value:
            return value
        replaces = value.get("envelope") in (WrittenEnvelope.UPSERT, WrittenEnvelope.DEBEZIUM)
        return {**value, "tombstones": Tombstones.DELETE} if replaces else value

    @property
    def written_as(self) -> WrittenEnvelope:
        """What a message says of its row, resolved."""
        return self.envelope or WrittenEnvelope.APPEND

    @property
    def is_debezium(self) -> bool:
        """Whether a value is Debezium's envelope."""
        return self.envelope is WrittenEnvelope.DEBEZIUM

    @property
    def replaces(self) -> bool:
        """Whether rows of one key replace each other: none is null, and each stays in its partition."""
        return self.written_as is not WrittenEnvelope.APPEND

    @property
    def deletes_rows(self) -> bool:
        """Whether a row whose columns outside of the key are all null is a delete."""
        return self.tombstones is True or self.tombstones is Tombstones.DELETE

    @property
    def written_deletes(self) -> Deletes:
        """How Debezium's envelope has a delete, resolved."""
        return self.deletes or Deletes.WITH_TOMBSTONE

    @property
    def adds_tombstones(self) -> bool:
        """Whether a tombstone stands behind the message of a delete."""
        is_added = self.written_deletes is Deletes.WITH_TOMBSTONE
        return self.is_debezium and self.deletes_rows and is_added

    @property
    def marks_deletes(self) -> bool:
        """Whether each row says if it is a delete."""
        return self.is_debezium and self.deletes_rows and self.written_deletes is Deletes.REWRITE

    @property
    def has_object_keys(self) -> bool:
        """Whether a key is an object also where it is one column, as Kafka Connect writes keys."""
        return self.key_format is None and bool(self.key) and bool(self.is_debezium or self.schemas_enable)

    @property
    def registered_parts(self) -> tuple[PartOfRecord, ...]:
        """Those of key and value whose schemas a registry has."""
        key = (PartOfRecord.KEY,) if self.key_format is not None else ()
        return (*key, PartOfRecord.VALUE) if self.format.is_registered else key

    def format_of(self, part: PartOfRecord) -> Format:
        """Return the format of a part whose schema a registry has."""
        named = self.key_format if part is PartOfRecord.KEY else None
        return self.format if named is None else Format(named.value)

    @property
    def naming(self) -> str:
        """How subjects are named, resolved."""
        return self.subjects or TOPIC_NAME

    @property
    def registering(self) -> AutoRegister:
        """Whether a start registers what a subject has not yet, resolved."""
        return self.auto_register or AutoRegister.TRUE

    def value_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that become a value of several columns.

        :param names: of the query's columns.
        """
        return [name for name in names if self.key_in_value is not False or name not in self.key]

    @property
    def passes_headers(self) -> bool:
        """Whether the source record's headers go through."""
        return self.headers == SOURCE

    @property
    def header_columns(self) -> Mapping[str, str]:
        """The columns that become headers, by the names of those."""
        return self.headers if isinstance(self.headers, Mapping) else {}

    @property
    def passes_time(self) -> bool:
        """Whether the source record's time goes through."""
        return self.timestamp == SOURCE

    @property
    def has_time(self) -> bool:
        """Whether messages have another time than that of their writing."""
        return self.passes_time or self.time_column is not None

    @property
    def time_column(self) -> str | None:
        """The column that has the time of a message, where there is one."""
        return self.timestamp.column if isinstance(self.timestamp, TimeColumn) else None

    @property
    def columns_beside(self) -> Iterator[tuple[str, str]]:
        """Each column that a message carries beside key and value, behind the option that names it."""
        yield from ((f"headers.{header}", column) for header, column in self.header_columns.items())
        if self.time_column is not None:
            yield "timestamp.column", self.time_column
        yield from ((f"partition_by[{index}]", name) for index, name in enumerate(self.partition_by or ()))

    @property
    def partition_columns_beside_key(self) -> list[str]:
        """The columns that choose the partition and are not in the key: a key may be in two partitions."""
        return [name for name in self.partition_by or () if name not in self.key]

    @property
    def takes_whole_records(self) -> bool:
        """Whether a message has the key and the value of its record, and nothing beside them."""
        is_plain = self.format in (Format.TEXT, Format.BYTES) and self.value in (None, VALUE)
        changes_key = bool(self.key or self.key_format or self.partition_by)
        carries = bool(self.headers or self.has_time or self.replaces or self.deletes_rows)
        return is_plain and not (changes_key or carries or self.compact_epoch or self.schemas_enable)

    def declared(self, part: PartOfRecord) -> DeclaredSchema | None:
        """Return the schema of a part, where the spec says which one it is."""
        return declared(self.key_schema if part is PartOfRecord.KEY else self.schema_)


class KafkaTargetChoice(Target):
    """Where rows go. ``connection/topic`` is its short form."""

    short_form = Source.short_form

    kafka: KafkaTarget

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return address(value, "kafka", "topic")
