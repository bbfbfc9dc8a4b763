"""What a connection may carry, how it is said to librdkafka and to Java, and that no secret is ever shown."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.clients.pem_files import LARGEST_PEM_BYTES, PEM_FILES
from airflow_provider_sinks.clients.schema_registry.options import RegistryOptions
from airflow_provider_sinks.connectors.kafka.option_names import ALLOWED, DROPPED, SECRETS, refusal
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.postgres.options import NOTHING_OF_THE_MACHINE, PostgresOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError

CANARY = 'c4n4ry "quoted" \\ password'
SASL = {
    "bootstrap.servers": "b1:9093,b2:9093",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ann",
    "sasl.password": CANARY,
}
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
OLD_KEY = "-----BEGIN RSA PRIVATE KEY-----\nBBBB\n-----END RSA PRIVATE KEY-----\n"
SSL = {"bootstrap.servers": "b:9093", "security.protocol": "ssl"}


def kafka(extra: dict[str, Any]) -> KafkaOptions:
    return KafkaOptions.from_connection_extra(extra, "kafka_prod")


def postgres(**fields: Any) -> PostgresOptions:
    given: dict[str, Any] = {"host": "db", "port": 5433, "login": "ann", "password": CANARY, "schema": "shop"}
    return PostgresOptions.from_connection("pg_prod", **{"extra": {}, **given, **fields})


def problems(error: pytest.ExceptionInfo[ConfigurationError]) -> str:
    return "\n".join(map(str, error.value.problems))


def test_plain_connection_for_both_clients() -> None:
    options = kafka({"bootstrap.servers": "localhost, other:9093,[::1]", "socket.timeout.ms": 5000})

    assert options.librdkafka() == {
        "bootstrap.servers": "localhost:9092,other:9093,[::1]:9092",
        "socket.timeout.ms": "5000",
    }
    assert options.spark_source() == {
        "kafka.bootstrap.servers": "localhost:9092,other:9093,[::1]:9092",
        "kafka.request.timeout.ms": "5000",
    }


def test_sasl_becomes_a_jaas_entry_for_java() -> None:
    java = kafka(SASL).spark_source()

    assert java["kafka.security.protocol"] == "SASL_SSL"
    assert java["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert java["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="ann" password="c4n4ry \"quoted\" \\ password";'
    )
    assert not {"kafka.sasl.username", "kafka.sasl.password"} & set(java)


def test_pem_files_become_text_so_that_executors_need_no_files(tmp_path: Path) -> None:
    for name, text in {"ca": CERTIFICATE, "cert": CERTIFICATE, "key": KEY}.items():
        (tmp_path / name).write_text(text)
    files = {
        "ssl.ca.location": f"{tmp_path}/ca",
        "ssl.certificate.location": f"{tmp_path}/cert",
        "ssl.key.location": f"{tmp_path}/key",
    }
    options = kafka({**SSL, **files, "ssl.endpoint.identification.algorithm": "none"})

    assert options.librdkafka()["ssl.ca.location"] == f"{tmp_path}/ca"
    assert options.with_files_read().librdkafka() == {
        **SSL,
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.pem": CERTIFICATE,
        "ssl.certificate.pem": CERTIFICATE,
        "ssl.key.pem": KEY,
    }
    assert options.spark_source() == {
        "kafka.bootstrap.servers": "b:9093",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": CERTIFICATE,
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
        "kafka.ssl.keystore.key": KEY,
    }


def test_a_key_store_stays_a_file() -> None:
    store = {"ssl.keystore.location": "/secrets/store.p12", "ssl.keystore.password": "x"}

    assert kafka({**SSL, **store}).spark_source() == {
        "kafka.bootstrap.servers": "b:9093",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PKCS12",
        "kafka.ssl.keystore.location": "/secrets/store.p12",
        "kafka.ssl.keystore.password": "x",
    }


def test_a_key_that_java_cannot_read_is_refused_with_the_command_that_helps() -> None:
    options = kafka({**SSL, "ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": OLD_KEY})

    with pytest.raises(ConfigurationError) as error:
        options.spark_source()

    assert "holds RSA PRIVATE KEY, but Java reads keys in PKCS #8 only (openssl pkcs8" in problems(error)
    assert "BBBB" not in str(error.value)


def registry(extra: dict[str, Any]) -> RegistryOptions:
    options = ConnectionFields("registry", "http", "https://r", extra=extra).options()
    assert isinstance(options, RegistryOptions)
    return options


def use_of_kafka(name: str, path: str) -> None:
    pair = {"ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY} if name != "ssl.ca.location" else {}
    pair.pop(PEM_FILES[name], None)
    kafka({**SSL, **pair, name: path}).spark_source()


def use_of_a_registry(name: str, path: str) -> None:
    pair = {"ssl.certificate.location": path} if name == "ssl.key.location" else {}
    registry({**pair, name: path}).usable()


@pytest.mark.parametrize("name", PEM_FILES)
@pytest.mark.parametrize("use", [use_of_kafka, use_of_a_registry])
def test_a_file_that_cannot_be_used_is_refused_in_the_same_words_whether_it_is_there_or_not(
    use: Callable[[str, str], None], name: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("no certificate")
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "large").write_text(f"-----BEGIN {'x' * LARGEST_PEM_BYTES}")
    os.mkfifo(tmp_path / "pipe")

    said = set()
    for file in ("absent", "folder", "text", "bytes", "large", "pipe", "text/below"):
        with pytest.raises(ConfigurationError) as error:
            use(name, f"{tmp_path}/{file}")
        said.add(str(error.value).replace(f"{tmp_path}/{file}", "FILE"))

    (words,) = said
    assert "names files that cannot be used" in words
    assert f"{name}: 'FILE' cannot be used (one PEM file of at most 1 MiB" in words


def test_a_comment_in_a_file_may_hold_any_letters(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text(f"# Főtanúsítvány\n{CERTIFICATE}")

    for read in (
        kafka({**SSL, "ssl.ca.location": f"{tmp_path}/ca"}).usable(),
        registry({"ssl.ca.location": f"{tmp_path}/ca"}).usable(),
    ):
        assert read.given["ssl.ca.pem"].isascii()
        assert CERTIFICATE in read.given["ssl.ca.pem"]


def test_what_belongs_to_other_users_of_the_connection_is_dropped() -> None:
    options = kafka({"bootstrap.servers": "b:1", "group.id": "x", "auto.offset.reset": "latest", "acks": "1"})

    assert options.librdkafka() == {"bootstrap.servers": "b:1"}
    assert options.dropped == ("acks", "auto.offset.reset", "group.id")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sasl.jaas.config", "it can load any class"),
        ("error_cb", "callbacks are code"),
        ("oauth_cb", "callbacks are code"),
        ("sasl.login.callback.handler.class", "callbacks are code"),
        ("plugin.library.paths", "it loads native code"),
        ("ssl.engine.location", "it loads native code"),
        ("ssl.providers", "it loads native code"),
        ("interceptor.classes", "it loads code by its name"),
        ("value.deserializer", "it loads code by its name"),
        ("metric.reporters", "it loads code by its name"),
        ("ssl.crl.location", "no file is read"),
        ("ssl.truststore.location", "it is a name of the Java client"),
        ("sasl.oauthbearer.token.endpoint.url", "credentials to any address"),
        ("sasl.oauthbearer.config", "this mechanism is not supported"),
        ("sasl.kerberos.kinit.cmd", "this mechanism is not supported"),
        ("enable.ssl.certificate.verification", "both must act alike"),
        ("ssl.cipher.suites", "both must act alike"),
        ("debug", "into logs"),
    ],
)
def test_what_loads_code_or_reads_files_is_refused(name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        kafka({"bootstrap.servers": "b:1", name: "x"})

    assert problems(error).startswith(f"{name}: is refused: ")
    assert reason in problems(error)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({}, "bootstrap.servers: is missing (host:port, host:port)"),
        ({"bootstrap.server": "b"}, 'bootstrap.server: is not known (did you mean "bootstrap.servers"?)'),
        ({"bootstrap.servers": "kafka://ann:pw@b:1"}, "bootstrap.servers: entry 1 is not host:port"),
        ({"bootstrap.servers": "b", "metadata.broker.list": "c"}, "stands beside its other name"),
        ({"bootstrap.servers": ["b"]}, "bootstrap.servers: must be text or a number"),
        ({"bootstrap.servers": "b", "client.id": ""}, "client.id: is empty"),
        ({**SASL, "security.protocol": "sasl_sll"}, 'did you mean "sasl_ssl"?'),
        ({**SASL, "sasl.mechanism": "scram-sha-256"}, 'did you mean "SCRAM-SHA-256"?'),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "'OAUTHBEARER' is not supported (one of PLAIN"),
        ({**SASL, "security.protocol": "ssl"}, "sasl.password: has no effect while security.protocol is ssl"),
        ({"bootstrap.servers": "b", "security.protocol": "sasl_ssl"}, "sasl.mechanism: is missing"),
        ({"bootstrap.servers": "b", "security.protocol": "sasl_ssl"}, "sasl.username: is missing"),
        ({"bootstrap.servers": "b", "ssl.ca.location": "/ca"}, "ssl.ca.location: has no effect"),
        ({**SSL, "ssl.key.location": "/k"}, "ssl.certificate.location: is missing: a key is given"),
        ({**SSL, "ssl.certificate.pem": "x"}, "ssl.key.location: is missing: a certificate is given"),
        ({**SSL, "ssl.ca.location": "/a", "ssl.ca.pem": "x"}, "ssl.ca.pem: stands beside ssl.ca.location"),
        ({**SSL, "ssl.endpoint.identification.algorithm": "http"}, "'http' is not known (https or none)"),
        ({**SSL, "ssl.ca.pem": f"# Prüfstelle\n{CERTIFICATE}"}, "ssl.ca.pem: holds letters beyond ASCII"),
    ],
)
def test_what_is_wrong_with_a_kafka_connection(extra: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        kafka(extra)

    assert problem in problems(error)


def test_all_problems_of_a_connection_at_once() -> None:
    with pytest.raises(ConfigurationError) as error:
        kafka({"error_cb": "a.b", "sasl.pasword": CANARY, "ssl.ca.location": None})

    assert [problem.where for problem in error.value.problems] == [
        "error_cb",
        "sasl.pasword",
        "ssl.ca.location",
    ]
    assert CANARY not in str(error.value)


def test_each_name_is_allowed_dropped_or_refused_and_never_two_of_them() -> None:
    assert not set(ALLOWED) & DROPPED
    assert not [name for name in DROPPED if refusal(name)]
    assert set(ALLOWED) >= SECRETS


def test_postgres_connection() -> None:
    options = postgres(port=None, extra={"sslmode": "require", "connect_timeout": 3, "cursor": "dictcursor"})

    assert options.conninfo == {
        **NOTHING_OF_THE_MACHINE,
        "application_name": "airflow-provider-sinks",
        "connect_timeout": "3",
        "sslmode": "require",
        "host": "db",
        "port": "5432",
        "user": "ann",
        "dbname": "shop",
        "password": CANARY,
    }


def test_postgres_connection_without_a_password_says_so() -> None:
    assert postgres(password=None).conninfo["password"] == ""


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"host": None}, "host: is missing"),
        ({"host": "ann:pw@db/shop?x=1"}, "host: is not one host"),
        ({"port": 70000}, "port: 70000 is out of range"),
        ({"login": ""}, "login: is missing"),
        ({"schema": None}, "schema: is missing (it is the name of the database)"),
        ({"extra": {"options": "-c search_path=x"}}, "extra.options: is refused: it sets any parameter"),
        ({"extra": {"service": "x"}}, "extra.service: is refused"),
        ({"extra": {"passfile": "x"}}, "extra.passfile: is refused"),
        ({"extra": {"iam": True}}, "extra.iam: is refused"),
        ({"extra": {"sslmod": "require"}}, 'extra.sslmod: is not known (did you mean "sslmode"?)'),
        ({"extra": {"sslmode": "required"}}, 'did you mean "require"?'),
        ({"extra": {"connect_timeout": [3]}}, "extra.connect_timeout: must be text or a number"),
    ],
)
def test_what_is_wrong_with_a_postgres_connection(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        postgres(**fields)

    assert problem in problems(error)
    assert CANARY not in str(error.value)
    assert "pw" not in str(error.value)


def resolved() -> ResolvedConnections:
    return ResolvedConnections({"kafka_prod": kafka(SASL), "pg_prod": postgres()})


def test_connections_travel_as_json_and_come_back_whole() -> None:
    back = ResolvedConnections.from_json(resolved().to_json())

    assert back == resolved()
    assert back.get("kafka_prod", KafkaOptions).bootstrap_servers == "b1:9093,b2:9093"
    assert back.get("pg_prod", PostgresOptions).conninfo["password"] == CANARY


def test_no_secret_is_shown() -> None:
    inline = kafka(
        {**SSL, "ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY, "ssl.key.password": CANARY}
    )

    for shown in (repr(resolved()), str(resolved()), repr(inline), f"{kafka(SASL)}", f"{postgres()!s}"):
        assert CANARY not in shown
        assert json.dumps(CANARY)[1:-1] not in shown
        assert "BBBB" not in shown


SASL_OPTIONS = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": "one"}
SECURED = {"bootstrap.servers": "a:1", "security.protocol": "sasl_ssl", "ssl.ca.pem": "A", **SASL_OPTIONS}


@pytest.mark.parametrize(
    ("changes", "is_seen"),
    [
        pytest.param({"bootstrap.servers": "b:1"}, True, id="an address"),
        pytest.param({"sasl.username": "you"}, True, id="a user"),
        pytest.param({"client.id": "c"}, True, id="one more option"),
        pytest.param({"sasl.password": "two"}, False, id="a password"),
        pytest.param({"ssl.ca.pem": "B"}, False, id="what a file holds"),
    ],
)
def test_a_digest_for_everybody_tells_apart_what_everybody_may_see(
    changes: dict[str, str], is_seen: bool
) -> None:
    one, two = (digests_of(SECURED), digests_of({**SECURED, **changes}))

    assert (one != two) is is_seen


def test_a_digest_for_everybody_does_not_depend_on_a_database_password() -> None:
    fields: dict[str, Any] = {"host": "h", "port": 1, "login": "me", "schema": "db", "extra": {}}
    one, two = (PostgresOptions.from_connection("pg", password=text, **fields) for text in ("one", "two"))

    assert ResolvedConnections({"pg": one}).visible_digests() == (
        ResolvedConnections({"pg": two}).visible_digests()
    )


def digests_of(extra: dict[str, str]) -> dict[str, str]:
    return ResolvedConnections({"kafka": KafkaOptions("kafka", extra)}).visible_digests()


def test_options_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(resolved())) == resolved()  # noqa: S301  our own bytes


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"a": {"mysql": {}}}', '{"a": {"kafka": {"debug": 1}}}']
)
def test_what_is_not_a_file_of_connections_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        ResolvedConnections.from_json(text)


def test_a_connection_of_another_name_or_type_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="not known"):
        resolved().get("kafka_prd", KafkaOptions)
    with pytest.raises(ConfigurationError, match="not of type kafka"):
        resolved().get("pg_prod", KafkaOptions)
    with pytest.raises(ConfigurationError, match="not of type postgres"):
        resolved().get("kafka_prod", PostgresOptions)
