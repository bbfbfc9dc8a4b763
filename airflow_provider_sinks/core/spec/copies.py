"""Which sinks take each record of their source as it is: such rows need no Spark on their way.

The driver of such a sink plans epochs, and its JVM has no row in its hands.
"""

from __future__ import annotations

from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.source import VALUE

SETTING = "spark.sinks.copyWithoutSpark"
"""The Spark setting that lets records pass through Spark all the same: ``false``."""
_AS_IT_IS = (None, ("*",), (VALUE,))


def copies_without_spark(spec: SinkSpec, setting: object) -> bool:
    """Whether a sink copies whole records, and is to leave Spark out.

    :param setting: what the user says by :data:`SETTING`; ``None`` for nothing.
    """
    is_left_to_us = str(setting).strip().lower() != "false"
    return is_left_to_us and spec.takes_whole_records and _rows_are_records(spec)


def _rows_are_records(spec: SinkSpec) -> bool:
    """Whether the rows of a sink are the records of its source, all of them, with their keys and values.

    Not where records may be set aside: a letter carries more of a record than that. Nor where the user tells
    Spark how to read.
    """
    source = spec.source.kafka
    is_read_plainly = source.format in (Format.TEXT, Format.BYTES) and not (
        source.key_as or source.watermark or source.has_deletes or source.options
    )
    is_written_plainly = not (spec.dead_letter or spec.replay)
    is_asked_plainly = not (spec.query or spec.where or spec.lookups) and spec.select in _AS_IT_IS
    return is_read_plainly and is_written_plainly and is_asked_plainly
