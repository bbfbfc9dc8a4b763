"""The driver's own producer, in the hands of a reset or rewind: fences the driver, then announces.

One producer does both. A reset that a newer start has overtaken is therefore stopped by its own announcement,
instead of fencing the newer start and announcing what is no longer true.
"""

from __future__ import annotations

import contextlib
from typing import Self

from confluent_kafka import KafkaException, Producer

from airflow_provider_sinks.connectors.kafka.connection import Complaints
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.kafka.transactions import (
    fencing_failure,
    producer_config,
    transactional_id,
    warm_up,
)
from airflow_provider_sinks.core.connection.resolved import KafkaOptions
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressKey, ProgressRecord

_SECONDS = 30.0


class Announcer:
    """Holds the driver's transactional id from the moment it is made. Use it as a context manager.

    :param options: the target's connection.
    :param spec: the sink.
    :raises SinkError: the id could not be fenced.
    """

    def __init__(self, options: KafkaOptions, spec: KafkaSink) -> None:
        self._options = options
        self._spec = spec
        self._id = transactional_id(spec.transactional_id_prefix, spec.name, DRIVER)
        self._complaints = Complaints()
        config = producer_config(options, self._id, spec.transaction_timeout)
        self._producer = Producer({**config, "error_cb": self._complaints.take})
        try:
            warm_up(self._producer)
            self._producer.init_transactions(_SECONDS)
        except KafkaException as error:
            self.close()
            raise fencing_failure(options, self._complaints, error, self._id) from error

    def commit(self, record: ProgressRecord) -> None:
        """Commit a record of the driver.

        :raises SinkError: it was not committed, or it is not known; running the same again is safe.
        """
        key = ProgressKey(self._spec.name, DRIVER).encode()
        try:
            self._producer.begin_transaction()
            self._producer.produce(self._spec.progress_topic, key=key, value=record.encode(), partition=0)
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            raise fencing_failure(self._options, self._complaints, error, self._id) from error

    def close(self) -> None:
        """Drop the producer."""
        with contextlib.suppress(KafkaException):
            self._producer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
