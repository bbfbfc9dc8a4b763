"""The cluster behind a Kafka connection: whether its brokers can be reached, and run transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.checks.network import Layer, ServerFacts, Stop
from airflow_provider_sinks.core.spec.durations import format_duration
from airflow_provider_sinks.core.wording import count

TIMEOUT_MAX = "transaction.max.timeout.ms"
LOG_COPIES, LOG_MIN_IN_SYNC = "transaction.state.log.replication.factor", "transaction.state.log.min.isr"
_HIDDEN = "hidden: this user may not describe the configuration of the cluster; a sink does not need it"


def cluster_checks(
    conn_id: str, cluster_id: str, brokers: int, advertised: Sequence[ServerFacts], seconds: float = 0.0
) -> Iterator[Check]:
    """Judge what the cluster says of itself.

    :param advertised: the way to each address that the brokers name: where clients go in the end.
    """
    checks = Checks(conn_id, Family.CLUSTER)
    yield checks.passes("cluster", f"{cluster_id}, {count(brokers, 'broker')}", seconds)
    ill = [facts for facts in advertised if facts.stopped]
    if ill:
        detail = "; ".join(f"{facts.server}: {facts.why}" for facts in ill)
        hint = "Clients go to the addresses that brokers advertise: correct advertised.listeners."
        retryable = not any(facts.stopped is Stop.FORBIDDEN for facts in ill)
        yield checks.fails("advertised brokers", detail, hint, _time(advertised), retryable=retryable)
    else:
        reached = ", ".join(facts.server for facts in advertised)
        yield checks.passes("advertised brokers", reached, _time(advertised))


def transaction_checks(
    conn_id: str, timeout: timedelta, config: Mapping[str, str] | None, brokers: int
) -> Iterator[Check]:
    """Judge whether a sink's transactions can run.

    :param timeout: the sink's transaction timeout.
    :param config: of a broker; ``None`` where it is hidden.
    """
    checks = Checks(conn_id, Family.CLUSTER)
    if config is None:
        yield checks.unknown("transaction timeout", _HIDDEN)
        yield checks.unknown("transaction log", _HIDDEN)
        return
    yield _timeout(checks, timeout, config)
    yield _log(checks, config, brokers)


def _timeout(checks: Checks, timeout: timedelta, config: Mapping[str, str]) -> Check:
    most = timedelta(milliseconds=int(config[TIMEOUT_MAX]))
    if timeout > most:
        detail = f"{format_duration(timeout)} is longer than the brokers allow: {format_duration(most)}"
        hint = f"Lower transaction_timeout of the sink, or raise {TIMEOUT_MAX} of the brokers."
        return checks.fails("transaction timeout", detail, hint)
    return checks.passes(
        "transaction timeout", f"{format_duration(timeout)} of at most {format_duration(most)}"
    )


def _log(checks: Checks, config: Mapping[str, str], brokers: int) -> Check:
    copies, least = int(config[LOG_COPIES]), int(config[LOG_MIN_IN_SYNC])
    if least > copies:
        detail = f"{LOG_MIN_IN_SYNC} is {least}, above {LOG_COPIES}, {copies}"
        return checks.fails("transaction log", detail, "No transaction can start: correct the brokers.")
    if copies > brokers:
        detail = f"{LOG_COPIES} is {copies}, and there are {count(brokers, 'broker')}"
        hint = f"If no transaction ran here before, none can start: on a small cluster set {LOG_COPIES}."
        return checks.unknown("transaction log", detail, hint)
    if copies == 1 and brokers > 1:
        detail = f"{LOG_COPIES} is 1 on {brokers} brokers: one broker away stops transactions"
        return checks.unknown("transaction log", detail, "Give the topic __transaction_state three copies.")
    return checks.passes("transaction log", f"{count(copies, 'replica')} on {count(brokers, 'broker')}")


def _time(servers: Sequence[ServerFacts]) -> float:
    return max((sum(facts.seconds.get(step, 0.0) for step in Layer) for facts in servers), default=0.0)
