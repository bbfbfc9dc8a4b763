"""Texts in a database, or for a login, that thinks in another encoding than Arrow."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.connectors.postgres.client import PostgresClient
from airflow_provider_sinks.local.postgres import Postgres
from tests.contract.postgres_harness import options_of
from tests.contract.postgres_table import Table, longs

TEXT = "id bigint, what text"


@pytest.fixture
def latin(postgres: Postgres) -> Iterator[Postgres]:
    """The server, with a database in which texts are LATIN1."""
    there = copy.copy(postgres)
    there.dbname = f"latin_{uuid.uuid4().hex[:12]}"
    with postgres.connect() as admin:
        admin.execute(f"CREATE DATABASE {there.dbname} ENCODING 'LATIN1' TEMPLATE template0".encode())
        yield there
        admin.execute(f"DROP DATABASE {there.dbname} WITH (FORCE)".encode())


@pytest.fixture
def login_of_latin(postgres: Postgres) -> Iterator[Postgres]:
    """The server, whose login wants its texts in LATIN1."""
    with postgres.connect() as admin:
        admin.execute(f"ALTER ROLE {postgres.user} SET client_encoding = 'LATIN1'".encode())
        yield postgres
        admin.execute(f"ALTER ROLE {postgres.user} RESET client_encoding".encode())


@pytest.mark.parametrize("server", ["latin", "login_of_latin"])
def test_texts_arrive_as_they_are(server: str, request: pytest.FixtureRequest) -> None:
    there = request.getfixturevalue(server)
    table = Table(there, TEXT)
    try:
        table.epoch(1, {"id": longs(1), "what": ["Zürich"]})
        assert table.execute("SELECT id, convert_to(what, 'UTF8') FROM {table}") == [(1, "Zürich".encode())]
        read = PostgresClient(options_of(there)).read(f"{table.schema}.orders", None, 1_000_000)
        assert read.column("what").to_pylist() == ["Zürich"]
    finally:
        table.close()


def test_a_text_that_the_database_has_no_letters_for_is_set_aside(latin: Postgres) -> None:
    table = Table(latin, TEXT)
    try:
        table.epoch(1, {"id": longs(1, 2, 3), "what": ["a", "\N{SNOWMAN}", "b"]})
        assert table.rows() == [(1, "a"), (3, "b")]
        assert 'has no equivalent in encoding "LATIN1"' in table.dead()[0][1]
    finally:
        table.close()
