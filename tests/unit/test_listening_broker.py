"""Servers that listen for secrets hear them when they are told: so that their silence proves something."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.kafka.connection import KafkaConnection
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import SinkError
from tests.listening_broker import listening_broker, listening_database, listening_service

SASL = {"security.protocol": "sasl_plaintext", "sasl.username": "me", "sasl.password": "a stored secret"}


def test_a_broker_hears_the_password_of_our_preflight() -> None:
    with listening_broker() as broker:
        extra = {"bootstrap.servers": broker.address, **SASL, "sasl.mechanism": "PLAIN"}
        validate({"k": ConnectionFields("k", "kafka", extra=extra)}, seconds=5)

    assert ("me", "a stored secret") in broker.logins
    assert broker.has_heard("a stored secret")


def test_a_broker_hears_a_proof_of_the_password() -> None:
    with listening_broker() as broker:
        extra = {"bootstrap.servers": broker.address, **SASL, "sasl.mechanism": "SCRAM-SHA-256"}
        validate({"k": ConnectionFields("k", "kafka", extra=extra)}, seconds=5)

    assert broker.logins
    assert not broker.has_heard("a stored secret")


def test_a_broker_hears_the_password_of_librdkafka() -> None:
    with listening_broker() as broker:
        extra = {"bootstrap.servers": broker.address, **SASL, "sasl.mechanism": "PLAIN"}
        with pytest.raises(SinkError):
            KafkaConnection(KafkaOptions.from_connection_extra(extra, "k"), 3).cluster_id()

    assert ("me", "a stored secret") in broker.logins


def test_a_database_hears_the_password() -> None:
    with listening_database() as database:
        host, port = database.host, database.port
        validate({"pg": ConnectionFields("pg", "postgres", host, port, "me", "a stored secret", "db")})

    assert database.logins == [("me", "a stored secret")]


def test_a_service_hears_the_password_of_our_preflight() -> None:
    with listening_service() as service:
        fields = ConnectionFields("r", "http", f"http://{service.address}", None, "me", "a stored secret")
        validate({"r": fields}, seconds=5)

    assert ("me", "a stored secret") in service.logins
