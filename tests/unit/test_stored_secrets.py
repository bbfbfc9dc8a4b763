"""A stored secret is sent only to where it was stored for, whatever else a change says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka import option_names as kafka_names
from airflow_provider_sinks.connectors.kafka.connection_type import KAFKA
from airflow_provider_sinks.connectors.postgres import options as postgres_options
from airflow_provider_sinks.connectors.postgres.connection_type import POSTGRES as POSTGRES_TYPE
from airflow_provider_sinks.core.alter.changes import (
    Change,
    DropOption,
    Means,
    ResetOption,
    Secret,
    SetOption,
)
from airflow_provider_sinks.core.alter.fold import alter, variables
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.types import known_types
from airflow_provider_sinks.core.errors import ConfigurationError

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
OPTIONS = {
    "bootstrap.servers": "b:9093",
    "client.id": "sinks",
    "group.id": "somebody else's",
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "me",
    "ssl.ca.pem": PEM,
    "ssl.endpoint.identification.algorithm": "https",
}
IN_FIELD = ConnectionFields("k", "kafka", password="stored", extra=OPTIONS)
IN_EXTRA = ConnectionFields("k", "kafka", extra={**OPTIONS, "sasl.password": "stored"})
POSTGRES = ConnectionFields(
    "pg", "postgres", "db", 5432, "me", "stored", "shop", {"sslmode": "verify-full", "sslrootcert": "/ca"}
)
FILES = Leave(allowed_files=("/other", "/socket"))
NEW = {"sinks_secret_new": "new secret"}
GIVEN = SetOption("sasl.password", Secret("sinks_secret_new"))

MOVES: list[tuple[Change, ...]] = [
    (SetOption("bootstrap.servers", "evil:9093"),),
    (SetOption("bootstrap.servers", "b:9093,evil:9093"),),
    (SetOption("metadata.broker.list", "evil:9093"),),
    (SetOption("bootstrap.servers", "b:9094"),),
    (SetOption("sasl.mechanism", "PLAIN"),),
    (SetOption("sasl.mechanisms", "PLAIN"),),
    (SetOption("sasl.username", "somebody"),),
    (SetOption("ssl.ca.pem", KEY),),
    (DropOption("ssl.ca.pem"),),
    (ResetOption("ssl.ca.pem"),),
    (DropOption("ssl.ca.pem"), SetOption("ssl.ca.location", "/other")),
    (SetOption("ssl.endpoint.identification.algorithm", "none"),),
    (ResetOption("ssl.endpoint.identification.algorithm"),),
    (SetOption("broker.address.family", "v6"),),
    (SetOption("client.dns.lookup", "resolve_canonical_bootstrap_servers_only"),),
    (
        SetOption("security.protocol", "sasl_plaintext"),
        DropOption("ssl.ca.pem"),
        DropOption("ssl.endpoint.identification.algorithm"),
    ),
]
OF_POSTGRES: list[Change] = [
    SetOption("host", "evil"),
    SetOption("host", "/socket"),
    SetOption("port", 5433),
    SetOption("user", "somebody"),
    SetOption("database", "other"),
    SetOption("sslmode", "prefer"),
    ResetOption("sslmode"),
    SetOption("sslrootcert", "/other"),
    SetOption("sslrootcert", "system"),
    DropOption("sslrootcert"),
    SetOption("gssencmode", "require"),
]


def refused(old: ConnectionFields, *changes: Change, leave: Leave = FILES) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as found:
        alter(old, changes, Means(NEW, leave))
    return found.value


@pytest.mark.parametrize("old", [IN_FIELD, IN_EXTRA], ids=["in the password field", "in the extra"])
@pytest.mark.parametrize("changes", MOVES, ids=str)
def test_what_decides_who_hears_the_password_of_a_cluster_demands_it_anew(
    old: ConnectionFields, changes: tuple[Change, ...]
) -> None:
    said = refused(old, *changes)

    assert [problem.where for problem in said.problems] == ["sasl.password"]
    assert "must be given anew" in str(said)
    assert not said.retryable
    new = alter(old, [*changes, GIVEN], Means(NEW, FILES))
    assert new.whole_extra()["sasl.password"] == "new secret"
    assert alter(old, changes, Means({}, replace(FILES, keep_secrets=True))).options()


@pytest.mark.parametrize("change", OF_POSTGRES, ids=str)
def test_what_decides_who_hears_the_password_of_a_database_demands_it_anew(change: Change) -> None:
    said = refused(POSTGRES, change)

    assert [problem.where for problem in said.problems] == ["password"]
    given = SetOption("password", Secret("sinks_secret_new"))
    assert alter(POSTGRES, [change, given], Means(NEW, FILES)).password == "new secret"


@pytest.mark.parametrize(
    "change",
    [
        SetOption("bootstrap.servers", "b:9093"),
        SetOption("bootstrap.servers", " b:9093 "),
        SetOption("security.protocol", "SASL_SSL"),
        SetOption("client.id", "other"),
        SetOption("socket.timeout.ms", 1000),
        DropOption("client.id"),
        DropOption("group.id"),
        GIVEN,
    ],
    ids=str,
)
def test_what_does_not_decide_it_needs_no_secret(change: Change) -> None:
    assert alter(IN_FIELD, [change], Means(NEW)).password in ("stored", "new secret")


def test_the_same_port_written_out_is_no_change() -> None:
    default = replace(POSTGRES, port=None)

    assert alter(default, [SetOption("port", 5432)]).password == "stored"


def test_every_secret_is_demanded_by_name_with_the_statement_to_write() -> None:
    extra = {
        **OPTIONS, "sasl.password": "stored", "ssl.certificate.pem": PEM, "ssl.key.password": "stored too",
    }  # fmt: skip
    old = ConnectionFields("k", "kafka", password=KEY, extra=extra)

    said = refused(old, SetOption("bootstrap.servers", "evil:1"), DropOption("ssl.ca.pem"), GIVEN)

    assert [problem.where for problem in said.problems] == ["ssl.key.password", "ssl.key.pem"]
    assert "bootstrap.servers and ssl.ca.pem would change" in str(said)
    assert said.hint == (
        "Put the secrets into Variables and write: ALTER CONNECTION k SET (bootstrap.servers = '...', "
        "sasl.password = SECRET sinks_secret_new, ssl.key.password = SECRET sinks_secret_<name>, "
        "ssl.key.pem = SECRET sinks_secret_<name>), DROP (ssl.ca.pem)"
    )
    assert "evil" not in str(said)
    assert "stored" not in str(said)


def test_where_no_secret_is_kept_everything_may_change() -> None:
    drops = [DropOption(name) for name in ("sasl.password", "sasl.username", "sasl.mechanism")]
    sets = [SetOption("bootstrap.servers", "other:1"), SetOption("security.protocol", "ssl")]

    new = alter(IN_FIELD, [*sets, *drops])

    assert (new.password, new.whole_extra()["bootstrap.servers"]) == (None, "other:1")


def test_every_option_counts_that_is_not_known_to_be_harmless() -> None:
    kafka, postgres = KAFKA.alterable, POSTGRES_TYPE.alterable

    assert set(kafka_names.ALLOWED) - kafka.harmless - kafka.secrets == {
        "bootstrap.servers", "broker.address.family", "client.dns.lookup", "sasl.mechanism", "sasl.username",
        "security.protocol", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location",
        "ssl.certificate.pem", "ssl.endpoint.identification.algorithm", "ssl.key.location",
        "ssl.keystore.location",
    }  # fmt: skip
    assert postgres_options.ALLOWED - postgres.harmless == {
        "gssencmode", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert",
    }  # fmt: skip


OTHERWISE = {
    "kafka": {
        "broker.address.family", "client.dns.lookup", "sasl.mechanism", "sasl.username", "security.protocol",
        "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem",
        "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.keystore.location",
    },
    "postgres": {
        "port", "login", "schema", "gssencmode", "sslcert", "sslcrl", "sslkey", "sslmode", "sslrootcert",
    },
    "http": {
        "port", "login", "schema", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    },
    "delta": {
        "aws_access_key_id", "aws_allow_http", "aws_region", "aws_virtual_hosted_style_request",
        "azure_client_id", "azure_tenant_id",
    },
    "iceberg": {
        "port", "login", "schema", "catalog", "database", "gcs.project-id", "name", "prefix",
        "s3.access-key-id", "s3.force-virtual-addressing", "s3.region", "s3.role-arn", "s3.role-session-name",
        "scope", "sslmode", "sslrootcert",
    },
}  # fmt: skip
"""What decides who hears a secret and leads nowhere by itself: a user, a certificate, a protocol, a name at
the same server, or a region of the same cloud."""


@pytest.mark.parametrize("conn_type", OTHERWISE)
def test_every_option_that_decides_leads_to_a_server_or_decides_otherwise(conn_type: str) -> None:
    options = known_types()[conn_type].alterable
    assert options.addresses is not None

    assert not options.addresses & OTHERWISE[conn_type]
    assert options.addresses | OTHERWISE[conn_type] == options.deciding


def test_the_addresses_of_every_type_of_ours_are_listed() -> None:
    ours = {name for name, known in known_types().items() if known.__module__.startswith("airflow_provider_")}

    assert ours == set(OTHERWISE)


def test_of_a_type_that_lists_none_all_that_decides_leads_somewhere() -> None:
    options = replace(POSTGRES_TYPE.alterable, addresses=None)

    assert {"host", "sslmode", "sslrootcert"} <= options.address_names
    assert not {"port", "password", "application_name"} & options.address_names


@pytest.mark.parametrize(
    ("name", "secret", "said"),
    [
        ("sasl.username", "sinks_secret_new", "is no secret"),
        ("sasl.username", "a foreign one", "is no secret"),
        ("bootstrap.servers", "a foreign one", "is no secret"),
        ("sasl.password", "a foreign one", "does not begin with sinks_secret_"),
        ("sasl.password", "SINKS_SECRET_new", "does not begin with sinks_secret_"),
    ],
)
def test_no_other_variable_is_read(name: str, secret: str, said: str) -> None:
    changes = [SetOption(name, Secret(secret))]

    found = refused(IN_FIELD, *changes)

    assert said in str(found)
    assert "foreign" not in str(found)
    assert not variables(IN_FIELD, changes, Leave())


def test_a_foreign_variable_is_refused_in_the_same_words_whether_it_is_there_or_not() -> None:
    changes = [SetOption("sasl.password", Secret("a_foreign_one"))]

    with pytest.raises(ConfigurationError) as there:
        alter(IN_FIELD, changes, Means({"a_foreign_one": "its value"}))

    assert str(there.value) == str(refused(IN_FIELD, *changes))


def test_the_author_may_choose_another_prefix() -> None:
    leave = Leave(secret_prefix="team_a_")

    new = alter(IN_FIELD, [SetOption("sasl.password", Secret("team_a_1"))], Means({"team_a_1": "x"}, leave))

    assert new.password == "x"


@pytest.mark.parametrize(
    ("old", "name", "path"),
    [
        (IN_FIELD, "ssl.ca.location", "/etc/passwd"),
        (IN_FIELD, "ssl.keystore.location", "/etc/passwd"),
        (POSTGRES, "sslrootcert", "/etc/passwd"),
        (POSTGRES, "sslkey", "relative"),
        (POSTGRES, "host", "/var/run"),
    ],
)
def test_a_file_of_the_worker_is_named_by_the_author_alone(
    old: ConnectionFields, name: str, path: Any
) -> None:
    found = refused(old, SetOption(name, path), leave=Leave(keep_secrets=True))

    assert f"{name}: names a file of the worker" in str(found)
    assert path not in str(found)


def test_the_file_that_is_named_already_may_be_named_again() -> None:
    assert alter(POSTGRES, [SetOption("sslrootcert", "/ca")]) == POSTGRES


AZURE = {"azure_storage_account_name": "acct"}
CATALOG = {"warehouse": "s3://lake/tables", "s3.region": "eu-west-1"}
LENT: list[tuple[ConnectionFields, tuple[Change, ...]]] = [
    (POSTGRES, (SetOption("host", "evil"), DropOption("password"))),
    (replace(POSTGRES, password=None), (SetOption("host", "evil"),)),
    (
        ConnectionFields("st", "delta", extra={**AZURE, "azure_storage_account_key": "stored"}),
        (SetOption("azure_endpoint", "https://evil"), DropOption("azure_storage_account_key")),
    ),
    (ConnectionFields("st", "delta", extra=AZURE), (SetOption("azure_storage_account_name", "evil"),)),
    (
        ConnectionFields("st", "delta", extra=AZURE),
        (
            SetOption("azure_endpoint", "https://evil"),
            SetOption("azure_client_secret", Secret("sinks_secret_new")),
        ),
    ),
    (
        ConnectionFields("st", "delta", extra={"aws_region": "eu-west-1"}),
        (SetOption("aws_endpoint", "https://evil"),),
    ),
    (
        ConnectionFields("lake", "iceberg", "db", 5432, "me", "stored", "lake", CATALOG),
        (
            SetOption("s3.endpoint", "https://evil"),
            SetOption("password", Secret("sinks_secret_new")),
        ),
    ),
    (
        ConnectionFields("lake", "iceberg", "https://rest", extra={"catalog": "rest"}),
        (SetOption("host", "https://evil"),),
    ),
]


def storage(**extra: str) -> ConnectionFields:
    return ConnectionFields("st", "delta", extra=extra)


def catalog(**extra: str) -> ConnectionFields:
    return ConnectionFields("lake", "iceberg", "https://rest", extra={"catalog": "rest", **extra})


@pytest.mark.parametrize(("old", "changes"), LENT, ids=str)
def test_what_the_worker_logs_in_with_goes_to_no_other_server(
    old: ConnectionFields, changes: tuple[Change, ...]
) -> None:
    said = refused(old, *changes)

    assert "what the worker itself logs in with" in str(said)
    assert "evil" not in str(said)
    assert alter(old, changes, Means(NEW, replace(FILES, keep_secrets=True))).options()


ELSEWHERE: dict[str, tuple[ConnectionFields, tuple[str, ...]]] = {
    "S3": (
        storage(aws_endpoint="https://e", aws_access_key_id="me", aws_secret_access_key="given"),
        ("aws_access_key_id", "aws_secret_access_key"),
    ),
    "half of a login at S3": (
        storage(aws_endpoint="https://e", aws_access_key_id="me", aws_secret_access_key="given"),
        ("aws_secret_access_key",),
    ),
    "Azure": (
        storage(**AZURE, azure_endpoint="https://e", azure_storage_sas_key="given"),
        ("azure_storage_sas_key",),
    ),
    "Google": (
        catalog(**{"gcs.service.host": "https://e", "gcs.oauth2.token": "given"}),
        ("gcs.oauth2.token",),
    ),
    "a catalog": (
        catalog(**{"s3.access-key-id": "me", "s3.secret-access-key": "given"}),
        ("s3.access-key-id", "s3.secret-access-key"),
    ),
    "Postgres": (POSTGRES, ("password",)),
}
"""Addresses that came with a login, and what would leave the machine's in its place."""


