"""What an Iceberg catalog answers: it loads no class, and leads nobody to another address."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.answering_catalog import CONFIG, TABLE, TOKENS, AnsweringCatalog, answering_catalog, table

LOADED: list[Any] = []
OWN = {"s3.endpoint": "http://store", "s3.secret-access-key": "stored"}
SINK = SinkSpec.parse(
    {
        "name": "clicks",
        "source": {"kafka": {"connection": "k", "topic": "t", "schema": "id bigint"}},
        "target": {"iceberg": {"catalog": "lake", "table": "web.clicks"}},
    }
)
CLASSES = {
    "auth": {"type": "custom", "impl": f"{__name__}.load", "custom": {}},
    "py-io-impl": f"{__name__}.load",
}
ADDRESSES = {
    "uri": "http://127.0.0.1:1",
    "oauth2-server-uri": "http://127.0.0.1:1",
    "s3.endpoint": "http://127.0.0.1:1",
    "s3.proxy-uri": "http://127.0.0.1:1",
    "s3.signer.uri": "http://127.0.0.1:1",
    "gcs.service.host": "http://127.0.0.1:1",
    "adls.account-host": "127.0.0.1",
    "rest.sigv4-enabled": "true",
    "ssl": {"cabundle": "/etc/hostname"},
    "header.Authorization": "Bearer theirs",
    "token": "theirs",
}


def load(*given: Any, **named: Any) -> None:
    """Stand for any callable of any module, which a server would like to see called."""
    LOADED.append((given, named))


@pytest.fixture(autouse=True)
def _nothing_loaded() -> None:
    LOADED.clear()


def opened(catalog: AnsweringCatalog, login: str | None = None, **extra: str) -> TableCatalog:
    """Return a catalog as a connection leads to it."""
    fields: dict[str, Any] = {"port": None, "login": login, "password": login, "schema": None}
    tokens = {"oauth2-server-uri": catalog.url + TOKENS} if login else {}
    extra = {"catalog": "rest", **tokens, **extra}
    return TableCatalog(IcebergOptions.from_connection("lake", host=catalog.url, **fields, extra=extra))


@pytest.mark.parametrize("kind", ["defaults", "overrides"])
def test_the_configuration_of_a_server_loads_no_class(kind: str) -> None:
    with answering_catalog({CONFIG: {kind: CLASSES}, TABLE: table()}) as catalog:
        opened(catalog).load("web.clicks")

    assert not LOADED


def test_a_dry_look_at_an_altered_connection_loads_no_class() -> None:
    with answering_catalog({CONFIG: {"overrides": CLASSES}, TABLE: table()}) as catalog:
        fields = ConnectionFields("lake", "iceberg", catalog.url, extra={"catalog": "rest"})
        validate({"lake": fields}, SINK, seconds=10)

        assert TABLE in catalog.asked
    assert not LOADED


@pytest.mark.parametrize("kind", ["defaults", "overrides"])
def test_the_configuration_of_a_server_changes_no_address(kind: str) -> None:
    answers = {CONFIG: {kind: ADDRESSES}, TABLE: table(), TOKENS: {"access_token": "a", "token_type": "b"}}
    with answering_catalog(answers) as catalog:
        found = opened(catalog, "id", **OWN).load("web.clicks")

        assert catalog.asked == [TOKENS, CONFIG, TOKENS, TABLE]
        assert catalog.headers[TABLE]["Authorization"] == "Bearer a"
    assert {name: found.io.properties[name] for name in OWN} == OWN
    assert not set(found.io.properties) & (set(ADDRESSES) - set(OWN))


def test_the_configuration_of_a_server_says_below_which_path_its_tables_are() -> None:
    answers = {CONFIG: {"overrides": {"prefix": "mine"}}, TABLE.replace("v1", "v1/mine"): table()}
    with answering_catalog(answers) as catalog:
        found = opened(catalog).load("web.clicks")

    assert found.name() == ("web", "clicks")


@pytest.mark.parametrize("told", [{"config": CLASSES}, {"config": ADDRESSES}], ids=["classes", "addresses"])
def test_the_answer_for_a_table_loads_no_class_and_changes_no_address(told: dict[str, Any]) -> None:
    with answering_catalog({TABLE: {**table(), **told}}) as catalog:
        found = opened(catalog, **OWN).load("web.clicks")

    assert not LOADED
    assert {name: value for name, value in found.io.properties.items() if name.startswith("s3")} == OWN


def test_keys_that_a_catalog_lends_for_a_table_are_taken() -> None:
    lent = {"s3.access-key-id": "k", "s3.session-token": "t", "s3.region": "eu-west-1"}
    more = {"gcs.oauth2.token": "g", "s3.endpoint": "http://127.0.0.1:1"}
    credentials = [{"prefix": "s3://bucket", "config": more}]
    answer = {**table(), "config": lent, "storage-credentials": credentials}
    with answering_catalog({TABLE: answer}) as catalog:
        found = opened(catalog, **OWN).load("web.clicks")

    properties = dict(found.io.properties)
    assert properties.items() >= {**lent, **OWN, "gcs.oauth2.token": "g"}.items()


@pytest.mark.parametrize("region", ["evil.example/#", "a b", ["eu"]])
def test_a_region_that_would_be_an_address_is_left_out(region: Any) -> None:
    with answering_catalog({TABLE: {**table(), "config": {"s3.region": region}}}) as catalog:
        found = opened(catalog, **{"s3.region": "eu-west-1"}).load("web.clicks")

    assert found.io.properties["s3.region"] == "eu-west-1"
