"""PyIceberg's catalogs, bound to their connection: what they answer loads no class and changes no address.

PyIceberg takes much more from others than data. A REST catalog may override each option of its client, which
names classes to import, the address of tokens and the proxy among them; and the properties of a table, which
whoever may alter the table writes, override the options of the storage. A connection can be led to a server
of somebody else by a form, and is asked in a dry run: so only what is listed here is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests import Session

from airflow_provider_sinks.connectors.iceberg.option_names import STORAGE
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

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
        return PyArrowFileIO({name: value for name, value in self.properties.items() if name in STORAGE})


class BoundSqlCatalog(_Bound, SqlCatalog):
    """A catalog in a database."""


def bound_hive_catalog() -> type[Catalog]:
    """Return the class of Hive's catalogs; it needs packages that others do not."""
    from pyiceberg.catalog.hive import HiveCatalog

    class BoundHiveCatalog(_Bound, HiveCatalog):
        """A catalog in a Hive metastore."""

    return BoundHiveCatalog


class BoundRestCatalog(_Bound, RestCatalog):
    """A REST catalog."""

    def _config_headers(self, session: Session) -> None:
        """Follow nobody to another address; PyIceberg comes here before it sends anything."""
        super()._config_headers(session)
        session.max_redirects = 0

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
        return PyArrowFileIO({**io.properties, **_lent(self.properties)})

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        """Return a table, with the keys that are lent for it."""
        table = super()._response_to_table(identifier_tuple, table_response)
        credentials = self._resolve_storage_credentials(
            table_response.storage_credentials, table_response.metadata_location
        )
        lent = _lent({**table_response.config, **credentials})
        table.io = PyArrowFileIO({**table.io.properties, **lent})
        return table
