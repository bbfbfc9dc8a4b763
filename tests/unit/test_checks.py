"""From facts to checks, and from checks to a report."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.preflight.cluster_checks import (
    cluster_checks,
    transaction_checks,
)
from airflow_provider_sinks.connectors.kafka.preflight.right_checks import (
    Held,
    Kind,
    Operation,
    Right,
    RightsFacts,
    needed_rights,
    rights_checks,
)
from airflow_provider_sinks.core.checks.addresses import forbidden
from airflow_provider_sinks.core.checks.check import Check, Checks, Family, Outcome, Report
from airflow_provider_sinks.core.checks.network import ServerFacts, Stop
from airflow_provider_sinks.core.checks.options import options_check
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import ConfigurationError, UnavailableError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.acls import least

CHECKS = Checks("k", Family.CLUSTER)
BROKER = {
    "transaction.max.timeout.ms": "900000",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


def test_a_report_is_a_table_with_what_helps_below_what_is_not_well() -> None:
    report = Report(
        'sink "orders"',
        (CHECKS.passes("cluster", "abc", 0.25), CHECKS.fails("brokers", "b:1 is away", "Bring it back.")),
    )

    assert report.table() == (
        "pass     k  cluster  abc (0.25 s)\nFAIL     k  brokers  b:1 is away\n         Hint: Bring it back."
    )


@pytest.mark.parametrize(
    ("checks", "error"),
    [
        ([CHECKS.passes("a", "x"), CHECKS.unknown("b", "x"), CHECKS.skips("c", "x")], None),
        ([CHECKS.fails("a", "x", retryable=True)], UnavailableError),
        ([CHECKS.fails("a", "x", retryable=True), CHECKS.fails("b", "x")], ConfigurationError),
    ],
    ids=["only fail stops", "may pass later", "one is final"],
)
def test_what_failed_decides_whether_a_retry_helps(checks: list[Check], error: type | None) -> None:
    found = Report("it", tuple(checks)).error()

    assert (type(found) if found else None) is error


def test_a_report_as_data_holds_plain_values_only() -> None:
    (data,) = Report("it", (CHECKS.skips("a", "why"),)).to_data()

    assert {type(value) for value in data.values()} == {str, float, bool}
    assert (data["family"], data["outcome"]) == ("cluster", "skipped")


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.1", "127.0.0.1", "::1", "fd00::1", "8.8.8.8"])
def test_private_and_public_addresses_are_taken(address: str) -> None:
    assert forbidden(address) == ""


@pytest.mark.parametrize("address", ["169.254.0.1", "fe80::1%eth0", "224.0.0.1", "::", "255.255.255.255"])
def test_addresses_of_no_one_machine_are_not(address: str) -> None:
    assert forbidden(address)


@pytest.mark.parametrize(
    ("changes", "brokers", "name", "outcome"),
    [
        ({}, 3, "transaction log", Outcome.PASS),
        ({}, 1, "transaction log", Outcome.UNKNOWN),
        ({"transaction.state.log.replication.factor": "1"}, 3, "transaction log", Outcome.FAIL),
        ({"transaction.state.log.min.isr": "4"}, 4, "transaction log", Outcome.FAIL),
        ({}, 3, "transaction timeout", Outcome.PASS),
        ({"transaction.max.timeout.ms": "59999"}, 3, "transaction timeout", Outcome.FAIL),
    ],
)
def test_whether_transactions_can_run(
    changes: dict[str, str], brokers: int, name: str, outcome: Outcome
) -> None:
    checks = transaction_checks("k", timedelta(seconds=60), {**BROKER, **changes}, brokers)

    assert {check.name: check.outcome for check in checks}[name] is outcome


def test_one_copy_of_the_transaction_log_on_many_brokers_is_worth_a_word() -> None:
    alone = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    (_, log) = transaction_checks("k", timedelta(seconds=60), {**BROKER, **alone}, 3)

    assert log.outcome is Outcome.UNKNOWN
    assert "one broker away stops transactions" in log.detail


def test_a_hidden_configuration_is_unknown() -> None:
    found = list(transaction_checks("k", timedelta(seconds=60), None, 3))

    assert {check.outcome for check in found} == {Outcome.UNKNOWN}


@pytest.mark.parametrize(("stop", "retryable"), [(Stop.REFUSED, True), (Stop.FORBIDDEN, False)])
def test_where_brokers_say_they_are_must_be_reached(stop: Stop, retryable: bool) -> None:
    away = ServerFacts("inside:9092", stopped=stop, why="why not")

    (_, advertised) = cluster_checks("k", "abc", 2, [ServerFacts("a:1"), away])

    assert (advertised.outcome, advertised.retryable) == (Outcome.FAIL, retryable)
    assert advertised.detail == "inside:9092: why not"


def test_one_topic_with_two_roles_needs_the_rights_of_both() -> None:
    rights = needed_rights({"t": [Role.SOURCE, Role.DATA]}, {"t": Existence.PRESENT}, "")

    assert [right.operation for right in rights] == [Operation.READ, Operation.WRITE]


def test_a_right_that_could_not_be_asked_for_is_unknown() -> None:
    right = Right(Operation.WRITE, Kind.TOPIC, "t")

    (found, _) = rights_checks(
        "k", [right], RightsFacts({right: Held.UNKNOWN}, {right: "x"}), "b:1", "User:u"
    )

    assert (found.outcome, found.detail) == (Outcome.UNKNOWN, "could not be asked: x")


BAD = [
    (
        {"conn_type": "smtp"},
        "conn_type: is smtp (delta or http or iceberg or kafka or postgres is needed here)",
    ),
    (
        {"conn_type": "generic"},
        (
            '"airflow-provider-sinks[delta]" "apache-airflow-providers-http" '
            '"airflow-provider-sinks[iceberg]" "airflow-provider-sinks[kafka]" '
            '"airflow-provider-sinks[postgres]"'
        ),
    ),
    ({"extra": "{"}, "is not JSON"),
    ({"extra": "[]"}, "is not a JSON object"),
    ({"extra": {"bootstrap.servers": "b:1", "acks_": "1"}}, "acks_: is not known"),
    ({"extra": {"bootstrap.servers": "b:1", "sasl.jaas.config": "x"}}, "is refused"),
    ({"extra": {}}, "bootstrap.servers: is missing"),
    ({"extra": {"bootstrap.servers": "b:1", "security.protocol": "sasl_ssl"}}, "sasl.mechanism: is missing"),
    (
        {"extra": {"bootstrap.servers": "b:1", "security.protocol": "ssl", "ssl.ca.location": "/no/such"}},
        "ssl.ca.location: '/no/such' cannot be used (one PEM file",
    ),
]


@pytest.mark.parametrize(("changes", "says"), BAD, ids=str)
def test_options_that_cannot_be_used_are_named(changes: dict[str, object], says: str) -> None:
    given = ConnectionFields(**{"conn_id": "k", "conn_type": "kafka", **changes})  # type: ignore[arg-type]

    check, options = options_check("k", given)

    assert options is None
    assert check.outcome is Outcome.FAIL
    assert says in check.detail


def test_a_connection_of_the_wrong_type_for_its_place_is_named() -> None:
    given = KafkaOptions.from_connection_extra({"bootstrap.servers": "b:1"}, "k")

    check, options = options_check("k", given, "postgres")

    assert (options, check.detail, check.hint) == (None, "is of type kafka", "a sink needs postgres here")


def test_a_connection_that_was_not_given_is_named() -> None:
    assert 'connection "k" was not given' in options_check("k", None)[0].detail


def test_options_are_shown_without_their_secrets_and_with_what_is_left_out() -> None:
    extra = {
        "bootstrap.servers": "b:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
        "sasl.username": "me", "sasl.password": "canary", "group.id": "g",
    }  # fmt: skip
    fields = ConnectionFields("k", "kafka", login="you", password="canary", extra=extra)

    check, _ = options_check("k", fields)

    unused = "group.id, login, sasl.password"
    assert check.detail == f'b:1, sasl_plaintext as "me"; not used by a sink: {unused}'
    assert "canary" not in repr(fields)


def test_the_page_grants_what_a_sink_needs_and_no_more() -> None:
    page = (Path(__file__).parents[2] / "docs" / "validate_connection.md").read_text()
    spec = SinkSpec.parse({"name": "orders", "source": "k/orders", "target": "k/orders-out"})

    granted = {
        (operation, name)
        for line in re.findall(r"^\$acl (.*)$", page, re.MULTILINE)
        for operation in re.findall(r"--operation (\w+)", line)
        for name in re.findall(r"--(?:topic|transactional-id) (\S+)", line)
    }

    needed = least(spec, "k", ["orders"])
    assert granted == {(str(right.operation), right.name) for right in needed}
