"""Which partition each row goes to, where columns choose it in the place of the key.

As Kafka's Java producer does by a key: the hash of the bytes, modulo the partitions that the topic has now. A
null chooses none: the rows of a batch that have one go to a partition together, another one each time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from airflow_provider_sinks.connectors.kafka.columns import PARTITION_KEY, is_null
from airflow_provider_sinks.connectors.kafka.murmur2 import murmur2, partitions_of
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.core.errors import UnavailableError


class RowPartitions:
    """The partitions of a writer's topic, as many as there were when they were last counted.

    :param options: the connection; holds secrets and is never printed.
    :param topic: the data topic.
    :param grown: called when there are other ones than before; has the producer ask for them too.
    """

    def __init__(self, options: KafkaOptions, topic: str, grown: Callable[[], object]) -> None:
        self._options = options
        self._topic = topic
        self._grown = grown
        self._count = 0
        self._is_old = True

    def forget(self) -> None:
        """Count anew when the next rows come: a topic may have grown."""
        self._is_old = True

    def of(self, rows: pa.RecordBatch) -> np.ndarray | None:
        """Return the partition of each row; ``None`` where the key chooses.

        :raises UnavailableError: the partitions could not be counted.
        """
        if PARTITION_KEY not in rows.schema.names:
            return None
        if self._is_old:
            before, self._count, self._is_old = self._count, self._counted(), False
            if before not in (0, self._count):
                self._grown()
        column = rows.column(PARTITION_KEY)
        found = partitions_of(murmur2(column), self._count)
        if column.null_count:
            found[is_null(column)] = secrets.randbelow(self._count)
        return found

    def _counted(self) -> int:
        facts = KafkaClient.shared(self._options).describe_topics([self._topic])[self._topic]
        if not facts.partitions:
            raise UnavailableError(
                f'the partitions of topic "{self._topic}" could not be counted',
                facts.reason or "It is not there.",
                "Allow Describe on the topic; the task is repeated.",
            )
        return facts.partitions
