"""Which errors of Postgres set a row aside, and which are the server's own."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.postgres.row_errors import (
    is_for_good,
    is_of_a_row,
    may_be_of_a_cast,
)

OF_ROWS = "21000 22P02 23505 44000 45000 50000 54000 99999 P0001 P0004 UE001 ZZ001"
OF_THE_SERVER = "08006 25006 40001 42501 42601 53100 55P03 57014 58030 72000 F0000 HV000 XX000 XX001"


@pytest.mark.parametrize("state", OF_ROWS.split())
def test_a_row_may_be_the_cause_of_what_constraints_and_triggers_raise(state: str) -> None:
    assert is_of_a_row(state)


@pytest.mark.parametrize("state", ["", *OF_THE_SERVER.split()])
def test_no_row_is_the_cause_of_what_is_the_server_s_own(state: str) -> None:
    assert not is_of_a_row(state)


def test_a_text_may_be_the_cause_of_two_of_them() -> None:
    assert [state for state in OF_THE_SERVER.split() if may_be_of_a_cast(state)] == ["42601", "XX000"]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        *((state, True) for state in ("55000", "P0001", "23514", "45000")),
        *(
            (state, False)
            for state in ("", "23505", "55006", "55P03", "42501", "42P01", "42P10", "42703", "0A000", "57014")
        ),
    ],
)
def test_a_statement_without_a_row_is_refused_for_good_by_what_the_tables_are(
    state: str, expected: bool
) -> None:
    assert is_for_good(state) is expected
