"""Which sinks take each record of their source as it is: such rows need no Spark on their way."""

from __future__ import annotations

from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers
from airflow_provider_sinks.core.spec.source import VALUE

_AS_IT_IS = (None, ("*",), (VALUE,))


def takes_whole_records(spec: SinkSpec) -> bool:
    """Whether the rows of a sink are the records of its source, all of them, with their keys and values.

    Not where records may be set aside: a letter carries more of a record than that. Nor where the user tells
    Spark how to read.
    """
    source = spec.source.kafka
    is_read_plainly = source.format in (Format.TEXT, Format.BYTES) and not (
        source.key_as or source.watermark or source.has_deletes or source.options
    )
    is_written_plainly = not (spec.dead_letter or spec.replay) and spec.writer_mode is Writers.PER_PARTITION
    is_asked_plainly = not (spec.query or spec.where or spec.lookups) and spec.select in _AS_IT_IS
    return is_read_plainly and is_written_plainly and is_asked_plainly
