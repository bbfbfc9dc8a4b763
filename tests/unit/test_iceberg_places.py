"""Where an Iceberg catalog may lead to: no file but those of the warehouse, and no server of its own."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from sqlalchemy import text

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.file_io import BoundFileIO
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.staged_files import IcebergFiles
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError, UnavailableError
from tests.answering_catalog import TABLE, answering_catalog, table
from tests.unit.test_reach import says, server

NO_FILE = "/no/such/file"
NO_FILE_OF_OURS = "a file that the connection names cannot be used by this worker"


class Pointers:
    """A catalog in a database, whose keeper lets it point anywhere."""

    def __init__(self, folder: Path) -> None:
        self.url, self.lake = f"sqlite:///{folder}/catalog.db", folder / "lake"
        self.catalog = SqlCatalog("lake", uri=self.url, warehouse=self.lake.as_uri())
        self.catalog.create_namespace("web")
        self.catalog.create_table("web.clicks", Schema())

    def load(self, location: str, warehouse: str) -> Exception:
        """Return why a table whose metadata is there could not be loaded."""
        with self.catalog.engine.begin() as connection:
            connection.execute(text("UPDATE iceberg_tables SET metadata_location = :at"), {"at": location})
        fields: dict[str, Any] = {"host": "h", "port": None, "login": "l", "password": None, "schema": "d"}
        options = IcebergOptions.from_connection("lake", **fields, extra={"warehouse": warehouse})
        ours = TableCatalog(options)
        with pytest.raises(SinkError) as told:
            ours.load("web.clicks")
        ours.close()
        return told.value


@pytest.fixture
def pointers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pointers]:
    made = Pointers(tmp_path)
    monkeypatch.setattr(TableCatalog, "_database", lambda _: made.url)
    yield made
    made.catalog.close()


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "{}", "FILE://{}"])
@pytest.mark.parametrize("path", [__file__, NO_FILE])
@pytest.mark.parametrize("warehouse", ["s3://bucket", "file:///elsewhere"])
def test_a_catalog_does_not_tell_which_files_the_machine_has(
    pointers: Pointers, form: str, path: str, warehouse: str
) -> None:
    location = form.format(path)

    told = pointers.load(location, warehouse)

    assert isinstance(told, ConfigurationError)
    assert told.primary == "a table leads to a place that its connection does not"
    assert told.detail.strip() == f"{location}: is not where the connection's warehouse is"


@pytest.mark.parametrize("file", ["absent", "text", ".", "text/below"])
def test_a_catalog_that_is_a_database_does_not_tell_either(file: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")
    roots = {"warehouse": "s3://bucket", "sslmode": "verify-ca", "sslrootcert": str(tmp_path / file)}
    fields: dict[str, Any] = {"login": "l", "password": "x", "schema": "d"}

    with server(says(b"S")) as place:
        host, _, port = place.partition(":")
        options = IcebergOptions.from_connection("lake", host=host, port=int(port), **fields, extra=roots)
        validated = validate({"lake": options}, seconds=5).failed
        with pytest.raises(UnavailableError) as told:
            TableCatalog(options).load("web.clicks")

    (reached,) = validated
    assert reached.detail.startswith(f"{place}: {NO_FILE_OF_OURS}")
    assert told.value.detail == NO_FILE_OF_OURS


def test_nobody_leaves_a_local_warehouse(pointers: Pointers) -> None:
    outside = pointers.lake.parent / "outside"
    outside.mkdir()
    (pointers.lake / "link").symlink_to(outside)
    found = [
        pointers.load(f"{pointers.lake.as_uri()}{path}", pointers.lake.as_uri())
        for path in ("/../outside/a.metadata.json", "/link/a.metadata.json", "-beside/a.metadata.json")
    ]

    assert {type(told) for told in found} == {ConfigurationError}


def test_a_file_that_is_no_metadata_is_told_as_one_that_is_not_there(pointers: Pointers) -> None:
    (pointers.lake / "a.metadata.json").write_text('{"inner": "for-inner-eyes-only"}')
    found = [
        pointers.load(f"{pointers.lake.as_uri()}/{name}.metadata.json", pointers.lake.as_uri())
        for name in ("a", "b")
    ]

    assert {type(told) for told in found} == {UnavailableError}
    assert len({str(told) for told in found}) == 1
    assert "inner-eyes" not in str(found[0])


@pytest.mark.parametrize("location", ["hdfs://theirs:9000/a", "viewfs://theirs/a"])
@pytest.mark.parametrize("warehouse", ["s3://bucket", "hdfs://ours:9000/lake"])
def test_a_catalog_leads_nobody_to_a_server_of_its_own(
    pointers: Pointers, location: str, warehouse: str
) -> None:
    told = pointers.load(location, warehouse)

    assert isinstance(told, ConfigurationError)


_KEYS = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}


@pytest.mark.parametrize(
    ("properties", "location", "is_taken"),
    [
        (_KEYS, "s3a://bucket/a", True),
        (_KEYS, "gs://bucket/a", False),
        (_KEYS, "abfss://c@account.dfs.core.windows.net/a", False),
        ({"gcs.oauth2.token": "t"}, "s3://bucket/a", False),
        ({**_KEYS, "gcs.oauth2.token": "t"}, "gs://bucket/a", True),
        ({"s3.region": "r"}, "gs://bucket/a", True),
    ],
)
def test_keys_of_one_cloud_lead_to_no_other(
    properties: dict[str, str], location: str, is_taken: bool
) -> None:
    with nullcontext() if is_taken else pytest.raises(ConfigurationError, match="not in the cloud"):
        BoundFileIO.parse_location(location, properties)


def test_places_of_the_connection_are_taken() -> None:
    own = {"warehouse": "hdfs://ours:9000/lake"}

    assert BoundFileIO.parse_location("hdfs://ours:9000/a", own) == ("hdfs", "ours:9000", "/a")
    assert BoundFileIO.parse_location("s3://bucket/a", own) == ("s3", "bucket", "bucket/a")
    assert BoundFileIO.parse_location("gs://bucket/a") == ("gs", "bucket", "bucket/a")


def test_a_rest_catalog_has_no_file_of_the_machine_written(tmp_path: Path) -> None:
    with answering_catalog({TABLE: table(tmp_path.as_uri())}) as catalog:
        fields: dict[str, Any] = {"port": None, "login": None, "password": None, "schema": None}
        options = IcebergOptions.from_connection(
            "lake", host=catalog.url, **fields, extra={"catalog": "rest"}
        )
        found = TableCatalog(options).load("web.clicks")
    files = pickle.loads(pickle.dumps(IcebergFiles(found.io.properties)))  # noqa: S301  as tasks take it

    with pytest.raises(ConfigurationError, match="a table leads to a place that its connection does not"):
        files.write(f"{tmp_path.as_uri()}/a", b"b")

    assert not (tmp_path / "a").exists()
