"""Where the options of a Kafka connection stand: read from there, and written back there."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.alter.changes import Change, DropOption, Means, Secret, SetOption
from airflow_provider_sinks.core.alter.fold import alter, changed_columns, changed_names
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
SASL = {"bootstrap.servers": "b:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}
MTLS = {"bootstrap.servers": "b:1", "security.protocol": "ssl", "ssl.certificate.pem": PEM}
MEANS = Means({"sinks_secret_new": "new", "sinks_secret_key": KEY}, Leave(keep_secrets=True))
NEW = SetOption("sasl.password", Secret("sinks_secret_new"))


def kafka(extra: dict[str, Any], **fields: Any) -> ConnectionFields:
    return ConnectionFields("k", "kafka", extra=extra, **fields)


def read(fields: ConnectionFields) -> dict[str, str]:
    options = fields.options()
    assert isinstance(options, KafkaOptions)
    return dict(options.options)


def test_the_password_field_is_the_password_before_the_extra_is() -> None:
    both = kafka({**SASL, "sasl.username": "me", "sasl.password": "extra"}, password="field")

    assert read(both)["sasl.password"] == "field"
    assert read(kafka({**SASL, "sasl.username": "me", "sasl.password": "extra"}))["sasl.password"] == "extra"


def test_the_login_is_the_user_where_the_extra_names_none() -> None:
    assert read(kafka(SASL, login="me", password="x"))["sasl.username"] == "me"
    named = kafka({**SASL, "sasl.username": "extra"}, login="me", password="x")
    assert read(named)["sasl.username"] == "extra"


def test_a_private_key_in_the_password_field_is_the_key() -> None:
    assert read(kafka(MTLS, password=KEY))["ssl.key.pem"] == KEY


def test_a_private_key_that_airflow_would_show_is_refused_with_the_way_on() -> None:
    extra = {**MTLS, "ssl.key.pem": KEY, "clientid": "x"}

    with pytest.raises(ConfigurationError) as refused:
        kafka(extra).options()

    assert "ssl.key.pem: stands in the extra, where Airflow shows it in clear" in str(refused.value)
    assert "put the key into the password field" in str(refused.value)
    assert 'clientid: is not known (did you mean "client.id"?)' in str(refused.value)
    assert "BBBB" not in str(refused.value)
    assert read(kafka({**MTLS, "ssl.key.pem": KEY}, masked_words=("ssl_key",)))["ssl.key.pem"] == KEY


def test_a_password_that_nobody_asks_for_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"sasl\.password: has no effect while security\.protocol"):
        kafka({"bootstrap.servers": "b:1"}, password="x").options()


@pytest.mark.parametrize(
    ("old", "change", "login", "password", "extra"),
    [
        pytest.param(
            kafka({**SASL, "sasl.username": "me"}, password="old"),
            [NEW],
            None,
            "new",
            {"sasl.username": "me"},
            id="in the field",
        ),
        pytest.param(
            kafka({**SASL, "sasl.username": "me", "sasl.password": "old"}),
            [NEW],
            None,
            None,
            {"sasl.username": "me", "sasl.password": "new"},
            id="in the extra",
        ),
        pytest.param(
            kafka({**SASL, "sasl.username": "me", "sasl.password": "theirs"}, password="old"),
            [SetOption("client.id", "x")],
            None,
            "old",
            {"sasl.username": "me", "sasl.password": "theirs", "client.id": "x"},
            id="in both, and not touched",
        ),
        pytest.param(
            kafka({**SASL, "sasl.username": "me", "sasl.password": "theirs"}, password="old"),
            [NEW],
            None,
            "new",
            {"sasl.username": "me", "sasl.password": "new"},
            id="in both",
        ),
        pytest.param(
            kafka(SASL, login="me", password="old"),
            [SetOption("login", "you"), SetOption("password", Secret("sinks_secret_new"))],
            "you",
            "new",
            {},
            id="by the names of the fields",
        ),
        pytest.param(
            kafka({"bootstrap.servers": "b:1"}),
            [SetOption(name, value) for name, value in SASL.items()]
            + [SetOption("sasl.username", "me"), NEW],
            None,
            "new",
            {"sasl.username": "me"},
            id="a first password goes into the field",
        ),
        pytest.param(
            kafka(SASL, login="me", password="old"),
            [SetOption("ssl.certificate.pem", PEM), SetOption("ssl.key.pem", Secret("sinks_secret_key"))],
            "me",
            KEY,
            {"ssl.certificate.pem": PEM, "sasl.password": "old"},
            id="a key takes the field, as the extra masks a password",
        ),
    ],
)
def test_an_option_is_changed_where_it_stands(
    old: ConnectionFields,
    change: list[Change],
    login: str | None,
    password: str | None,
    extra: dict[str, str],
) -> None:
    new = alter(old, change, MEANS)

    wanted = {**(SASL if "sasl.mechanism" in new.whole_extra() else {}), **extra}
    assert (new.login, new.password, new.extra) == (login, password, wanted)


def test_dropped_is_dropped_wherever_it_stood() -> None:
    extra = {**SASL, "sasl.username": "me", "sasl.password": "extra"}
    old = kafka(extra, login="you", password="field")
    drops = [DropOption(name) for name in ("login", "password", "sasl.mechanism")]

    new = alter(old, [SetOption("security.protocol", "ssl"), *drops], MEANS)

    assert (new.login, new.password) == (None, None)
    assert new.extra == {"bootstrap.servers": "b:1", "security.protocol": "ssl"}


def test_a_change_is_told_by_the_name_of_the_option_and_made_in_its_column() -> None:
    old = kafka(SASL, login="me", password="old")

    new = alter(old, [NEW], MEANS)

    assert changed_names(old, new) == ("sasl.password",)
    assert changed_columns(old, new) == ("password",)
