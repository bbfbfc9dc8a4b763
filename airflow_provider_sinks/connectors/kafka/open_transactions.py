"""Aborts what a driver that was ended hard has left open, so that no reader hangs behind it.

A transaction that nobody ends holds every ``read_committed`` reader of its topics back until the broker gives
it up, a minute by default. ``init_transactions`` aborts it at once.

Why it disturbs nobody: it is called when the driver is gone, for a run that announced itself, and only while
no newer run has. A newer run has fenced these ids itself, and must not be fenced in turn. Its announcement
may still be open, or lie behind anybody's open transaction. So what is open is read too: whatever stands in
the topic behind the announcement of this run tells of a newer one. An announcement that was given up counts
as well: then readers wait until the broker ends what is open, and nobody is fenced.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressLog
from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from airflow_provider_sinks.connectors.kafka.transactions import fence, transactional_id
from airflow_provider_sinks.core.progress.record import DRIVER, WriterId

_READ_SHARE = 0.4


def abort_open_transactions(
    options: KafkaOptions, spec: KafkaSink, run: str, writers: Iterable[WriterId], seconds: float
) -> bool:
    """Abort what the writers of a run left open, unless a newer run of the sink is in force.

    :param options: the target's connection.
    :param run: the uuid of the run that is over.
    :param writers: every writer that can have a transaction open.
    :param seconds: how long all of it may take.
    :return: whether the run was still in force, and its transactions were ended.
    :raises SinkError: it did not work out in time; the broker ends them after the transaction timeout.
    """
    deadline = time.monotonic() + seconds
    if _newest_run(options, spec, seconds * _READ_SHARE) not in (run, None):
        return False
    ids = [transactional_id(spec.transactional_id_prefix, spec.name, writer) for writer in {*writers, DRIVER}]
    fence(options, ids, spec.transaction_timeout, seconds=deadline - time.monotonic())
    return True


def _newest_run(options: KafkaOptions, spec: KafkaSink, seconds: float) -> str | None:
    """Return the run that announced itself last, committed or not; ``None`` when there is no announcement.

    :raises UnavailableError: the brokers did not say so in time.
    """
    log = ProgressLog(options, spec.progress_topic, answer_seconds=seconds, is_committed_only=False)
    try:
        record = log.read(spec.name, seconds).records.get(DRIVER)
    finally:
        log.close()
    return record.run if record else None
