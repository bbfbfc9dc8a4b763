"""Asks which rights the user of a connection has, without using any of them.

A topic that is there tells the operations that are allowed on it. For one that is not there, and for
transactional ids, Kafka has no such question; so an operation is asked for that cannot succeed, and the
answer is read: *denied*, or *allowed, but impossible*.

Why it changes nothing:

* To read: ``Fetch`` of partition 2147483647, which no topic has.
* To write to a topic, or with a transactional id: ``AddPartitionsToTxn`` of partition 2147483647, for a
  producer id that nobody has. The broker checks the rights first, then whether the partitions exist, and
  refuses the whole request there, before the transaction's coordinator hears of it. The coordinator
  would refuse it too, because of the producer id. Neither a topic nor a transactional id comes into being,
  and no running producer is fenced (``InitProducerId`` would fence it).
* To create a topic: ``CreateTopics`` with ``validate_only``, see :mod:`.survey`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping, Sequence

from airflow_provider_sinks.clients.reach import StoppedError, Trail
from airflow_provider_sinks.clients.time_limit import Deadline
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight.reach import open_wire
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import (
    Held,
    Kind,
    Operation,
    Right,
    RightsFacts,
)
from airflow_provider_sinks.connectors.kafka.preflight.topic_checks import TopicSurvey
from airflow_provider_sinks.connectors.kafka.wire import ADD_PARTITIONS, FETCH, WireConnection, array, text
from airflow_provider_sinks.core.decision.facts import Existence
from airflow_provider_sinks.core.errors import UnavailableError

_NO_PARTITION = 2**31 - 1
_NO_PRODUCER = 2**63 - 1
_TOPIC_DENIED, _ID_DENIED = 29, 53
_NO_SUCH_TOPIC, _NOT_ATTEMPTED = 3, 55
_NOBODYS = "sinks-validation"


def ask_rights(
    options: KafkaOptions,
    server: str,
    rights: Sequence[Right],
    seen: Mapping[str, TopicSurvey],
    ids: Sequence[str],
    *,
    deadline: Deadline,
) -> RightsFacts:
    """Return which rights the user of a connection has.

    :param server: one that can be reached.
    :param seen: the topics that the rights are about.
    :param ids: the transactional ids that the sink uses now.
    """
    begun = time.monotonic()
    held = {right: _told(right, seen[right.name]) for right in rights if right.kind is Kind.TOPIC}
    open_ones = [right for right in rights if held.get(right, Held.UNKNOWN) is Held.UNKNOWN]
    why: dict[Right, str] = {}
    try:
        if open_ones:
            with open_wire(options, Trail(server, deadline)) as wire:
                for right in open_ones:
                    held[right], why[right] = _ask(wire, right, seen, ids)
    except (StoppedError, UnavailableError) as error:
        reason = error.why if isinstance(error, StoppedError) else error.primary
        why |= {right: reason for right in open_ones if right not in why}
    return RightsFacts(held, why, time.monotonic() - begun)


def _told(right: Right, survey: TopicSurvey) -> Held:
    """Return what looking at the topic has told already."""
    if right.operation is Operation.CREATE:
        hidden = survey.existence is Existence.UNKNOWN and survey.may_create is Held.NO
        return Held.UNKNOWN if hidden else survey.may_create
    if right.operation is Operation.DESCRIBE_CONFIGS:
        return survey.may_describe_config
    if survey.existence is Existence.PRESENT and survey.operations is not None:
        return Held.YES if right.operation in survey.operations else Held.NO
    return Held.UNKNOWN


def _ask(
    wire: WireConnection, right: Right, seen: Mapping[str, TopicSurvey], ids: Sequence[str]
) -> tuple[Held, str]:
    if right.kind is Kind.TRANSACTIONAL_ID:
        return _ask_ids(wire, next(iter(seen), _NOBODYS), ids)
    if right.operation is Operation.READ:
        return _held(fetch_code(wire, right.name), _TOPIC_DENIED), ""
    if right.operation is Operation.WRITE:
        # Asked with an id of the sink: where that is denied, the broker does not come to the topic.
        codes = [code for name in ids for code in add_partitions_codes(wire, name, right.name)]
        answered = [code for code in codes if code != _ID_DENIED]
        if not answered:
            return Held.UNKNOWN, "a transaction is needed to ask, and its id is denied"
        return _held(answered[0], _TOPIC_DENIED), ""
    if right.operation is Operation.CREATE:
        return Held.UNKNOWN, "it is denied, but needed only if the topic does not exist, which cannot be seen"
    return Held.UNKNOWN, "the broker did not say"


def _ask_ids(wire: WireConnection, topic: str, ids: Sequence[str]) -> tuple[Held, str]:
    denied = [name for name in ids if _ID_DENIED in add_partitions_codes(wire, name, topic)]
    if not denied:
        return Held.YES, f"allowed: {', '.join(_few(ids))}"
    return Held.NO, f"denied: {', '.join(_few(denied))}"


def _held(code: int, denied: int) -> Held:
    if code == denied:
        return Held.NO
    return Held.YES if code in (0, _NO_SUCH_TOPIC, _NOT_ATTEMPTED) else Held.UNKNOWN


def _few(names: Sequence[str], most: int = 5) -> Iterator[str]:
    yield from names[:most]
    if len(names) > most:
        yield f"and {len(names) - most} more"


def fetch_code(wire: WireConnection, topic: str) -> int:
    """Return the error of reading a partition that does not exist."""
    partition = struct.pack(">iqi", _NO_PARTITION, 0, 1)
    asked = array([text(topic) + array([partition])])
    answer = wire.ask(FETCH, 4, struct.pack(">iiiib", -1, 0, 0, 1024, 0) + asked)
    answer.number("i")
    for _ in answer.repeats():
        answer.text()
        for _ in answer.repeats():
            answer.number("i")
            return answer.number("h")
    return -1


def add_partitions_codes(wire: WireConnection, transactional_id: str, topic: str) -> list[int]:
    """Return the errors of adding a partition that does not exist to a transaction of nobody."""
    asked = array([text(topic) + array([struct.pack(">i", _NO_PARTITION)])])
    body = text(transactional_id) + struct.pack(">qh", _NO_PRODUCER, 0) + asked
    answer = wire.ask(ADD_PARTITIONS, 0, body)
    answer.number("i")
    codes = []
    for _ in answer.repeats():
        answer.text()
        for _ in answer.repeats():
            answer.number("i")
            codes.append(answer.number("h"))
    return codes
