"""From records that say what became of a row to the row itself, and whether it is gone; all in the JVM.

- ``upsert``: the value is the row, the record's key has its key. No value: the row is gone.
- ``debezium``: the value says by ``op`` what became of a row, and has it in ``before`` and ``after``; or it
  is the row, and says by ``__deleted`` whether it is gone, as Debezium's rewriting of deletes does. The
  record without a value behind a delete says the same once more. It is no less than a delete, for
  compaction may have left it alone; where its key does not tell a row it is left out.

A row that is gone has the columns of its key, and else nulls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from airflow_provider_sinks.core.query.views import INTERNAL
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.source import DELETED_FIELD, KafkaSource, SourceEnvelope
from airflow_provider_sinks.streaming import json_values
from airflow_provider_sinks.streaming.change_records import (
    KEY,
    KEY_ERROR,
    VALUE,
    VALUE_ERROR,
    Decode,
    Fields,
    declared,
    field_of,
    is_tombstone,
    of_rows,
    with_key,
    with_value,
)
from airflow_provider_sinks.streaming.unsent_values import is_unsent

_ROW, _IS_GONE = f"{INTERNAL}row", f"{INTERNAL}is_gone"


def read(records: DataFrame, source: KafkaSource, decode: Decode) -> tuple[DataFrame, list[Column], Column]:
    """Return the records with :data:`.json_values.ERROR`, the columns of their rows, and which are gone.

    Records that say nothing of a row are left out.
    """
    read_ = with_value(of_rows(records, source), source, decode)
    read_ = with_key(read_, source, decode)
    parts = (source, sql.col(VALUE), sql.col(KEY), Fields.of(read_))
    change = _Upsert(*parts) if source.envelope is SourceEnvelope.UPSERT else _Debezium(*parts)
    names = source.columns or ()
    told = read_.withColumn(_IS_GONE, sql.coalesce(change.is_gone, sql.lit(False)))
    told = told.withColumn(_ROW, sql.struct(*(change.column(name).alias(name) for name in names)))
    is_gone, null = sql.col(_IS_GONE), sql.lit(None).cast("string")
    errors = [*change.errors(), *_missing(source), *_not_sent(told), null]
    judged = told.withColumn(json_values.ERROR, sql.coalesce(*errors))
    is_read = sql.col(json_values.ERROR).isNull()
    has_value = {name: is_read if name in source.key_columns else is_read & ~is_gone for name in names}
    columns = [sql.when(has_value[name], field_of(sql.col(_ROW), name)).alias(name) for name in names]
    return judged, columns, is_read & is_gone


@dataclass(frozen=True)
class _Change(ABC):
    """What a record says.

    :param value: a struct, null where there is none.
    :param key: likewise.
    """

    source: KafkaSource
    value: Column
    key: Column
    fields: Fields

    @property
    def is_rewritten(self) -> Column:
        """Whether the row says that it is gone; null where it says nothing of it."""
        if DELETED_FIELD not in self.fields.value.names:
            return sql.lit(None).cast("boolean")
        return sql.lower(field_of(self.value, DELETED_FIELD).cast("string")) == "true"

    @property
    @abstractmethod
    def is_gone(self) -> Column:
        """Whether the row is gone; null is no."""

    @abstractmethod
    def column(self, name: str) -> Column:
        """Return a column of the row; of one that is gone at least those of the key."""

    @abstractmethod
    def errors(self) -> Iterator[Column]:
        """Give why a record cannot be read; the first that is not null counts."""

    def _null_keys(self) -> Iterator[Column]:
        for name in self.source.key_columns:
            is_null = field_of(sql.col(_ROW), name).isNull()
            yield sql.when(is_null, sql.lit(f"Column {name} of the key is null or missing."))


class _Upsert(_Change):
    @property
    def is_gone(self) -> Column:
        return is_tombstone(self.source) | sql.coalesce(self.is_rewritten, sql.lit(False))

    def column(self, name: str) -> Column:
        """Return a column: those of the key from the key, by which compaction goes too."""
        return field_of(self.key if name in self.source.key_columns else self.value, name)

    def errors(self) -> Iterator[Column]:
        yield sql.col(VALUE_ERROR)
        yield sql.when(sql.col("key").isNull(), sql.lit("The record has no key, and a row is one of a key."))
        yield sql.col(KEY_ERROR)
        yield from self._null_keys()


class _Debezium(_Change):
    @property
    def is_gone(self) -> Column:
        by_op = sql.coalesce(self._op == "d", sql.lit(False))
        by_row = self._op.isNull() & sql.coalesce(self.is_rewritten, sql.lit(False))
        return is_tombstone(self.source) | by_op | by_row

    def column(self, name: str) -> Column:
        """Return a column: of the event's row, else of the value itself, else of the record's key."""
        found = [one for one in (self._in_event(name), self._by_itself(name)) if one is not None]
        if name in self.source.key_columns:
            found.append(field_of(self.key, name))
        return sql.coalesce(*found)

    def errors(self) -> Iterator[Column]:
        yield sql.col(VALUE_ERROR)
        yield sql.when(~is_tombstone(self.source), self._no_change())
        some_null = [field_of(sql.col(_ROW), name).isNull() for name in self.source.key_columns]
        yield sql.when(reduce(Column.__or__, some_null), sql.col(KEY_ERROR))
        yield from self._null_keys()

    @property
    def _op(self) -> Column:
        return field_of(self.value, "op") if self.fields.row is not None else sql.lit(None).cast("string")

    def _in_event(self, name: str) -> Column | None:
        if self.fields.row is None or name not in self.fields.row.names:
            return None
        after = sql.when(self._op.isin("c", "r", "u"), field_of(field_of(self.value, "after"), name))
        before = self.fields.value["before"].dataType if "before" in self.fields.value.names else None
        if name not in self.source.key_columns or not isinstance(before, StructType):
            return after
        return after.when(self._op == "d", field_of(field_of(self.value, "before"), name))

    def _by_itself(self, name: str) -> Column | None:
        if DELETED_FIELD not in self.fields.value.names or name not in self.fields.value.names:
            return None
        return sql.when(self._op.isNull(), field_of(self.value, name))

    def _no_change(self) -> Column:
        op = self._op
        if self.fields.row is None:
            return sql.lit(None).cast("string")
        no_op = sql.lit("The value is no change of a row: it has no op.")
        known = {"t": "truncates the table", "m": "is a message"}
        told = sql.when(op.isNull() & self.is_rewritten.isNull(), no_op)
        for name, what in known.items():
            told = told.when(
                op == name, sql.lit(f"The change {what} (op {name}), and no row stands for that.")
            )
        unknown = sql.concat(sql.lit("The change has op "), op, sql.lit(", which is none of c, r, u and d."))
        told = told.when(~op.isin("c", "r", "u", "d"), unknown)
        no_after = sql.concat(sql.lit("The change has op "), op, sql.lit(" and no after."))
        return told.when(op.isin("c", "r", "u") & field_of(self.value, "after").isNull(), no_after)


def _missing(source: KafkaSource) -> Iterator[Column]:
    if source.format is not Format.JSON:
        return
    for field in declared(source):
        if not field.nullable and field.name not in source.key_columns:
            is_missing = ~sql.col(_IS_GONE) & field_of(sql.col(_ROW), field.name).isNull()
            what = f"field {field.name} is missing or null, and it is required"
            yield sql.when(is_missing, sql.lit(f"The value does not fit the schema: {what}."))


def _not_sent(told: DataFrame) -> Iterator[Column]:
    for field in cast("StructType", told.schema[_ROW].dataType):
        found = is_unsent(field_of(sql.col(_ROW), field.name), field.dataType)
        if found is not None:
            what = f"The change lacks column {field.name}, which did not change and is large; {_HOW_SENT}"
            yield sql.when(~sql.col(_IS_GONE) & found, sql.lit(what))


_HOW_SENT = "with REPLICA IDENTITY FULL the database sends it."
