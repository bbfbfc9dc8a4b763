from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.connectors.base import SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter
from airflow_provider_sinks.connectors.kafka.columns import (
    HEADER_NAME,
    HEADER_VALUE,
    HEADERS,
    KEY,
    TIME,
    VALUE,
)
from airflow_provider_sinks.connectors.kafka.coordinators import broker_memory
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink, kafka_sink
from airflow_provider_sinks.connectors.kafka.transactional_ids import transactional_id
from airflow_provider_sinks.connectors.registry import connect
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.record import DRIVER
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.testing.played_start import SINK, SOURCE, WRITERS, Coordinates, Harness
from tests import administrator
from tests.contract.wire import KafkaWire, Loss

SCHEMA = pa.schema(
    {
        rows.PARTITION: pa.int32(),
        rows.OFFSET: pa.int64(),
        rows.ERROR: pa.string(),
        KEY: pa.binary(),
        VALUE: pa.binary(),
        rows.RAW_KEY: pa.binary(),
        rows.RAW_VALUE: pa.binary(),
        rows.RAW_TIMESTAMP: pa.int64(),
        rows.RAW_HEADERS: pa.string(),
    }
)
_HEADER = pa.struct([(HEADER_NAME, pa.string()), (HEADER_VALUE, pa.binary())])
CARRYING = SCHEMA.append(pa.field(HEADERS, pa.list_(_HEADER))).append(pa.field(TIME, pa.int64()))
_TIME_MS = 1_700_000_000_000
_TIMEOUT = "10s"
_MARKER_SECONDS = 120.0


class KafkaHarness(Harness):
    """Topics and transactional ids of its own on a broker.

    :param wire: the way on which the broker is reached.
    """

    def __init__(self, options: KafkaOptions, wire: KafkaWire) -> None:
        super().__init__()
        self._options = options
        self._wire = wire
        self._own = f"contract-{uuid.uuid4().hex[:8]}"

    def spec(self, sink: str) -> KafkaSink:
        given = {
            "name": sink,
            "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "format": "bytes"}},
            "target": {"kafka": {"connection": "k", "topic": f"{self._own}-{sink}"}},
            "dead_letter": f"{self._own}-{sink}-dead",
            "progress": f"{self._own}-progress",
            "transactional_id_prefix": self._own,
            "transaction_timeout": _TIMEOUT,
        }
        return kafka_sink(SinkSpec.parse(given))

    def connector(self, sink: str = SINK) -> SinkConnector:
        return connect(self.spec(sink), ResolvedConnections({"k": self._options}))

    def creations(self, sink: str = SINK) -> Sequence[CreateTopic]:
        return list(self.spec(sink).creations().values())

    def batch(self, partition: int, offsets: range, bad: Sequence[int] = ()) -> pa.RecordBatch:
        """Return rows; those of odd partitions carry headers and times, so that they go by a call each."""
        found = [
            {
                rows.PARTITION: partition,
                rows.OFFSET: at,
                rows.ERROR: "no JSON" if at in bad else None,
                VALUE: None if at in bad else f"{partition} {at}".encode(),
                rows.RAW_VALUE: b"as it came",
                HEADERS: None if at in bad else [{HEADER_NAME: "at", HEADER_VALUE: b"%d" % at}],
                TIME: None if at in bad else _TIME_MS + at,
            }
            for at in offsets
        ]
        return pa.RecordBatch.from_pylist(found, CARRYING if partition % 2 else SCHEMA)

    def timed(self, times_ms: Sequence[int]) -> pa.RecordBatch:
        """Return rows of an odd partition with these times."""
        rows_of = self.batch(1, range(len(times_ms)))
        place = rows_of.schema.get_field_index(TIME)
        return rows_of.set_column(place, TIME, pa.array(times_ms, pa.int64()))

    def keyed(self, keys: Sequence[bytes | None], *, has_times: bool = False) -> pa.RecordBatch:
        """Return rows of an odd partition with these keys."""
        now = int(time.time() * 1000)
        rows_of = self.timed([now] * len(keys))
        found = rows_of.set_column(rows_of.schema.get_field_index(KEY), KEY, pa.array(keys, pa.binary()))
        return found if has_times else found.drop_columns([TIME])

    def why_set_aside(self, sink: str = SINK) -> list[str]:
        """Return the error of each dead letter."""
        found = [dict(record.headers() or []) for record in self._read(sink, Role.DEAD_LETTER)]
        return [str(bytes(told["error"] or b""), "utf-8") for told in found]  # type: ignore[arg-type]

    def configure(self, **config: str) -> None:
        """Change options of the data topic; an underscore stands for a dot."""
        admin = AdminClient({**self._options.librdkafka()})
        options = {name.replace("_", "."): value for name, value in config.items()}
        administrator.configure_topic(admin, kafka_sink(self.spec(SINK)).target.kafka.topic, options)

    def visible(self, sink: str = SINK) -> list[Coordinates]:
        found = [(record.value() or b"").split() for record in self._read(sink, Role.DATA)]
        return sorted((int(partition), int(at)) for partition, at in found)

    def set_aside(self, sink: str = SINK) -> list[Coordinates]:
        found = [dict(record.headers() or []) for record in self._read(sink, Role.DEAD_LETTER)]
        return sorted((int(told["source.partition"] or 0), int(told["source.offset"] or 0)) for told in found)

    def losing_answers(self) -> AbstractContextManager[None]:
        return self._wire.losing(Loss.ANSWER)

    def losing_commits(self) -> AbstractContextManager[None]:
        return self._wire.losing(Loss.COMMIT)

    def kill(self, writer: EpochWriter) -> None:
        writer.close()  # it drops what was not sent, and its connections, and ends nothing

    def _read(self, sink: str, role: Role) -> list[Message]:
        """Return what a reader of committed records gets now, in front of what is open."""
        self._wait_for_markers(sink)
        connector = self.connector(sink)
        facts = connector.identify()[role]
        connector.close()
        places = [TopicPartition(facts.name, partition, 0) for partition in range(facts.partitions)]
        own = {"group.id": self._own, "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer({**self._options.librdkafka(), **own, "enable.auto.commit": False})
        consumer.assign(places)
        found, ended = [], set[int | None]()
        while len(ended) < len(places):
            message = consumer.poll(10)
            assert message is not None
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
        consumer.close()
        return found

    def _wait_for_markers(self, sink: str) -> None:
        """Return when what was ended is so for readers too: markers come behind the answer to a commit."""
        ids = {writer: transactional_id(self._own, sink, writer) for writer in (DRIVER, *WRITERS)}

        def is_told() -> bool:
            known = broker_memory(self._options, ids)
            assert not known.reason
            return not any(facts.state.startswith("Prepare") for facts in known.ids.values())

        assert holds_within(is_told, _MARKER_SECONDS, pause_seconds=0.05)
