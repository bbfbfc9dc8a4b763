"""Asks the transaction coordinators of a cluster what they know of a sink's transactional ids (KIP-664).

librdkafka has no call for ``DescribeTransactions``. Every broker is asked until each id is answered for,
instead of the coordinator that ``FindCoordinator`` names: that question makes Kafka create the topic of its
transactions, and looking creates nothing. Only the coordinator of an id answers for it. An id that no broker
answers for has no coordinator: nobody ever used a transaction in that cluster.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence

from airflow_provider_sinks.clients.reach import StoppedError, Trail
from airflow_provider_sinks.clients.time_limit import Deadline
from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight.reach import open_wire
from airflow_provider_sinks.connectors.kafka.wire import (
    NO_TAGS,
    Reader,
    WireConnection,
    api_versions,
    cluster,
    compact_array,
    compact_text,
)
from airflow_provider_sinks.core.checks.network import Stop
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import WriterId

DESCRIBE_TRANSACTIONS = 65
_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.1
_LOADING, _NOT_AVAILABLE, _NOT_COORDINATOR, _DENIED, _NOT_FOUND = 14, 15, 16, 53, 105

_Found = dict[str, TransactionalIdFacts | None]
"""By transactional id; ``None`` for one that its coordinator does not know."""


def broker_memory(
    options: KafkaOptions, ids: Mapping[WriterId, str], seconds: float = _SECONDS
) -> BrokerMemory:
    """Return what the coordinators know of some writers. Never raises: not being told is an answer.

    :param ids: the transactional id of each writer.
    """
    try:
        asking = _Asking(options.with_files_read(), Deadline(seconds))
        found = asking.all(list(ids.values()))
    except StoppedError as stopped:
        return BrokerMemory(reason=stopped.why)
    except SinkError as error:
        return BrokerMemory(reason=error.primary)
    return BrokerMemory({writer: facts for writer, name in ids.items() if (facts := found.get(name))})


class _Asking:
    def __init__(self, options: KafkaOptions, deadline: Deadline) -> None:
        self._options = options
        self._deadline = deadline

    def all(self, names: Sequence[str]) -> _Found:
        """Ask one broker after the other about the ids that none before answered for.

        :raises StoppedError: an id is left, and a broker that may answer for it could not be asked.
        """
        found: _Found = {}
        failure: StoppedError | None = None
        others: list[str] = []
        for server in self._options.bootstrap_servers.split(","):
            try:
                others = self._ask_first(server, names, found)
                break
            except StoppedError as stopped:
                failure = stopped
        else:
            raise failure or StoppedError(Stop.NO_ANSWER, "no server answered")
        failure = None
        for server in others:
            if set(names) <= found.keys():
                break
            try:
                with open_wire(self._options, Trail(server, self._deadline)) as wire:
                    self._ask(wire, names, found)
            except StoppedError as stopped:
                failure = stopped
        if failure is not None and not set(names) <= found.keys():
            raise failure
        return found

    def _ask_first(self, server: str, names: Sequence[str], found: _Found) -> list[str]:
        """Ask one of the servers that the connection names, and return where all brokers are."""
        with open_wire(self._options, Trail(server, self._deadline)) as wire:
            self._ask(wire, names, found)
            brokers = cluster(wire).brokers.values()
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in brokers]

    def _ask(self, wire: WireConnection, names: Sequence[str], found: _Found) -> None:
        """Ask a broker about the ids that nobody answered for; while it loads them, ask again."""
        if DESCRIBE_TRANSACTIONS not in api_versions(wire):
            raise StoppedError(Stop.TOO_OLD, "the broker does not offer DescribeTransactions (Kafka 3.0)")
        while unanswered := [name for name in names if name not in found]:
            body = compact_array([compact_text(name) for name in unanswered]) + NO_TAGS
            answer = wire.ask(DESCRIBE_TRANSACTIONS, 0, body, compact=True)
            if not _take(answer, found):
                break
            time.sleep(self._deadline.left(_LOOK_AGAIN_SECONDS))


def _take(answer: Reader, found: _Found) -> bool:
    """Take what a broker says of some ids into account; return whether it wants to be asked again."""
    is_loading = False
    try:
        answer.number("i")
        for _ in answer.compact_repeats():
            code, name, facts = _described(answer)
            if code in (0, _NOT_FOUND):
                found[name] = None if code else facts
            elif code in (_LOADING, _NOT_AVAILABLE):
                is_loading = True
            elif code != _NOT_COORDINATOR:
                raise StoppedError(Stop.NO_ANSWER, _reason(code))
    except struct.error:
        raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak Kafka") from None
    return is_loading


def _reason(code: int) -> str:
    if code == _DENIED:
        return "the user may not describe the transactional ids of the sink"
    return f"the broker answered with error {code}"


def _described(answer: Reader) -> tuple[int, str, TransactionalIdFacts]:
    code, name, state = answer.number("h"), answer.compact_text(), answer.compact_text()
    answer.number("i")  # its timeout
    answer.number("q")  # when it began
    producer, epoch = answer.number("q"), answer.number("h")
    for _ in answer.compact_repeats():
        answer.compact_text()
        for _ in answer.compact_repeats():
            answer.number("i")
        answer.skip_tags()
    answer.skip_tags()
    return code, name, TransactionalIdFacts(state, epoch, producer)
