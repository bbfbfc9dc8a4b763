"""Which settings a topic has: a misspelt one would be refused by the broker, after a sink was started."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import nearest
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
