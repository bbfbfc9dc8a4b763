"""PyIceberg's catalogs, bound to their connection: what they answer loads no class and changes no address.

PyIceberg takes much more from others than data. A REST catalog may override each option of its client, which
names classes to import, the address of tokens and the proxy among them; and the properties of a table, which
whoever may alter the table writes, override the options of the storage. A connection can be led to a server
of somebody else by a form, and is asked in a dry run: so only what is listed here is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchPropertyException, NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests import Session

from airflow_provider_sinks.clients.own_headers import OwnHeaders
from airflow_provider_sinks.connectors.iceberg.bounded_answers import BoundedAdapter
from airflow_provider_sinks.connectors.iceberg.file_io import BoundFileIO, storage_of
from airflow_provider_sinks.connectors.iceberg.shared_entries import with_shared_entries
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError, UnavailableError

_CLASS: Final = TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL
_REGIONS = frozenset({"client.region", "s3.region"})
LENT: Final = _REGIONS | {
    "adls.sas-token",
    "gcs.oauth2.token",
    "gcs.oauth2.token-expires-at",
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3.session-token",
}
"""What a REST catalog may give for its storage: keys, and no address. A region is a part of one."""
_PATHS = frozenset({"namespace-separator", "prefix"})
"""How a REST catalog wants its own paths."""


def _lent(told: Mapping[str, Any]) -> dict[str, str]:
    """Return what a catalog gives for its storage."""
    return {name: value for name, value in told.items() if name in LENT and _is_lent(name, value)}


def _is_lent(name: str, value: Any) -> bool:
    return isinstance(value, str) and (name not in _REGIONS or bool(re.fullmatch(r"[a-z0-9-]+", value)))


class _Bound(Catalog):
    """A catalog whose tables lie where its connection says."""

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        """Return the storage by the connection alone, whatever the table's own properties say.

        PyIceberg comes here with each table that it loads, also with one that it is about to commit.

        :raises ConfigurationError: the table names a class, which PyIceberg would load with the next file.
        """
        if _CLASS in properties:
            raise ConfigurationError(
                "a table names a class to load",
                [Problem(str(location), f"its property {_CLASS} does", "unset it")],
            )
        return BoundFileIO(storage_of(self.properties))


@contextmanager
def _reading_metadata() -> Iterator[None]:
    """Tell by one sentence what is wrong with a file of metadata, which is where the catalog says it is.

    A catalog can be anybody's: what the storage answers would tell which files there are.
    """
    try:
        yield
    except (SinkError, NoSuchTableError, NoSuchPropertyException):
        raise
    except Exception as error:
        raise UnavailableError(
            "the metadata that a catalog names could not be read",
            hint="See that a table's metadata is there, and that the storage can be read with the "
            "connection's keys from here.",
        ) from error


class BoundSqlCatalog(_Bound, SqlCatalog):
    """A catalog in a database."""

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        with _reading_metadata():
            return with_shared_entries(super()._convert_orm_to_iceberg(orm_table))


def bound_hive_catalog() -> type[Catalog]:
    """Return the class of Hive's catalogs; it needs packages that others do not."""
    from pyiceberg.catalog.hive import HiveCatalog

    class BoundHiveCatalog(_Bound, HiveCatalog):
        """A catalog in a Hive metastore."""

        def _convert_hive_into_iceberg(self, table: Any) -> Table:
            with _reading_metadata():
                return with_shared_entries(super()._convert_hive_into_iceberg(table))

    return BoundHiveCatalog


class BoundRestCatalog(_Bound, RestCatalog):
    """A REST catalog."""

    def _config_headers(self, session: Session) -> None:
        """Follow nobody to another address, and wait for nobody without end.

        PyIceberg comes here before it sends anything.
        """
        super()._config_headers(session)
        session.max_redirects = 0
        session.auth = OwnHeaders()  # of the request for a token; PyIceberg's own comes behind it
        for scheme in ("http://", "https://"):
            session.mount(scheme, BoundedAdapter())

    def _fetch_config(self) -> None:
        """Take paths and keys of the storage from the server, and nothing else."""
        own, uri = self.properties, self.uri
        super()._fetch_config()
        told = self.properties
        paths = {name: value for name, value in told.items() if name in _PATHS}
        self.properties, self.uri = {**own, **paths, **_lent(told)}, uri

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        """Return the storage, with the keys that the catalog's configuration lends for all tables."""
        io = super()._load_file_io(properties, location)
        return BoundFileIO({**io.properties, **_lent(self.properties)})

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        """Return a table, with the keys that are lent for it."""
        table = super()._response_to_table(identifier_tuple, table_response)
        credentials = self._resolve_storage_credentials(
            table_response.storage_credentials, table_response.metadata_location
        )
        lent = _lent({**table_response.config, **credentials})
        table.io = BoundFileIO({**table.io.properties, **lent})
        return table
