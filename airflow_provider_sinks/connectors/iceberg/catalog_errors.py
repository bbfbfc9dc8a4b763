"""What goes wrong with a catalog: what PyIceberg, SQLAlchemy and storage raise, in words of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow_provider_sinks.connectors.iceberg.option_names import CatalogKind
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.iceberg.rest_answers import answered
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError, OvertakenError
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
)

_UNDEFINED_TABLE, _NO_PRIVILEGE = "42P01", "42501"
_WRONG_LOGIN = ("28P01", "28000")
_READ_ONLY, _NO_ROOM = "25006", "53"
"""The second is the class of all that a server has no room for: disk, memory, connections."""


CATALOG_TABLES = "iceberg_tables"
"""Where a JDBC catalog keeps the pointers."""
GRANT_UPDATE = f"GRANT UPDATE ON {CATALOG_TABLES} TO the login of the connection"


@contextmanager
def asking(options: IcebergOptions) -> Iterator[None]:
    """Turn what a question to a catalog raises into words of ours.

    :param options: of the catalog that is asked.
    """
    from pyiceberg import exceptions
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError) as error:
        raise MissingError(told(error)) from error
    except SinkError as error:
        error.of(options.conn_id)
        raise
    except (MissingError, HiddenError, OvertakenError):
        raise
    except (exceptions.UnauthorizedError, exceptions.OAuthError) as error:
        raise _refused(options, error) from error
    except exceptions.ForbiddenError as error:
        raise HiddenError(told(error)) from error
    except DBAPIError as error:
        raise _of_database(options, error) from error
    except Exception as error:
        raise _unavailable(options, named(error)) from error


def refused_commit(options: IcebergOptions, name: str, error: Exception) -> SinkError | None:
    """Return why a commit has certainly not happened; nothing where nobody knows.

    :param name: of the table.
    """
    from pyiceberg import exceptions
    from sqlalchemy.exc import DBAPIError

    match error:
        case exceptions.RESTError():
            return _refused_by_rest(options, name, error)
        case DBAPIError():
            return _refused_by_database(options, name, error)
        case OSError() if _is_of_storage(options, error):
            return UnavailableError(
                f'metadata of table "{name}" could not be written',
                told(error),
                "See that the storage has room, and that its keys are valid and may write.",
            ).of(options.conn_id)
    return None


def _is_of_storage(options: IcebergOptions, error: OSError) -> bool:
    """Whether metadata could not be written: a JDBC catalog does that before its one statement.

    Of other catalogs it may be the way to the catalog that broke.
    """
    return options.kind is CatalogKind.JDBC and not isinstance(error, ConnectionError | TimeoutError)


def _refused_by_rest(options: IcebergOptions, name: str, error: Exception) -> SinkError | None:
    from pyiceberg import exceptions as found

    match error:
        case found.UnauthorizedError() | found.OAuthError() | found.AuthorizationExpiredError():
            return _refused(options, error)
        case found.ForbiddenError() | found.BadRequestError():
            return _may_not(options, name, error, "Let the owner of the catalog allow it.")
        case found.TooManyRequestsError():
            return _unavailable(options, named(error))
    return None


def _refused_by_database(options: IcebergOptions, name: str, error: Any) -> SinkError | None:
    state, text = getattr(error.orig, "sqlstate", None) or "", str(error.orig)
    if state in (_NO_PRIVILEGE, _READ_ONLY):
        return _may_not(options, name, error, GRANT_UPDATE if state == _NO_PRIVILEGE else "")
    if state in _WRONG_LOGIN or "password authentication failed" in text:
        return _refused(options, error)
    return _unavailable(options, named(error)) if state.startswith(_NO_ROOM) else None


def _may_not(options: IcebergOptions, name: str, error: Exception, hint: str) -> ConfigurationError:
    primary = f'table "{name}" may not be changed with connection "{options.conn_id}"'
    return ConfigurationError(primary, [Problem(name, told(error))], hint).of(options.conn_id)


def told(error: BaseException) -> str:
    """Return what an error says in one line; SQLAlchemy's own words repeat the statement."""
    if isinstance(error, SinkError):
        return error.primary
    if (text := answered(error)) is not None:
        return text
    found = getattr(error, "orig", None) or error
    lines = str(found).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def named(error: BaseException) -> str:
    """Return what an error says, behind its name where that says more."""
    return answered(error) or f"{type(error).__name__}: {told(error)}"


def _of_database(options: IcebergOptions, error: Any) -> Exception:
    state = getattr(error.orig, "sqlstate", None) or ""
    text = str(error.orig)
    if state == _UNDEFINED_TABLE:
        return MissingError("the catalog has no tables yet")
    if state == _NO_PRIVILEGE:
        return HiddenError(text.splitlines()[0])
    if state in _WRONG_LOGIN or "password authentication failed" in text:
        return _refused(options, error)
    has_no_way = not state and options.kind is CatalogKind.JDBC
    return _unavailable(options, _of_way(options, error) if has_no_way else named(error))


def _of_way(options: IcebergOptions, error: Any) -> str:
    """Return why a database was not reached, in the words of a Postgres: none tell which files there are."""
    from airflow_provider_sinks.connectors.postgres.client import connect_error
    from airflow_provider_sinks.connectors.postgres.options import PostgresOptions

    return connect_error(PostgresOptions(options.conn_id, options.conninfo), error.orig).detail


def _refused(options: IcebergOptions, error: Exception) -> AuthenticationError:
    return AuthenticationError(
        f"{options.service} refused the credentials",
        told(error),
        "Correct login and password of the Airflow connection.",
    ).of(options.conn_id)


def _unavailable(options: IcebergOptions, said: str) -> UnavailableError:
    return UnavailableError(
        f"{options.service} could not be asked",
        said,
        "Check the catalog's address, and that its storage can be read from here.",
    ).of(options.conn_id)
