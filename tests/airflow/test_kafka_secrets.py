"""Secrets of a Kafka connection, read from where Airflow masks them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError

Define = Callable[..., None]
SASL = {"bootstrap.servers": "b:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
MTLS = {"bootstrap.servers": "b:1", "security.protocol": "ssl", "ssl.certificate.pem": CERTIFICATE}


def read(define: Define, **fields: Any) -> dict[str, str]:
    """Return the options of a connection of the environment, as our docs write it."""
    from airflow_provider_sinks.hooks.connections import usable_options

    define(kafka_secret={"conn_type": "kafka", **fields})
    return dict(usable_options("kafka_secret", "kafka").given)


def test_user_and_password_come_from_the_fields_of_the_connection(connections: Define) -> None:
    found = read(connections, login="me", password="a stored secret", extra=SASL)

    assert (found["sasl.username"], found["sasl.password"]) == ("me", "a stored secret")


def test_a_private_key_comes_from_the_password_field(connections: Define) -> None:
    assert read(connections, password=KEY, extra=MTLS)["ssl.key.pem"] == KEY


@pytest.mark.parametrize(
    ("names", "taken"),
    [("secret_sauce", False), ("ssl_key_pem", True), ("x, KEY_PEM", True), ("ssl.key.pem", False)],
)
def test_a_private_key_in_the_extra_is_taken_only_where_airflow_masks_it(
    connections: Define, monkeypatch: pytest.MonkeyPatch, names: str, *, taken: bool
) -> None:
    from airflow._shared.secrets_masker import SecretsMasker

    masker = SecretsMasker()
    masker.sensitive_variables_fields = [name.strip().lower() for name in names.split(",")]
    monkeypatch.setenv("AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES", names)

    assert masker.should_hide_value_for_key("ssl.key.pem") is taken
    if taken:
        assert read(connections, extra={**MTLS, "ssl.key.pem": KEY})["ssl.key.pem"] == KEY
        return
    with pytest.raises(ConfigurationError, match="where Airflow shows it in clear"):
        read(connections, extra={**MTLS, "ssl.key.pem": KEY})


def test_the_password_is_masked_in_logs(connections: Define) -> None:
    from airflow.sdk._shared.secrets_masker import redact

    read(connections, login="me", password="nobody-else-has-this", extra=SASL)

    assert redact("said nobody-else-has-this") == "said ***"


def test_secrets_in_the_extra_are_masked_in_a_connection_that_became_generic(connections: Define) -> None:
    from airflow.sdk._shared.secrets_masker import redact

    from airflow_provider_sinks.hooks.connections import fields

    word = f"canary {uuid.uuid4().hex}"
    connections(kafka_secret={"conn_type": "generic", "extra": {"ssl.key.pem": word}})

    fields("kafka_secret")

    assert word not in str(redact(f"it says {word}"))