@pytest.mark.parametrize("verb", [DropOption, ResetOption])
@pytest.mark.parametrize("led", ELSEWHERE)
def test_a_login_is_not_dropped_where_its_address_stays(
    led: str, verb: type[DropOption | ResetOption]
) -> None:
    old, login = ELSEWHERE[led]
    taken: list[Change] = [verb(name) for name in login]

    said = refused(old, *taken)

    assert "would be sent what the worker itself logs in with" in str(said)
    assert "the address goes with its login" in str(said)
    assert alter(old, taken, Means({}, replace(FILES, keep_secrets=True))).options()


def test_a_login_is_dropped_together_with_its_address() -> None:
    old, login = ELSEWHERE["S3"]

    assert alter(old, [*map(DropOption, login), DropOption("aws_endpoint")]).options()


def test_a_login_may_take_the_place_of_another() -> None:
    old, login = ELSEWHERE["Azure"]
    given = SetOption("azure_storage_account_key", Secret("sinks_secret_new"))

    assert alter(old, [*map(DropOption, login), given], Means(NEW)).options()


@pytest.mark.parametrize(
    "changes",
    [
        (SetOption("host", "https://evil"), SetOption("token", Secret("sinks_secret_new"))),
        (SetOption("oauth2-server-uri", "https://evil"), SetOption("token", Secret("sinks_secret_new"))),
        (SetOption("warehouse", "theirs"), SetOption("token", Secret("sinks_secret_new"))),
        (
            SetOption("host", "https://evil"),
            SetOption("login", "me"),
            SetOption("password", Secret("sinks_secret_new")),
        ),
    ],
    ids=str,
)
def test_a_catalogs_password_is_no_login_of_its_storage(changes: tuple[Change, ...]) -> None:
    said = refused(catalog(), *changes)

    assert "would lead elsewhere, and be sent what the worker itself logs in with" in str(said)
    keys = [
        SetOption("s3.access-key-id", "me"),
        SetOption("s3.secret-access-key", Secret("sinks_secret_new")),
    ]
    assert alter(catalog(), [*changes, *keys], Means(NEW)).options()


def test_with_a_login_of_its_own_a_connection_may_lead_elsewhere() -> None:
    old = ConnectionFields("st", "delta", extra={"aws_region": "eu-west-1"})
    login = [
        SetOption("aws_access_key_id", "me"),
        SetOption("aws_secret_access_key", Secret("sinks_secret_new")),
    ]

    assert alter(old, [SetOption("aws_endpoint", "https://other"), *login], Means(NEW)).options()


def test_without_a_login_of_its_own_the_rest_may_change() -> None:
    old = ConnectionFields("st", "delta", extra={"aws_region": "eu-west-1"})

    assert alter(old, [SetOption("aws_region", "us-east-1")]).options()
