"""The catalog of a connection: which tables there are, and the one atomic step that changes one.

A table is a file of metadata; its catalog holds the pointer to the newest one. PyIceberg speaks to all kinds
of catalogs. Two of its habits are not wanted here, and avoided: it makes the tables of a JDBC catalog when it
looks, and it repeats a commit by itself on metadata that it has just read, which would let a driver commit
that was fenced in between.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.iceberg.catalog_errors import (
    CATALOG_TABLES,
    asking,
    named,
    refused_commit,
    told,
)
from airflow_provider_sinks.connectors.iceberg.option_names import CatalogKind
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.postgres.options import NOTHING_OF_THE_MACHINE
from airflow_provider_sinks.connectors.table_format.errors import MissingError, OvertakenError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction

FORMAT_VERSION: Final = 2
"""The only version of Iceberg's format that is written: see :mod:`.observe`."""
_FILE_IO = "airflow_provider_sinks.connectors.iceberg.file_io.BoundFileIO"
_OF_URL = frozenset({"host", "port", "user", "password", "dbname"})
_NO_PASSWORD = "none"  # noqa: S105  in an address nothing is no answer, and libpq would look for one
_OBSTACLE = f"""
    SELECT '"' || current_user || '"', pg_is_in_recovery(),
           CASE WHEN to_regclass('{CATALOG_TABLES}') IS NOT NULL
                THEN has_table_privilege('{CATALOG_TABLES}', 'UPDATE') END"""


