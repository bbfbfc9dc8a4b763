"""Connections of type iceberg: what they may say, and that no secret of theirs is shown."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.iceberg.connection_type import ICEBERG
from airflow_provider_sinks.connectors.iceberg.option_names import (
    ALLOWED,
    FILES,
    HARMLESS,
    SECRETS,
    STORAGE,
    CatalogKind,
)
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.errors import ConfigurationError

CANARY = "canary-of-a-secret"
JDBC = {"host": "db", "login": "me", "password": CANARY, "schema": "catalog"}
PLACE = {"warehouse": "s3://bucket/lake"}


def read(extra: dict[str, Any], **fields: Any) -> IcebergOptions:
    found = ConnectionFields("lake", "iceberg", extra=extra, **fields).options()
    assert isinstance(found, IcebergOptions)
    return found


def test_a_catalog_on_postgres_is_the_default() -> None:
    options = read({**PLACE, "s3.secret-access-key": CANARY, "s3.force-virtual-addressing": False}, **JDBC)
    assert (options.kind, options.name, options.address) == (CatalogKind.JDBC, "lake", "db:5432/catalog")
    assert options.conninfo["password"] == CANARY
    assert options.storage == {"s3.secret-access-key": CANARY, "s3.force-virtual-addressing": "false"}


def test_what_the_form_of_airflow_hides_may_stand_in_the_extra() -> None:
    fields = {**JDBC, "schema": None}
    options = read({**PLACE, "database": "catalog", "port": 5433}, **fields)
    assert options == read(PLACE, **JDBC, port=5433)


def test_other_catalogs_are_options() -> None:
    rest = read({"catalog": "rest"}, host="https://lake/api", login="id", password=CANARY)
    hive = read({"catalog": "hive", **PLACE}, host="metastore")
    assert (rest.kind, rest.address) == (CatalogKind.REST, "https://lake/api")
    assert (hive.kind, hive.address) == (CatalogKind.HIVE, "metastore:9083")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"extra": {}}, "extra.warehouse: is missing (where new tables lie"),
        ({"host": None}, "host: is missing: a jdbc catalog needs it"),
        ({"schema": None}, "schema: is missing: a jdbc catalog needs it (it is the name of the database)"),
        ({"host": "me:secret@db"}, "host: is not one host"),
        ({"extra": {**PLACE, "py-io-impl": "os.system"}}, "extra.py-io-impl: is refused: it names a class"),
        (
            {"extra": {**PLACE, "s3.endpont": "x"}},
            'extra.s3.endpont: is not known (did you mean "s3.endpoint"?)',
        ),
        ({"extra": {**PLACE, "catalog": "glue"}}, "extra.catalog: 'glue' is not known"),
        ({"extra": {"warehouse": "lake"}}, "extra.warehouse: 'lake' is no place"),
        ({"extra": {"catalog": "rest"}, "host": "https://a:b@lake"}, "host: holds a login or a query"),
        ({"extra": {"catalog": "rest"}, "host": "lake"}, "host: is no address of a REST catalog"),
        ({"extra": {**PLACE, "s3.region": ["x"]}}, "extra.s3.region: must be text or a number"),
        ({"extra": {**PLACE, "token": "x"}}, "extra.token: is of a rest catalog, and this is a jdbc one"),
        ({"extra": {**PLACE, "hive.hive2-compatible": True}}, "extra.hive.hive2-compatible: is of a hive"),
        (
            {"extra": {"catalog": "rest", "sslmode": "require"}, "host": "https://lake", "schema": None},
            "extra.sslmode: is of a jdbc catalog, and this is a rest one",
        ),
        (
            {"extra": {"catalog": "rest"}, "host": "https://lake"},
            "schema: is of a jdbc catalog, and this is a rest one",
        ),
        (
            {"extra": {"catalog": "rest"}, "host": "https://lake", "schema": None, "login": None},
            "login: is missing: without it nothing is done with the password",
        ),
        (
            {"extra": {"catalog": "hive", **PLACE}, "schema": None},
            "login: is of a jdbc or rest catalog, and this is a hive one",
        ),
        ({"port": 70000}, "port: 70000 is out of range"),
        ({"extra": {**PLACE, "port": "many"}}, "port: -1 is out of range"),
        (
            {"extra": {**PLACE, "database": "x"}},
            "extra.database: stands in the field schema too (write it once)",
        ),
    ],
)
def test_what_is_wrong_with_a_connection_is_told_and_no_secret(fields: dict[str, Any], told: str) -> None:
    given = {**JDBC, **fields}
    with pytest.raises(ConfigurationError) as refused:
        read(given.pop("extra", PLACE), **given)
    assert told in str(refused.value)
    assert "secret@" not in str(refused.value)


def test_secrets_travel_in_the_private_file_alone() -> None:
    of_storage = dict.fromkeys(SECRETS & STORAGE, CANARY)
    rest = read({"catalog": "rest", "token": CANARY, **of_storage}, host="https://lake")
    assert CANARY not in repr(rest)
    given = {**PLACE, **of_storage}
    options = read(given, **JDBC)
    connections = ResolvedConnections({"lake": options})
    for shown in (repr(options), str(options), options.summary, options.address, repr(connections)):
        assert CANARY not in shown
    back = ResolvedConnections.from_json(connections.to_json()).get("lake", IcebergOptions)
    assert back == options
    other = ResolvedConnections({"lake": read(given, **{**JDBC, "password": "another"})})
    assert connections.visible_digests() == other.visible_digests()


def test_each_option_counts_as_one_that_a_secret_follows_unless_it_is_known_to_be_harmless() -> None:
    assert HARMLESS <= ALLOWED
    assert FILES <= ALLOWED
    assert ICEBERG.alterable.secrets == SECRETS
    assert (
        not {name for name in STORAGE if any(w in name for w in ("secret", "token", "account-key"))} - SECRETS
    )
