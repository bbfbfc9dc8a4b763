"""SET, DROP and RESET of a connection's options: all of them or none, and every problem at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_sinks.core.alter.changes import (
    Change,
    DropOption,
    Means,
    ResetOption,
    Secret,
    SetOption,
)
from airflow_provider_sinks.core.alter.fold import alter, changed_columns, changed_names, same
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.alter.standing import standing
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.overridden import overridden
from airflow_provider_sinks.core.errors import ConfigurationError

KAFKA = ConnectionFields(
    "kafka_prod",
    "kafka",
    extra={
        "bootstrap.servers": "old:9092",
        "client.id": "sinks",
        "group.id": "somebody else's",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "old",
        "sasl.password": "old secret",
    },
)
POSTGRES = ConnectionFields(
    "pg_prod", "postgres", "db", 5433, "sinks", "old secret", "shop", {"sslmode": "require"}
)
KEPT = Leave(keep_secrets=True)
"""The author's own word that stored secrets may go elsewhere: most tests here are about other things."""


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        pytest.param(
            [SetOption("bootstrap.servers", "new:9092"), SetOption("sasl.username", "new")],
            {"bootstrap.servers": "new:9092", "sasl.username": "new"},
            id="set-two",
        ),
        pytest.param([DropOption("client.id")], {"client.id": None}, id="drop"),
        pytest.param([ResetOption("client.id")], {"client.id": None}, id="reset-what-is-set"),
        pytest.param([ResetOption("socket.timeout.ms")], {}, id="reset-what-is-not-set"),
        pytest.param([DropOption("group.id")], {"group.id": None}, id="drop-what-no-sink-reads"),
        pytest.param(
            [SetOption("sasl.mechanism", "SCRAM-SHA-256")],
            {"sasl.mechanisms": None, "sasl.mechanism": "SCRAM-SHA-256"},
            id="set-by-the-other-name",
        ),
        pytest.param(
            [DropOption("metadata.broker.list"), SetOption("client.id", "x")], None, id="drop-required"
        ),
        pytest.param(
            [SetOption("sasl.password", Secret("sinks_secret_pw"))],
            {"sasl.password": "new secret"},
            id="secret",
        ),
    ],
)
def test_changes_are_made_together(changes: list[Change], extra: dict[str, str | None] | None) -> None:
    if extra is None:
        with pytest.raises(ConfigurationError, match=r"bootstrap\.servers: is missing"):
            alter(KAFKA, changes)
        return

    new = alter(KAFKA, changes, Means({"sinks_secret_pw": "new secret"}, KEPT))

    merged = {**dict(KAFKA.extra), **extra}  # type: ignore[arg-type]
    assert new.extra == {name: value for name, value in merged.items() if value is not None}
    assert set(changed_names(KAFKA, new)) == set(extra)