class TableCatalog:
    """The catalog of one connection. Connects at the first question; safe for threads.

    :param options: how to reach it; holds secrets.
    """

    def __init__(self, options: IcebergOptions) -> None:
        self._options = options
        self._made: Catalog | None = None
        self._system = ""
        self._lock = threading.Lock()

    @property
    def service(self) -> str:
        """Which catalog this is, for a sentence. No secrets."""
        return self._options.service

    def system(self) -> str:
        """Return what tells this catalog from every other; asked once.

        Of a JDBC catalog it is the database system, the database and the catalog's name in it; a REST or Hive
        catalog has nothing but its address.

        :raises UnavailableError: it did not answer.
        """
        if not self._system:
            with asking(self._options):
                self._system = self._read_system()
        return self._system

    def obstacle(self) -> tuple[str, str]:
        """Return why nothing can be committed with this login, and the command that helps; empty if it can.

        Only a JDBC catalog tells before it is tried.

        :raises UnavailableError: it did not answer.
        """
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy import text

        with asking(self._options):
            catalog = self._catalog
            if not isinstance(catalog, SqlCatalog):
                return "", ""
            with catalog.engine.connect() as connection:
                user, in_recovery, may_update = connection.execute(text(_OBSTACLE)).one()
        if in_recovery:
            return "the catalog's server is a read-only standby", ""
        if may_update is False:
            grant = f"GRANT UPDATE ON {CATALOG_TABLES} TO {user};"
            return f"permission denied: UPDATE on table {CATALOG_TABLES}", grant
        return "", ""

    def load(self, name: str) -> Table:
        """Return a table as it is now.

        :raises MissingError: there is none.
        :raises HiddenError: this login may not see it.
        :raises UnavailableError: the catalog, or the table's metadata, could not be read.
        """
        with asking(self._options):
            return self._catalog.load_table(name)

    def create(self, name: str, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str]) -> None:
        """Make a table, and its namespace, unless they are there.

        :raises HiddenError: this login may not.
        """
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        with asking(self._options):
            catalog = self._catalog
            if isinstance(catalog, SqlCatalog):
                catalog.create_tables()
            namespace = name.rpartition(".")[0]
            with suppress(NamespaceAlreadyExistsError):  # two who make it at once both find it there
                catalog.create_namespace_if_not_exists(namespace)
            try:
                catalog.create_table(
                    name,
                    schema,
                    partition_spec=spec,
                    properties={"format-version": str(FORMAT_VERSION), **properties},
                )
            except TableAlreadyExistsError:
                return

    def drop(self, name: str) -> None:
        """Take a table out of the catalog; its files stay, for whoever wants it back.

        :raises MissingError: there is none.
        """
        with asking(self._options):
            self._catalog.drop_table(name)

    def commit(self, table: Table, changes: Transaction) -> None:
        """Commit changes that were put together from this very table, once.

        The catalog compares: the table is the same (its uuid), and its current snapshot is the one that was
        loaded. A new snapshot has a sequence number that was never used, so even a table that was rolled
        back to that snapshot in between takes no change that was put together before.

        :raises OvertakenError: somebody else was first; nothing has changed.
        :raises MissingError: the table is gone; nothing has changed.
        :raises SinkError: it was refused; nothing has changed.
        :raises InDoubtError: no answer; it may or may not have happened.
        """
        from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
        from pyiceberg.table.update import AssertTableUUID

        updates, requirements = changes._updates, changes._requirements  # noqa: SLF001  see above
        requirements += (AssertTableUUID(uuid=table.metadata.table_uuid),)
        try:
            table._do_commit(updates, requirements)  # noqa: SLF001  its public twin repeats a commit by itself
        except CommitFailedException as error:
            raise OvertakenError(told(error)) from error
        except NoSuchTableError as error:
            raise MissingError(told(error)) from error
        except Exception as error:
            name = ".".join(table.name())
            if (refused := refused_commit(self._options, name, error)) is not None:
                raise refused from error
            raise InDoubtError(
                f"a commit to table {name} was not answered",
                named(error),
                "The table's own progress tells: nothing is written twice.",
            ) from error

    def close(self) -> None:
        """Drop the connections."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    @property
    def _catalog(self) -> Catalog:
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made

    def _connect(self) -> Catalog:
        from airflow_provider_sinks.connectors.iceberg.bound_catalogs import (
            BoundRestCatalog,
            BoundSqlCatalog,
            bound_hive_catalog,
        )

        given, name = self._options.parameters, self._options.name
        own = {"py-io-impl": _FILE_IO, **self._options.storage}
        own |= {"warehouse": given["warehouse"]} if "warehouse" in given else {}
        match self._options.kind:
            case CatalogKind.JDBC:
                looks = {"init_catalog_tables": "false", "pool_pre_ping": "true"}
                return BoundSqlCatalog(name, **own, **looks, uri=self._database())
            case CatalogKind.REST:
                more = {
                    key: given[key]
                    for key in ("scope", "oauth2-server-uri", "token", "prefix")
                    if key in given
                }
                if "login" in given and "password" in given:
                    more["credential"] = f"{given['login']}:{given['password']}"
                return BoundRestCatalog(name, **own, **more, uri=given["host"])
            case CatalogKind.HIVE:
                more = {key: given[key] for key in ("hive.hive2-compatible",) if key in given}
                address = f"thrift://{given['host']}:{given['port']}"
                return bound_hive_catalog()(name, **own, **more, uri=address)

    def _database(self) -> str:
        from sqlalchemy import URL

        given = {**NOTHING_OF_THE_MACHINE, **self._options.conninfo}
        more = {name: value for name, value in given.items() if value and name not in _OF_URL}
        return URL.create(
            "postgresql+psycopg",
            given["user"],
            given["password"] or _NO_PASSWORD,
            given["host"],
            int(given["port"]),
            given["dbname"],
            more,
        ).render_as_string(hide_password=False)

    def _read_system(self) -> str:
        from pyiceberg.catalog.sql import SqlCatalog
        from sqlalchemy import text

        catalog, options = self._catalog, self._options
        if not isinstance(catalog, SqlCatalog):
            warehouse = options.parameters.get("warehouse", "")
            return f"{options.kind}:{options.address}/{warehouse if options.kind is CatalogKind.REST else ''}"
        query = (
            "SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || current_database()"
        )
        with catalog.engine.connect() as connection:
            return f"{connection.execute(text(query)).scalar_one()}/{options.name}"
