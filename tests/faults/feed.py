"""The source of a fault test: rows that can be told apart, written in transactions of which some are aborted.

A row's ``id`` says where it comes from (``<partition>-<number>``), its ``key`` lives in one source partition,
and its ``seq`` rises within that partition, so that missing, doubled and reordered rows can be told from the
output alone. Aborted rows are called ``ghost-...`` and may appear nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer

from tests.faults import topics

SCHEMA = "id string, key string, seq long, at timestamp"
KEYS_PER_PARTITION = 4
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_SECONDS_PER_ROW = 0.1


@dataclass(frozen=True)
class Row:
    """One row of the source.

    :param seq: rises by one from row to row of a source partition.
    :param at: the row's own time: rises with ``seq``.
    """

    id: str
    key: str
    seq: int
    at: str

    @classmethod
    def make(cls, partition: int, seq: int, prefix: str = "") -> Row:
        key = f"k{partition}-{seq % KEYS_PER_PARTITION}"
        at = _EPOCH + timedelta(seconds=seq * _SECONDS_PER_ROW)
        return cls(f"{prefix}{partition}-{seq}", key, seq, at.isoformat())

    @classmethod
    def of(cls, record: topics.Record) -> Row:
        """Read a row of the source."""
        return cls(**json.loads(record.value or b""))


class Feed:
    """Writes rows into a source topic and remembers those that were committed.

    ``ends`` is the offset after everything, by source partition.

    :param partitions: the topic's partitions; each gets the same number of rows.
    """

    def __init__(self, client: Mapping[str, str], topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self._client = dict(client)
        self.ends: dict[int, int] = {}
        self._rows = 0
        self._producer = Producer(
            {**client, **topics.SILENT, "transactional.id": f"feed-{topic}", "linger.ms": "5"}
        )
        self._producer.init_transactions(30)

    @property
    def keys(self) -> list[str]:
        """All keys that occur."""
        numbers = range(KEYS_PER_PARTITION)
        return [Row.make(partition, seq).key for partition in range(self.partitions) for seq in numbers]

    @property
    def rows(self) -> list[Row]:
        """All rows that were committed."""
        return [Row.make(partition, seq) for partition in range(self.partitions) for seq in range(self._rows)]

    def append(self, rows_per_partition: int) -> None:
        """Commit more rows, then abort a few, so that offsets and rows do not run in step."""
        self._produce(range(self._rows, self._rows + rows_per_partition))
        self._producer.commit_transaction(30)
        self._rows += rows_per_partition
        self._produce(range(self._rows, self._rows + 3), prefix="ghost-")
        self._producer.flush(30)
        self._producer.abort_transaction(30)
        self.ends = topics.end_offsets(self._client, self.topic)

    def located(self) -> list[tuple[int, int, Row]]:
        """Return partition, offset and row of all that can be read, as an independent reader sees it."""
        return [(r.partition, r.offset, Row.of(r)) for r in topics.read(self._client, self.topic)]

    def _produce(self, numbers: range, prefix: str = "") -> None:
        self._producer.begin_transaction()
        for partition, row in self._made(numbers, prefix):
            value = json.dumps(asdict(row)).encode()
            self._producer.produce(self.topic, key=row.key.encode(), value=value, partition=partition)
            self._producer.poll(0)

    def _made(self, numbers: range, prefix: str) -> Iterator[tuple[int, Row]]:
        for number in numbers:
            for partition in range(self.partitions):
                yield partition, Row.make(partition, number, prefix)
