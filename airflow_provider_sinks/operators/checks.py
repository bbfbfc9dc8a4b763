"""The checks that a sink's connections go through before anything is started. None has a side effect.

Each check ends well, or with an error whose type says whether trying again may help; all of them are made, so
that all problems are known at once. None takes longer than :data:`CHECK_SECONDS`, whatever hangs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
    nearest,
)
from airflow_provider_sinks.core.observation import Existence, TopicFacts
from airflow_provider_sinks.core.options import KafkaOptions, PostgresOptions
from airflow_provider_sinks.core.parts import PostgresLookup
from airflow_provider_sinks.core.spec import SinkSpec
from airflow_provider_sinks.hooks import connections
from airflow_provider_sinks.hooks.cluster_driver import yarn_client
from airflow_provider_sinks.hooks.spark import SparkTarget
from airflow_provider_sinks.operators.time_limit import within

if TYPE_CHECKING:
    from airflow_provider_sinks.clients.postgres import PostgresClient

T = TypeVar("T")

CHECK_SECONDS = 45.0
"""How long one check may take; an address that drops everything is told earlier, after about 10 s."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    :param name: what was looked at, such as ``kafka_prod: topic "pageviews"``.
    :param what: what was seen.
    :param hint: what helps, when it is not ok.
    :param retryable: whether the same check may pass later, when it is not ok.
    """

    name: str
    ok: bool
    what: str
    hint: str = ""
    retryable: bool = False

    def __str__(self) -> str:
        mark = "ok  " if self.ok else "FAIL"
        return f"{mark}  {self.name}: {self.what}" + (f"\n      Hint: {self.hint}" if self.hint else "")

    def to_mapping(self) -> dict[str, Any]:
        """Return the check as data, for XCom."""
        return asdict(self)


def report(checks: Sequence[Check]) -> str:
    """Return the checks as text, one line each."""
    return "\n".join(map(str, checks))


def verdict(subject: str, checks: Sequence[Check]) -> SinkError | None:
    """Return the error that failed checks amount to: final if one of them is; ``None`` when all passed.

    :param subject: what was checked, such as ``sink "orders"``.
    """
    failed = [check for check in checks if not check.ok]
    if not failed:
        return None
    primary = f"{len(failed)} of {len(checks)} checks of {subject} failed"
    problems = [Problem(check.name, check.what, check.hint) for check in failed]
    final = ConfigurationError(primary, problems)
    if all(check.retryable for check in failed):
        return UnavailableError(primary, final.detail)
    return final


def sink_checks(spec: SinkSpec, spark_conn_id: str) -> Iterator[Check]:
    """Check all connections of a sink, and the topics and tables that it needs.

    :param spark_conn_id: the Airflow connection of type ``spark``.
    """
    yield from spark_checks(spark_conn_id)
    for conn_id, kind in connections.connection_types(spec).items():
        if kind == connections.KAFKA:
            yield from kafka_checks(conn_id, _topics(spec, conn_id))
        else:
            yield from postgres_checks(conn_id, _tables(spec, conn_id))


def connection_checks(conn_id: str) -> Iterator[Check]:
    """Check one connection of any type that a sink can use, by itself."""
    looked, kind = _attempt(f"{conn_id}: type", lambda: connections.connection(conn_id).conn_type)
    yield replace(looked, what=str(kind)) if looked.ok else looked
    if kind in connections.SPARK_TYPES:
        yield from spark_checks(conn_id)
    elif kind == connections.KAFKA:
        yield from kafka_checks(conn_id, {})
    elif kind == connections.POSTGRES:
        yield from postgres_checks(conn_id, [])
    elif looked.ok:
        known = [connections.KAFKA, connections.POSTGRES, connections.SPARK]
        yield Check(looked.name, ok=False, what=f"{kind} is of no use to a sink", hint=f"one of {known}")


def spark_checks(conn_id: str) -> Iterator[Check]:
    """Check that a Spark connection exists, drives from the worker, and that its binary is there."""
    looked, target = _attempt(f"{conn_id}: spark", lambda: SparkTarget.of_connection(conn_id))
    if target is None:
        yield looked
        return
    yield replace(looked, what=f"master {target.master}")
    binary = shutil.which(target.binary)
    yield Check(
        f"{conn_id}: {target.binary}",
        ok=binary is not None,
        what=binary or "is not on the PATH of this worker",
        hint="" if binary else "Install Spark there and add its bin folder to PATH.",
    )
    if target.drives_on_cluster:
        looked, found = _attempt(f"{conn_id}: resource manager", lambda: yarn_client(conn_id).version())
        yield looked if found is None else replace(looked, what=found)


def kafka_checks(conn_id: str, topics: dict[str, bool]) -> Iterator[Check]:
    """Check options, reach and authentication of a Kafka connection, and that its topics can be seen.

    :param topics: by name, whether the topic must be there already.
    """
    looked, options = _attempt(f"{conn_id}: options", lambda: connections.kafka_options(conn_id))
    yield looked
    if options is not None:
        yield from _reach_kafka(conn_id, options, topics)


def postgres_checks(conn_id: str, lookups: Sequence[PostgresLookup]) -> Iterator[Check]:
    """Check options, reach and authentication of a Postgres connection, and that its tables can be read."""
    looked, options = _attempt(f"{conn_id}: options", lambda: connections.postgres_options(conn_id))
    yield looked
    if options is not None:
        yield from _reach_postgres(conn_id, options, lookups)


def _reach_kafka(conn_id: str, options: KafkaOptions, topics: dict[str, bool]) -> Iterator[Check]:
    from airflow_provider_sinks.clients.kafka import KafkaClient

    def look() -> tuple[str, dict[str, TopicFacts]]:
        with KafkaClient(options) as client:
            return client.cluster_id(), client.observe_topics(list(topics))

    reached, found = _attempt(f"{conn_id}: reach", look)
    if found is None:
        yield reached
        return
    cluster, seen = found
    yield replace(reached, what=f"cluster {cluster}")
    for name, facts in seen.items():
        yield _topic_check(conn_id, facts, must_exist=topics[name])


def _topic_check(conn_id: str, facts: TopicFacts, *, must_exist: bool) -> Check:
    name = f'{conn_id}: topic "{facts.name}"'
    if facts.existence is Existence.PRESENT:
        return Check(name, ok=True, what=f"{facts.partitions} partitions")
    if facts.existence is Existence.UNKNOWN:
        allow = f"Allow the user of this connection to {facts.denied} it." if facts.denied else ""
        return Check(name, ok=False, what=f"could not be seen: {facts.reason}", hint=allow, retryable=True)
    if must_exist:
        hint = "Create it; a sink makes its own topics, never its source."
        return Check(name, ok=False, what="does not exist", hint=hint, retryable=True)
    return Check(name, ok=True, what="does not exist yet; the job decides whether to make it")


def _reach_postgres(
    conn_id: str, options: PostgresOptions, lookups: Sequence[PostgresLookup]
) -> Iterator[Check]:
    from airflow_provider_sinks.clients.postgres import PostgresClient

    client = PostgresClient(options)
    reached, _ = _attempt(f"{conn_id}: reach", client.ping)
    yield reached
    if reached.ok:
        for lookup in lookups:
            yield _attempt(f"{conn_id}: table {lookup.table}", partial(_need_table, client, lookup))[0]


def _need_table(client: PostgresClient, lookup: PostgresLookup) -> None:
    columns = client.columns(lookup.table)
    missing = [name for name in lookup.columns or () if name not in columns]
    if missing:
        problems = [Problem(name, "is no column of it", nearest(name, columns)) for name in missing]
        raise ConfigurationError(f"table {lookup.table} does not have all columns of the lookup", problems)


def _attempt(name: str, action: Callable[[], T]) -> tuple[Check, T | None]:
    """Return the check that an action amounts to, and what the action returned if it passed."""
    try:
        result = within(CHECK_SECONDS, action)
    except SinkError as error:
        what = " ".join(filter(None, [error.primary, " ".join(error.detail.split())]))
        return Check(name, ok=False, what=what, hint=error.hint, retryable=error.retryable), None
    except Exception as error:  # noqa: BLE001  what nobody foresaw is a line of the report, not its end
        return Check(name, ok=False, what=f"{type(error).__name__}: {error}", retryable=True), None
    return Check(name, ok=True, what="ok"), result


def _topics(spec: SinkSpec, conn_id: str) -> dict[str, bool]:
    source, target = spec.source.kafka, spec.target.kafka
    topics: dict[str, bool] = {}
    if target.connection == conn_id:
        topics |= dict.fromkeys([target.topic, spec.progress_topic], False)
        topics |= {spec.dead_letter.topic: False} if spec.dead_letter else {}
    if source.connection == conn_id:
        topics[source.topic] = True
    return topics


def _tables(spec: SinkSpec, conn_id: str) -> list[PostgresLookup]:
    lookups = [lookup.postgres for lookup in spec.lookups.values()]
    return [lookup for lookup in lookups if lookup.connection == conn_id]
