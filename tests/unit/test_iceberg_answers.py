"""What an Iceberg catalog answers: it loads no class, and leads nobody to another address."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.iceberg import bounded_answers
from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError, UnavailableError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from tests.answering_catalog import (
    CONFIG,
    MUTE,
    TABLE,
    TOKENS,
    TRICKLE,
    AnsweringCatalog,
    Said,
    answering_catalog,
    table,
)

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

THEIRS = {
    "py-io-impl": f"{__name__}.load",
    "s3.endpoint": "http://127.0.0.1:1",
    "s3.proxy-uri": "http://127.0.0.1:1",
    "s3.secret-access-key": "theirs",
    "gcs.service.host": "http://127.0.0.1:1",
    "adls.account-host": "127.0.0.1",
}
"""Properties of a table that PyIceberg takes for options of its storage."""
NAMES_A_CLASS = {"write.py-location-provider.impl": f"{__name__}.load"}


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


_PATIENT_SECONDS = (20.0, 20.0)


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answers, "ANSWER_SECONDS", (0.5, 0.5))
    monkeypatch.setattr(bounded_answers, "SLOWEST_SECONDS", 1.0)


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("mute", [TOKENS, CONFIG, TABLE])
def test_a_catalog_that_says_nothing_is_unavailable(mute: str) -> None:
    answers = {TOKENS: {"access_token": "a", "token_type": "b"}, TABLE: table(), mute: MUTE}
    with answering_catalog(answers) as catalog, pytest.raises(UnavailableError, match="ReadTimeout") as told:
        opened(catalog, "id").load("web.clicks")

    assert told.value.retryable


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("slow", [TOKENS, CONFIG, TABLE])
def test_a_catalog_whose_answer_does_not_end_is_unavailable(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_answers, "ANSWER_SECONDS", _PATIENT_SECONDS)  # the whole is bounded
    answers = {TOKENS: {"access_token": "a", "token_type": "b"}, TABLE: table(), slow: TRICKLE}
    with answering_catalog(answers) as catalog, pytest.raises(UnavailableError, match="not ended after 1 s"):
        opened(catalog, "id").load("web.clicks")


def test_an_answer_that_is_too_long_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_answers, "LONGEST_BYTES", 1000)
    answers = {TABLE: Said(200, 2000 * b" ")}

    with (
        answering_catalog(answers) as catalog,
        pytest.raises(UnavailableError, match="more than 1,000 bytes"),
    ):
        opened(catalog).load("web.clicks")


@pytest.mark.timeout(120)
def test_a_commit_that_a_catalog_says_nothing_to_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Any] = {TABLE: table()}
    with answering_catalog(answers) as catalog:
        ours = opened(catalog)
        loaded = ours.load("web.clicks")
        monkeypatch.setattr(bounded_answers, "ANSWER_SECONDS", (0.5, 0.5))
        changes = loaded.transaction()
        changes.set_properties({"a": "b"})
        answers[TABLE] = MUTE

        with pytest.raises(InDoubtError, match="was not answered"):
            ours.commit(loaded, changes)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TableCatalog, SqlCatalog]]:
    """Give a catalog in a database as a connection leads to it, and as whoever alters tables has it."""
    url, lake = f"sqlite:///{tmp_path}/catalog.db", (tmp_path / "lake").as_uri()
    monkeypatch.setattr(TableCatalog, "_database", lambda _: url)
    fields: dict[str, Any] = {"host": "h", "port": None, "login": "l", "password": None, "schema": "d"}
    ours = TableCatalog(IcebergOptions.from_connection("lake", **fields, extra={"warehouse": lake, **OWN}))
    theirs = SqlCatalog("lake", uri=url, warehouse=lake)
    theirs.create_namespace("web")
    yield ours, theirs
    ours.close()
    theirs.close()


def alter(table: Table, properties: dict[str, str]) -> None:
    """Give a table properties, as a program may that loads none of what they name."""
    file = Path(urlsplit(table.metadata_location).path)
    metadata = json.loads(file.read_text())
    file.write_text(json.dumps({**metadata, "properties": {**metadata["properties"], **properties}}))


def test_the_properties_of_a_table_decide_nothing_about_its_storage_in_a_database(
    database: tuple[TableCatalog, SqlCatalog],
) -> None:
    ours, theirs = database
    alter(theirs.create_table("web.clicks", Schema()), THEIRS)

    found = ours.load("web.clicks").io.properties

    assert not LOADED
    assert {name: value for name, value in found.items() if name in OWN | THEIRS} == OWN


def test_the_properties_of_a_table_decide_nothing_about_its_storage_in_a_rest_catalog() -> None:
    with answering_catalog({TABLE: table(**THEIRS)}) as catalog:
        found = opened(catalog, **OWN).load("web.clicks").io.properties

    assert {name: value for name, value in found.items() if name in OWN | THEIRS} == OWN


def test_the_properties_of_a_table_decide_nothing_about_its_storage_in_hive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stands_for_hive = type(
        "HiveCatalog", (MetastoreCatalog,), dict.fromkeys(MetastoreCatalog.__abstractmethods__)
    )
    module = ModuleType("pyiceberg.catalog.hive")
    monkeypatch.setattr(module, "HiveCatalog", stands_for_hive, raising=False)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    extra = {"catalog": "hive", "warehouse": "s3://bucket", **OWN}
    fields: dict[str, Any] = {"host": "h", "port": None, "login": None, "password": None, "schema": None}
    ours = TableCatalog(IcebergOptions.from_connection("lake", **fields, extra=extra))

    found = ours._catalog._load_file_io(THEIRS, "s3://bucket/clicks").properties

    assert not LOADED
    assert {name: value for name, value in found.items() if name in OWN | THEIRS} == OWN


def test_a_table_that_names_a_class_for_its_locations_is_refused(
    database: tuple[TableCatalog, SqlCatalog],
) -> None:
    ours, theirs = database
    alter(theirs.create_table("web.clicks", Schema()), NAMES_A_CLASS)

    with pytest.raises(ConfigurationError, match="names a class to load") as told:
        ours.load("web.clicks")

    assert "write.py-location-provider.impl" in told.value.detail
    assert told.value.connections == ("lake",)


def test_a_commit_loads_no_class_that_a_table_was_given_meanwhile(
    database: tuple[TableCatalog, SqlCatalog],
) -> None:
    ours, theirs = database
    made = theirs.create_table("web.clicks", Schema())
    loaded = ours.load("web.clicks")
    changes = loaded.transaction()
    changes.set_properties({"a": "b"})
    alter(made, NAMES_A_CLASS)

    with pytest.raises(SinkError, match="names a class to load"):
        ours.commit(loaded, changes)

    assert not LOADED
