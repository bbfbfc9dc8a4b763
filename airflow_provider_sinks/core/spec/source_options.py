"""Which options of Spark's Kafka source a sink may set, and why the others are refused."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.problems import UnfitError

ALLOWED = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafka.default.api.timeout.ms",
    "kafka.fetch.max.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.fetch.min.bytes",
    "kafka.max.partition.fetch.bytes",
    "kafka.max.poll.records",
    "kafka.receive.buffer.bytes",
    "kafka.request.timeout.ms",
    "kafkaConsumer.pollTimeoutMs",
)
"""They change how fast rows are read, never which ones."""

_SPLITS = "one task must read one whole source partition, or a writer would see gaps"
_OURS = "the sink sets it, because exactly once depends on it"
_POSITION = "the sink keeps its own position; use start"
_EPOCH = "use max_offsets_per_epoch, or the trigger"
_CONNECTION = "the topic and its cluster are named by topic and connection"

REFUSED = {
    "minpartitions": _SPLITS,
    "maxrecordsperpartition": _SPLITS,
    "failondataloss": _OURS,
    "kafka.isolation.level": _OURS,
    "includeheaders": "headers are not passed on",
    "kafka.group.id": "two readers with one group take each other's partitions; use groupIdPrefix",
    "startingoffsets": _POSITION,
    "startingtimestamp": _POSITION,
    "startingoffsetsbytimestamp": _POSITION,
    "startingoffsetsbytimestampstrategy": _POSITION,
    "endingoffsets": _POSITION,
    "endingtimestamp": _POSITION,
    "endingoffsetsbytimestamp": _POSITION,
    "maxoffsetspertrigger": _EPOCH,
    "minoffsetspertrigger": _EPOCH,
    "maxtriggerdelay": _EPOCH,
    "subscribe": _CONNECTION,
    "subscribepattern": _CONNECTION,
    "assign": _CONNECTION,
    "kafka.bootstrap.servers": _CONNECTION,
}
"""Lower case, as Spark does not know case in names of options, to the reason."""


def check_source_option(name: str) -> str:
    """Return the option as Spark spells it.

    :raises UnfitError: it is refused or not known.
    """
    spelled = {allowed.lower(): allowed for allowed in ALLOWED}
    if name.lower() in spelled:
        return spelled[name.lower()]
    if name.lower() in REFUSED:
        raise UnfitError(f"cannot be set: {REFUSED[name.lower()]}")
    if name.lower().startswith("kafka."):
        raise UnfitError(
            "cannot be set here", nearest(name, ALLOWED) or "client options belong to the connection"
        )
    raise UnfitError(
        "is not an option of the Kafka source that can be set", nearest(name, [*ALLOWED, *REFUSED])
    )