def test_fields_of_their_own_are_options_too() -> None:
    changes: list[Change] = [SetOption("user", "new"), ResetOption("port"), DropOption("sslmode")]

    new = alter(POSTGRES, changes, Means(leave=KEPT))

    assert (new.login, new.port, new.host, new.extra) == ("new", None, "db", {})
    assert changed_columns(POSTGRES, new) == ("port", "login", "extra")
    assert changed_names(POSTGRES, new) == ("login", "port", "sslmode")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param([], "nothing is to be changed", id="nothing"),
        pytest.param(
            [SetOption("bootstrap.server", "x:1")],
            'bootstrap.server: is not known (did you mean "bootstrap.servers"?)',
            id="unknown",
        ),
        pytest.param([ResetOption("clientid")], 'did you mean "client.id"?', id="reset-unknown"),
        pytest.param([DropOption("clientid")], 'did you mean "client.id"?', id="drop-unknown"),
        pytest.param([DropOption("client.dns.lookup")], "client.dns.lookup: is not set", id="drop-unset"),
        pytest.param(
            [SetOption("client.id", "a"), SetOption("client.id", "b")],
            "client.id: is given twice",
            id="twice",
        ),
        pytest.param(
            [SetOption("sasl.mechanism", "PLAIN"), SetOption("sasl.mechanisms", "PLAIN")],
            "sasl.mechanisms: is given twice, before as 'sasl.mechanism'",
            id="twice-by-two-names",
        ),
        pytest.param(
            [SetOption("client.id", "a"), DropOption("client.id")],
            "client.id: is to be SET and DROP at once",
            id="set-and-drop",
        ),
        pytest.param([SetOption("conn_type", "postgres")], "conn_type: may not be altered", id="type"),
        pytest.param([SetOption("group.id", "x")], "group.id: may not be altered: other users", id="others"),
        pytest.param(
            [SetOption("sasl.jaas.config", "x")],
            "sasl.jaas.config: may not be altered: it can load",
            id="refused",
        ),
        pytest.param([SetOption("client.id", "***")], "client.id: is ***", id="masked"),
        pytest.param([SetOption("client.id", " ")], "client.id: must be text or a number", id="empty"),
        pytest.param([SetOption("client.id", None)], "client.id: must be text or a number", id="null"),
        pytest.param([SetOption("sasl.password", "x")], "sasl.password: is a secret", id="secret-in-clear"),
        pytest.param(
            [SetOption("sasl.password", Secret("sinks_secret_nobody"))],
            "names the Variable 'sinks_secret_nobody'",
            id="secret-not-there",
        ),
        pytest.param(
            [SetOption("sasl.password", Secret("sinks_secret_mask"))],
            "sasl.password: is ***",
            id="secret-masked",
        ),
        pytest.param([SetOption("security.protocol", "ssl")], "sasl.username: has no effect", id="result"),
    ],
)
def test_what_cannot_be_is_said(changes: list[Change], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        alter(KAFKA, changes, Means({"sinks_secret_mask": "***"}))

    assert said in str(refused.value)
    assert refused.value.primary == 'connection "kafka_prod" was not altered'


def test_all_problems_are_told_at_once_and_no_value_is() -> None:
    changes: list[Change] = [
        SetOption("sasl.password", "told a secret"),
        SetOption("bootstrap.server", "told an address"),
        DropOption("socket.timeout.ms"),
        SetOption("conn_type", "told a type"),
    ]

    with pytest.raises(ConfigurationError) as refused:
        alter(KAFKA, changes)

    assert len(refused.value.problems) == 4
    assert "told" not in f"{refused.value}{refused.value!r}{changes!r}"


def test_a_later_try_may_find_a_drop_done() -> None:
    done = alter(KAFKA, [DropOption("client.id")])

    again = alter(done, [DropOption("client.id")], Means(is_repeated=True))

    assert same(again, done)


def test_a_connection_of_another_type_is_not_altered() -> None:
    with pytest.raises(
        ConfigurationError, match="only connections of type delta, http, iceberg, kafka and postgres"
    ):
        alter(ConnectionFields("spark_default", "spark", "local[2]"), [SetOption("host", "yarn")])


def test_a_port_is_a_number() -> None:
    with pytest.raises(ConfigurationError, match="port: is not a number"):
        alter(POSTGRES, [SetOption("port", "many")])
    assert alter(POSTGRES, [SetOption("port", "5434")], Means(leave=KEPT)).port == 5434


@pytest.mark.parametrize(
    ("view", "name"),
    [
        (KAFKA, "password"),
        (POSTGRES, "password"),
        (replace(KAFKA, extra={}, password="old secret"), "sasl.password"),
    ],
    ids=["extra", "field", "field-of-kafka"],
)
def test_a_secret_is_found_where_it_stands(view: ConnectionFields, name: str) -> None:
    changes = [SetOption(name, Secret("a")), SetOption("ssl.key.password", Secret("b"))]

    assert standing(view, changes) == {"a": "old secret", "b": "***"}


def test_two_ways_to_write_the_same_are_the_same() -> None:
    one = ConnectionFields("pg", "postgres", host="db", extra=None)

    assert same(one, ConnectionFields("other", "postgres", host="db", login="", extra="{}"))
    assert not same(one, ConnectionFields("pg", "postgres", host="db2"))


def shown(**changes: str | None) -> ConnectionFields:
    """Return the connection as Airflow's API shows it."""
    extra = {**dict(KAFKA.extra), "sasl.password": "***", **changes}  # type: ignore[arg-type]
    return ConnectionFields("kafka_prod", "kafka", host="", extra=extra)


@pytest.mark.parametrize(
    ("variable", "row", "said"),
    [
        pytest.param("", shown(), "", id="the-same"),
        pytest.param(
            "AIRFLOW_CONN_KAFKA_PROD", shown(), "environment variable AIRFLOW_CONN_KAFKA_PROD", id="env"
        ),
        pytest.param("", None, "comes from a secrets backend", id="not-in-the-database"),
        pytest.param(
            "", shown(**{"client.id": "other"}), "client.id: is not for the worker", id="overridden"
        ),
        pytest.param("", shown(**{"socket.timeout.ms": "1"}), "socket.timeout.ms: is not", id="more-in-it"),
    ],
)
def test_what_the_api_cannot_change_for_the_workers_is_said(
    variable: str, row: ConnectionFields | None, said: str
) -> None:
    if not said:
        overridden("kafka_prod", variable, row, KAFKA)
        return

    with pytest.raises(ConfigurationError) as refused:
        overridden("kafka_prod", variable, row, KAFKA)

    assert said in str(refused.value)
    assert "secret" not in str(refused.value).replace("secrets backend", "")
