"""Whether a topic that a new sink is to write into holds the progress of sinks, whatever its name is.

A row in a progress topic may look like a record: whoever chooses its key and its columns would tell another
sink where to go on. Names alone do not tell, because a spec may name its progress topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.sample import newest_records
from airflow_provider_sinks.core.decision.facts import ResourceFacts, Unfit
from airflow_provider_sinks.core.progress.record import ProgressFormatError, ProgressKey, ProgressRecord

_Facts = TypeVar("_Facts", bound=ResourceFacts)


def as_output(topic: _Facts, options: KafkaOptions) -> _Facts:
    """Say so where a topic holds progress.

    A progress topic has one partition, and its newest records are progress. What may not be read cannot be
    judged: then the topic is taken as it is.

    :param topic: that a sink without any record is to write into.
    :raises UnavailableError: the cluster could not be asked.
    """
    if topic.partitions != 1 or not topic.records:
        return topic
    ranges = {number: range(topic.low.get(number, 0), high) for number, high in topic.high.items()}
    sink = sink_in(newest_records(options, topic.name, ranges))
    return replace(topic, unfit=_progress_of(sink)) if sink else topic


def sink_in(records: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the name of a sink whose progress is among some records, or nothing.

    :param records: keys and values.
    """
    for key, value in records:
        found = ProgressKey.decode(key)
        if found is not None and _is_record(value):
            return found.sink
    return ""


def _is_record(value: bytes) -> bool:
    try:
        ProgressRecord.decode(value)
    except ProgressFormatError:
        return False
    return True


def _progress_of(sink: str) -> Unfit:
    return Unfit(
        f'holds the progress of sink "{sink}"',
        "Rows in it would be taken for progress: that sink would stop, or lose rows or write them again.",
        "Name another topic.",
        is_others=True,
    )
