"""What a topic is made with: its settings, its partitions, its replicas.

A misspelt setting would be refused by the broker, after a sink was started.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.fields import Scalar, whole_number, within
from airflow_provider_sinks.core.spec.problems import UnfitError

_NAMES = """
    cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
    index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms
    max.compaction.lag.ms max.message.bytes message.downconversion.enable message.format.version
    message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms
    message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
    remote.copy.disable remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable
    retention.bytes retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
    unclean.leader.election.enable
    """
NAMES = tuple(_NAMES.split())
"""What Kafka 3 and 4 know."""
VENDORS = ("automq.", "confluent.", "msk.", "redpanda.", "warpstream.")
"""How the settings of brokers begin that know more."""


def check_topic_config(name: str) -> str:
    """Return the name of a topic's setting.

    :raises UnfitError: Kafka knows no such setting.
    """
    if name not in NAMES and not name.startswith(VENDORS):
        raise UnfitError("is no setting of a topic", nearest(name, NAMES) or "such as retention.ms")
    return name


PARTITIONS_MAX = 10_000
REPLICAS_MAX = 32
Config = dict[Annotated[StrictStr, AfterValidator(check_topic_config)], Scalar]
Count = Annotated[
    int,
    Field(strict=True),
    within(1, PARTITIONS_MAX, "each partition costs files and memory on its brokers"),
    whole_number(1, PARTITIONS_MAX),
]
Replication = Annotated[
    int,
    Field(strict=True),
    within(1, REPLICAS_MAX, "each replica is a broker of its own; three are usual"),
    whole_number(1, REPLICAS_MAX),
]
