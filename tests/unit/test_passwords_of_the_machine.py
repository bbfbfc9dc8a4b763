"""A server hears no password that the connection does not have, whatever the worker holds for libpq."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_sinks.connectors.iceberg.catalog import TableCatalog
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.postgres.client import PostgresClient
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.session import Session, SessionName
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import SinkError
from tests.asking_postgres import Listener, asking_postgres

OF_THE_MACHINE = "password-of-the-machine"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with asking_postgres() as listening:
        yield listening


def _variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del home
    monkeypatch.setenv("PGPASSWORD", OF_THE_MACHINE)


def _named_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSFILE", str(_private(home / "passwords", f"*:*:*:*:{OF_THE_MACHINE}\n")))


def _file_of_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _private(home / ".pgpass", f"*:*:*:*:{OF_THE_MACHINE}\n")
    monkeypatch.setenv("HOME", str(home))


def _service(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSERVICEFILE", str(_private(home / "s", f"[mine]\npassword={OF_THE_MACHINE}\n")))
    monkeypatch.setenv("PGSERVICE", "mine")


def _private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def _options(port: int) -> PostgresOptions:
    return PostgresOptions.from_connection(
        "pg", host="127.0.0.1", port=port, login="sinks", password=None, schema="d", extra={}
    )


def _validation(port: int) -> None:
    assert validate({"pg": ConnectionFields("pg", "postgres", "127.0.0.1", port, "sinks", schema="d")})


def _lookup(port: int) -> None:
    PostgresClient(_options(port)).ping()


def _rows_of_a_lookup(port: int) -> None:
    PostgresClient(_options(port))._read_arrow("SELECT 1", "t", 1)


def _target(port: int) -> None:
    Session(_options(port), SessionName("p", "orders", "run", "p0"), timedelta(seconds=9)).connect()


def _catalog(port: int) -> None:
    extra = {"warehouse": "file:///tmp/none"}
    options = IcebergOptions.from_connection(
        "lake", host="127.0.0.1", port=port, login="sinks", password=None, schema="d", extra=extra
    )
    TableCatalog(options).load("shop.orders")


@pytest.mark.parametrize("holds", [_variable, _named_file, _file_of_the_home, _service])
@pytest.mark.parametrize("log_in", [_validation, _lookup, _rows_of_a_lookup, _target, _catalog])
def test_no_server_hears_a_password_of_the_machine(
    listener: Listener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    holds: Callable[[Path, pytest.MonkeyPatch], None],
    log_in: Callable[[int], None],
) -> None:
    holds(tmp_path, monkeypatch)

    with suppress(SinkError):
        log_in(listener.port)

    assert listener.asked
    assert OF_THE_MACHINE.encode() not in b"".join(listener.heard)
