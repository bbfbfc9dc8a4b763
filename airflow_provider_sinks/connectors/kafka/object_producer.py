"""confluent-kafka's own producer, which takes a Python object per row.

For the driver, which writes records only, and for rows where :mod:`.librdkafka` does not know the library.
``produce_batch`` sets ``_error`` on a message that it did not take, and raises nothing. When its queue is
full it refuses the rest of the call, so the tail can be given again without changing the order. It takes no
headers, and does not heed the partition that a message names, whatever its documentation says. Names of
headers end at their first zero byte, without a word: a message with such a name is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from airflow_provider_sinks.connectors.kafka.carried import NOTHING, Carried, each
from airflow_provider_sinks.connectors.kafka.header_list import ZERO
from airflow_provider_sinks.connectors.kafka.row_producer import OnError, OnUndelivered, Refused

if TYPE_CHECKING:
    import pyarrow as pa


class ObjectProducer(Producer):
    """See :class:`.row_producer.RowProducer`.

    :param config: librdkafka's names and values.
    """

    def __init__(self, config: Mapping[str, Any], on_error: OnError, on_undelivered: OnUndelivered) -> None:
        super().__init__(
            {
                **config,
                "error_cb": on_error,
                "on_delivery": lambda error, message: on_undelivered(
                    error, message.topic() or "", len(message)
                ),
            }
        )

    def produce(self, topic: str, *, headers: Any = None, **beside: Any) -> None:  # type: ignore[override]  # by name
        """Hand one record over, unless the name of a header would be cut."""
        if cut := next((name for name, _ in headers or () if ZERO in name), None):
            what = f"header {cut!r} has a zero byte in its name, where this client would end it"
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, what))  # noqa: SLF001  public in C
        super().produce(topic, **({"headers": headers} if headers else {}), **beside)

    def produce_rows(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        when_full: Callable[[], None],
        carried: Carried = NOTHING,
    ) -> Refused | None:
        """Hand over all rows in order, waiting while the queue is full."""
        if carried is not NOTHING:
            return self._produce_each(topic, keys, values, when_full, carried)
        messages = _messages(keys, values)
        first = 0
        while first < len(messages):
            batch = messages[first:] if first else messages
            taken = self.produce_batch(topic, batch)
            if taken < len(batch):
                refused = next(i for i, message in enumerate(batch) if "_error" in message)
                error: KafkaError = batch[refused]["_error"]
                if error.code() != KafkaError._QUEUE_FULL:  # noqa: SLF001  public in C
                    return Refused(first + refused, error)
                for message in batch[refused:]:
                    message.pop("_error", None)
                when_full()
            first += taken
        return None

    def _produce_each(
        self,
        topic: str,
        keys: pa.Array,
        values: pa.Array,
        when_full: Callable[[], None],
        carried: Carried,
    ) -> Refused | None:
        """Hand each message over by a call of its own: a batch takes no headers, and minds no partitions."""
        pairs = zip(keys.to_pylist(), values.to_pylist(), each(carried, len(values)), strict=True)
        for row, (key, value, beside) in enumerate(pairs):
            while True:
                try:
                    self.produce(topic, value=value, key=key, **beside)
                    break
                except BufferError:
                    when_full()
                except KafkaException as error:
                    return Refused(row, error.args[0])
        return None


def _messages(keys: pa.Array, values: pa.Array) -> list[dict[str, Any]]:
    if keys.null_count == len(keys):
        return [{"value": value} for value in values.to_pylist()]
    pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
    return [{"key": key, "value": value} for key, value in pairs]
