"""Which options of Spark's Kafka source a sink may set, and why the others are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.spec.problems import UnfitError

_HOUR_MS = 3_600_000
_BYTES_MAX = 1024 * 1024 * 1024
PREFIX = "groupIdPrefix"
NUMBERS: Mapping[str, tuple[int, int]] = {
    "fetchOffset.numRetries": (0, 1_000),
    "fetchOffset.retryIntervalMs": (0, _HOUR_MS),
    "kafka.default.api.timeout.ms": (1, _HOUR_MS),
    "kafka.fetch.max.bytes": (1, _BYTES_MAX),
    "kafka.fetch.max.wait.ms": (0, _HOUR_MS),
    "kafka.fetch.min.bytes": (0, _BYTES_MAX),
    "kafka.max.partition.fetch.bytes": (1, _BYTES_MAX),
    "kafka.max.poll.records": (1, 10_000_000),
    "kafka.receive.buffer.bytes": (-1, _BYTES_MAX),
    "kafka.request.timeout.ms": (1, _HOUR_MS),
    "kafkaConsumer.pollTimeoutMs": (1, _HOUR_MS),
}
"""Whole numbers, each with the least and the most that makes sense: beyond it a driver waits for ever, or has
no memory left."""
ALLOWED = tuple(sorted((*NUMBERS, PREFIX), key=str.lower))
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


def source_option_problems(options: Mapping[str, str]) -> Iterator[Problem]:
    """Judge the values of options that may be set."""
    for name, value in options.items():
        where = f"source.kafka.options.{name}"
        if name == PREFIX:
            if not re.fullmatch(r"[\w.-]{1,200}", value):
                yield Problem(where, f"{value!r} is no prefix", "1 to 200 letters, digits, . _ -")
            continue
        least, most = NUMBERS[name]
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            yield Problem(where, f"{value!r} is no whole number", f"from {least:,} to {most:,}")
        elif not least <= int(value) <= most:
            yield Problem(where, f"{int(value):,} is out of bounds", f"from {least:,} to {most:,}")
