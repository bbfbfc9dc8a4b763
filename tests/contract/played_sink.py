"""A sink as a process of its own, so that it can be killed: epochs of known rows into a Postgres table.

    python -m tests.contract.played_sink < options.json

Writes a line for each epoch. Exits as a job does: 0 when all epochs are there, else with the error's code.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from airflow_provider_sinks.connectors.postgres import progress_table
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.postgres.progress_table import Place, Turn
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.testing.played_start import PlayedStart
from tests.contract.postgres_harness import PostgresTables

ROWS = 40
"""Of each of two source partitions, in each epoch."""


def ranges(epoch: int) -> dict[int, range]:
    return {partition: range((epoch - 1) * ROWS, epoch * ROWS) for partition in (0, 1)}


def run(given: dict[str, Any]) -> None:
    options = PostgresOptions("warehouse", given["parameters"])
    start = PlayedStart(PostgresTables(given["schema"], options, given["target"])).start()
    newest = start.connector.progress().epoch
    for epoch in range(max(1, newest), given["epochs"] + 1):  # the newest may be torn
        start.epoch(epoch, ranges(epoch))
        sys.stdout.write(f"{epoch}\n")
        sys.stdout.flush()


def break_protocol() -> None:
    """Leave the compare-and-set out, and the fence: what a naive sink would do."""

    def advance(
        place: Place, writer: str, turn: Turn, record: ProgressRecord, *, holder: str, tables: object
    ) -> str:
        del turn, tables
        return place.statement(
            "UPDATE {table} SET holder = {holder}, epoch = {epoch}, record = {record}::json"
            " WHERE sink = {sink} AND writer = {writer}",
            writer=writer,
            holder=holder,
            epoch=record.epoch,
            record=record.encode().decode(),
        ).as_string(None)

    progress_table.advance = advance
    progress_table.end_sessions = lambda *_: None
    progress_table.end_open = lambda name: f"SELECT {len(str(name))}"


def main() -> int:
    given = json.load(sys.stdin)
    if given["is_broken"]:
        break_protocol()
    try:
        run(given)
    except SinkError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
