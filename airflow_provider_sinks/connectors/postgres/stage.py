"""The temporary table between a writer and its target: for upserts, for casts, and to find bad rows.

It takes what the target may refuse: lengths, precisions and constraints are left out. One statement then
moves its rows into the target, sorted by key, so that two writers lock the rows of a table in one order. If a
row is the cause that the statement fails, they are moved in parts, and each part is halved until the bad one
stands alone. Parts and halves are moved in the order of their rows, so the newest row of a key wins among the
good ones too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from psycopg import sql

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.letter_rows import LetterRows
from airflow_provider_sinks.connectors.postgres import row_errors
from airflow_provider_sinks.connectors.postgres import stage_statements as statements
from airflow_provider_sinks.connectors.postgres.copying import CopyConnection, StatementError
from airflow_provider_sinks.connectors.postgres.factory import TablePlan
from airflow_provider_sinks.connectors.postgres.letter_copy import copy_letters

_PART = 4096
"""How many staged rows one statement moves that looks for bad ones."""


@dataclass(frozen=True)
class BadRow:
    """A row that the target does not take.

    :param number: its place among the staged rows.
    """

    number: int
    why: str
    partition: int | None
    offset: int | None


class Stage:
    """The temporary table of one connection.

    :param plan: what is written where.
    """

    def __init__(self, connection: CopyConnection, plan: TablePlan) -> None:
        self.count = 0
        self._connection = connection
        self._plan = plan

    def begin(self) -> None:
        """Make the tables unless they are there, within the transaction and before any savepoint."""
        self.count = 0
        for statement in statements.creations(self._plan):
            self._connection.run(statement)

    def take(self, batch: pa.RecordBatch) -> list[tuple[int, str]]:
        """Stage a batch, and return the rows that cannot even be staged: index, and why.

        :raises StatementError: for another reason than a row.
        """
        return self._take(batch, 0)

    def move(self) -> list[BadRow]:
        """Move all staged rows into the target, and return those that it does not take.

        :raises StatementError: for another reason than a row.
        """
        if not self.count:
            return []
        try:
            with self._connection.savepoint(casts=self._plan.has_casts):
                self._move_all()
        except StatementError as error:
            if not (error.is_of_a_row or (self._plan.has_casts and error.may_be_of_a_cast)):
                raise
        else:
            return []
        self._find_bad()
        return self._bad()

    def _move_all(self) -> None:
        """Move all rows by one statement.

        :raises StatementError: it failed, or a trigger dropped some.
        """
        move = statements.move(self._plan, sql.Literal(0), sql.Literal(self.count))
        if self._connection.run(move) != self.count and self._plan.is_counted:
            raise StatementError(statements.DROPPED, row_errors.RAISED)

    def set_aside(self, letters: LetterRows) -> None:
        """Copy the source records of the bad rows into the table of dead letters.

        They are read back for it: few, and a letter is made in one place.
        """
        found = self._connection.read(statements.bad_records(self._plan))
        for batch in found:
            copy_letters(self._connection, self._plan, letters.of(batch, is_of_target=True))

    def empty(self) -> None:
        """Forget the staged rows, for the next batch of the same transaction."""
        self.count = 0
        self._connection.run(statements.empty(self._plan))

    def _take(self, batch: pa.RecordBatch, first: int) -> list[tuple[int, str]]:
        try:
            with self._connection.savepoint():
                self._connection.copy(statements.stage(self._plan), self._numbered(batch), temporary=True)
        except StatementError as error:
            if not error.is_of_a_row:
                raise
            if batch.num_rows == 1:
                return [(first, error.message)]
        else:
            self.count += batch.num_rows
            return []
        middle = batch.num_rows // 2
        return self._take(batch.slice(0, middle), first) + self._take(batch.slice(middle), first + middle)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        deleted = [columns.DELETED] if self._plan.says_deletes else []
        raw = statements.raw_columns(self._plan)
        names = [columns.PARTITION, columns.OFFSET, *deleted, *raw, *self._plan.columns]
        number = np.arange(self.count, self.count + batch.num_rows, dtype=np.int64)
        added = pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, pa.py_buffer(number)])
        arrays = [added, *(batch.column(name) for name in names)]
        return pa.RecordBatch.from_arrays(arrays, names=[statements.NUMBER, *names])

    def _find_bad(self) -> None:
        """Move the good rows, part by part, so that no statement takes as long as the sink's time-out."""
        self._connection.run(statements.make_index(self._plan))
        for low in range(0, self.count, _PART):
            self._connection.run(statements.bisect(self._plan, low, min(low + _PART, self.count)))
        self._connection.run(statements.DROP_INDEX)

    def _bad(self) -> list[BadRow]:
        return [BadRow(*row) for row in self._connection.ask(statements.bad_rows(self._plan))]
