"""A connection to one Kafka cluster for asking: it answers, or says why not.

librdkafka retries for ever in the background and tells *why* only through its error callback, which is
served when somebody polls. So everything that waits here polls too: a wrong password ends a call in well
under a second instead of after the whole timeout.

An admin client answers in a thread of its own, and that thread must never be the one that ends it: librdkafka
would wait for itself, and aborts the process. It came to that when a question was given up and its error held
the client in a circle: the late answer ran Python in the client's thread, the garbage collector took its turn
there, and found the client. So an admin client is never garbage: somebody holds it until it is ended, by
:meth:`KafkaConnection.close` or, where nobody closes, by a thread that is not its own.

Nobody asks by ``AdminClient.describe_cluster``. A broker that was frozen is fenced for some milliseconds when
it is back, and an answer of a cluster without any other names neither a broker nor a topic. librdkafka (2.16)
takes that for an error, loses the error on its way (``rd_kafka_DescribeClusterResponse_parse`` returns the
buffer's code, which is none) and aborts the process: ``rd_kafka_admin_response_parse: Assertion `rko_result'
failed``. The listing of the topics goes another way, on which the same answer is an error like others, and it
knows the cluster's id too. ``describe_topics`` goes the bad way, but its answer names what it was asked for.

Such an answer may also leave a client without any broker for good: it drops those that are not named, its
first ones included, and looks for none again (librdkafka issue 5301). It cannot be told from a client of a
silent cluster. So behind a question without an answer another client is asked, from time to time.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ListOffsetsResultInfo, NewTopic, OffsetSpec

from airflow_provider_sinks.connectors.kafka.client_failures import (
    Complaints,
    is_about_reaching,
    is_fenced,
    reaching_failure,
)
from airflow_provider_sinks.connectors.kafka.creation import CreateTopic
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.log_place import LogPlace

T = TypeVar("T")

FIRST = OffsetSpec.earliest()
END = OffsetSpec.latest()

_SERVE_SECONDS = 0.05
_GRACE_SECONDS = 1.0
_FIRST_PIECE_SECONDS = 0.5
_RENEWED_SECONDS = 15.0
"""How seldom a client is replaced: where the cluster is silent, another one hears no more."""
_CLIENTS_MAX = 2


class KafkaConnection:
    """An admin client that answers or says why not.

    :param options: the connection.
    :param timeout_seconds: how long one answer may take.
    """

    def __init__(self, options: KafkaOptions, timeout_seconds: float = 10.0) -> None:
        self.options = options
        self.timeout_seconds = timeout_seconds
        self._complaints = Complaints()
        self._renewing = threading.Lock()
        self._clients = deque([self._client()])
        self._made_at = time.monotonic()
        self._forgotten = weakref.finalize(self, _end_elsewhere, self._clients)  # it holds the clients
        self._forgotten.atexit = False

    @property
    def admin(self) -> AdminClient:
        """The client to ask; another one from time to time, so ask for it anew at each question."""
        return self._clients[-1]

    @property
    def servers(self) -> str:
        """The brokers that are asked first, for messages."""
        return self.options.bootstrap_servers

    def cluster_id(self) -> str:
        """Return the id of the cluster; proves that it can be reached and takes our credentials."""
        return str(self._list("name the cluster").cluster_id)

    def listing(self) -> ClusterMetadata:
        """Return the list of *all* topics: a broker may create one that is asked for by name."""
        return self._list("list the topics")

    def offsets(
        self,
        partitions: Iterable[tuple[str, int]],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[tuple[str, int], int]:
        """Return offsets by topic and partition; none where there is no leader.

        :param spec: ``FIRST`` or ``END``.
        :param isolation: whether the end is behind open transactions, or before them.
        """
        found = self._list_offsets(partitions, spec, isolation)
        return {place: int(result.offset) for place, result in found.items()}

    def ends(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], LogPlace]:
        """Return the ends behind open transactions, each with its leader epoch.

        One without a leader, or of a broker that tells no leader epoch (-1 then), has none that counts.
        """
        found = self._list_offsets(partitions, END, IsolationLevel.READ_UNCOMMITTED)
        return {
            place: LogPlace(int(result.offset), -1 if result.leader_epoch is None else result.leader_epoch)
            for place, result in found.items()
        }

    def _list_offsets(
        self, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[tuple[str, int], ListOffsetsResultInfo]:
        asked = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        if not asked:
            return {}
        timeout = self.timeout_seconds
        futures = self.admin.list_offsets(asked, isolation_level=isolation, request_timeout=timeout)
        found = {}
        for place, future in futures.items():
            with contextlib.suppress(KafkaException):
                found[place.topic, place.partition] = self.wait(future, "list offsets")
        return found

    def create_topic(self, topic: CreateTopic, what: str, *, is_rehearsal: bool = False) -> None:
        """Have a topic made, or only judged; ask again while all brokers are fenced, until the time is over.

        :param is_rehearsal: the broker judges all of it, and makes none.
        :raises UnavailableError: no answer in time, or all brokers stay fenced.
        :raises KafkaException: the broker's own answer, which the caller knows to judge.
        """
        partitions, copies = topic.partitions or -1, topic.replication_factor or -1  # the broker's defaults
        new = NewTopic(topic.name, partitions, copies, config=dict(topic.config))
        timeout, deadline = self.timeout_seconds, time.monotonic() + self.timeout_seconds
        while True:
            asked = self.admin.create_topics([new], validate_only=is_rehearsal, request_timeout=timeout)
            made: Future[None] = asked[topic.name]
            try:
                return self.wait(made, what)
            except KafkaException as error:
                if not is_fenced(error):
                    raise
                if time.monotonic() > deadline:
                    raise self.failure(error, what) from error
            time.sleep(_SERVE_SECONDS)

    def _list(self, what: str) -> ClusterMetadata:
        """Return the listing; ask again while it does not come, until the time is over.

        librdkafka drops a question with its idea of a broker when that is back from a restart, and takes the
        answer of a fenced broker for a part of one. It waits without polling, so it waits in pieces: refused
        credentials are noticed after the first. The pieces grow, for a listing that takes long to send.
        """
        deadline = time.monotonic() + self.timeout_seconds
        self.admin.poll(0)
        self._complaints.forget()
        piece_seconds = _FIRST_PIECE_SECONDS
        while True:
            left_seconds = max(deadline - time.monotonic(), _SERVE_SECONDS)
            try:
                return self.admin.list_topics(timeout=min(piece_seconds, left_seconds))
            except KafkaException as error:
                self.admin.poll(0)
                if self._complaints.final is not None or time.monotonic() > deadline:
                    raise self.failure(error, what) from error
            time.sleep(_SERVE_SECONDS)
            piece_seconds *= 2

    def wait(self, future: Future[T], what: str) -> T:
        """Return what a future brings.

        :param what: what the broker was asked to do, for messages.
        :raises AuthenticationError: the broker refused the credentials.
        :raises UnavailableError: no answer in time.
        :raises KafkaException: the broker's own answer, which the caller knows to judge.
        """
        deadline = time.monotonic() + self.timeout_seconds + _GRACE_SECONDS
        self.admin.poll(0)
        self._complaints.forget()
        while not future.done() and time.monotonic() < deadline:
            concurrent.futures.wait([future], timeout=_SERVE_SECONDS)
            self.admin.poll(0)
            if self._complaints.final is not None:
                raise self.failure(KafkaException(self._complaints.final), what)
        try:
            return future.result(timeout=0)
        except concurrent.futures.TimeoutError:
            raise self.failure(KafkaException(KafkaError(KafkaError._TIMED_OUT)), what) from None  # noqa: SLF001
        except KafkaException as error:
            if is_about_reaching(error):
                raise self.failure(error, what) from error
            raise

    def failure(self, error: KafkaException, what: str) -> SinkError:
        """Return our error for a call without an answer; another client may be asked from now on."""
        if self._complaints.final is None:
            self._renew()
        return reaching_failure(self.options, self._complaints, error, what)

    def close(self) -> None:
        """End the client."""
        if self._forgotten.detach() is not None:
            _end(self._clients)

    def _client(self) -> AdminClient:
        config = client_config(self.options)
        return AdminClient(config | {"error_cb": self._complaints.take})

    def _renew(self) -> None:
        """Go on with a new client, unless this one is new itself.

        The one before stays until the next renewal: another thread may be about to ask it, and is answered or
        gives up meanwhile.
        """
        with self._renewing:
            if time.monotonic() - self._made_at < _RENEWED_SECONDS or not self._forgotten.alive:
                return
            self._made_at = time.monotonic()
            self._clients.append(self._client())
            former = self._clients.popleft() if len(self._clients) > _CLIENTS_MAX else None
        if former is not None:
            _end([former])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _end(clients: Iterable[AdminClient]) -> None:
    """End clients now, whoever still holds them; leaving its context is the only word one has for that."""
    for admin in clients:
        admin.__exit__(None, None, None)


def _end_elsewhere(clients: Iterable[AdminClient]) -> None:
    """End clients that nobody closed. Called by the garbage collector, also in a client's own thread."""
    threading.Thread(target=_end, args=(clients,), name="sinks-forgotten-client", daemon=True).start()


def client_config(options: KafkaOptions) -> dict[str, Any]:
    """Return what every client of ours has: the connection, and complaints in our hands, not on stderr."""
    return {**options.librdkafka(), "log_level": 0}
