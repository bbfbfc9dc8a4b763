"""What one task of an epoch says back: its outcome, as a row of the epoch's one action."""

from __future__ import annotations

import enum
import json
import struct
from dataclasses import asdict, dataclass

import pyarrow as pa


class Outcome(enum.StrEnum):
    """How a writer's task ended.

    Only what ends the whole driver comes back as data: a task that fails in a way that another attempt may
    mend raises, and Spark repeats it.
    """

    COMMITTED = "committed"
    SKIPPED = "skipped"
    NOTHING = "nothing"
    FENCED = "fenced"
    STOPPED = "stopped"
    REFUSED = "refused"
    LARGE_ROWS = "large rows"
    TOO_MANY_DEAD = "too many dead letters"


@dataclass(frozen=True)
class TaskReport:
    """What one task of an epoch did, as its row in the result of the epoch's one action.

    :param writer: the writer's id, empty when the task had no row.
    :param outcome: an :class:`Outcome`.
    :param rows: rows committed to the target by this task.
    :param dead: rows committed to the dead-letter target.
    :param rows_total: rows that the writer has committed in this generation.
    :param dead_total: dead letters of the same.
    :param size_bytes: keys and values committed.
    :param holder: the id of the writer's last holder; the next task must have it to go on without asking.
    :param staged: what stands for the rows where the driver commits them; empty where the task has.
    :param primary: with ``stopped``, ``fenced`` and ``refused``: what happened.
    :param detail: what was seen.
    :param hint: what helps.
    :param open_ms: milliseconds from the first row until the writer knew its progress.
    :param write_ms: milliseconds spent handing rows over.
    :param commit_ms: milliseconds from the last row until the commit was confirmed.
    :param largest_row_bytes: what the texts and bytes of the largest row have.
    """

    writer: str
    outcome: str
    rows: int = 0
    dead: int = 0
    rows_total: int = 0
    dead_total: int = 0
    size_bytes: int = 0
    holder: str = ""
    staged: str = ""
    primary: str = ""
    detail: str = ""
    hint: str = ""
    open_ms: int = 0
    write_ms: int = 0
    commit_ms: int = 0
    largest_row_bytes: int = 0

    def to_batch(self) -> pa.RecordBatch:
        """Return the report as a batch of one row with one column, JSON text (:data:`REPORT_SCHEMA`)."""
        text = json.dumps(asdict(self)).encode()
        bounds = pa.py_buffer(struct.pack("<ii", 0, len(text)))
        column = pa.Array.from_buffers(pa.string(), 1, [None, bounds, pa.py_buffer(text)])
        return pa.RecordBatch.from_arrays([column], ["report"])

    @classmethod
    def from_json(cls, text: str) -> TaskReport:
        """Read back what :meth:`to_batch` wrote."""
        return cls(**json.loads(text))


REPORT_SCHEMA = "report string"
"""The Spark schema of a batch of reports."""
