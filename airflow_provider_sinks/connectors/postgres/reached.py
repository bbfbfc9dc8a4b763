"""How far the rows of a sink are, and what a run is told that does not hold them any more."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_sinks.core.errors import (
    FencedError,
    JobFailedError,
    RefusedError,
    SinkError,
    UnavailableError,
)


@dataclass(frozen=True, order=True)
class Reached:
    """How far the rows of a sink are. None of it is ever less behind a newer start.

    :param announced_us: when the driver's row was written, in microseconds, by the server's clock: later than
        the row before says, even where that clock went back.
    """

    generation: int = 0
    epoch: int = 0
    announced_us: int = 0


def fenced_by_twin(sink: str, run: str) -> UnavailableError:
    """Return the error of a writer that has lost its row within its run: a twin of a task ends no driver."""
    return UnavailableError(
        f'a writer of sink "{sink}" was fenced by another attempt',
        f"Run {run} is in force, and another of its tasks has opened the same writer since.",
        "The task is repeated; nothing of it is visible.",
    )


def held_back(table: str, sink: str, trigger: str) -> JobFailedError:
    """Return the error for a row of progress that nobody has taken, where a trigger is on the table by now.

    :param table: of progress, with its schema.
    :param trigger: one that may drop or change a row. A start refuses it, so it came since.
    """
    return JobFailedError(
        f'table "{table}" got a trigger while sink "{sink}" ran, and does not keep its progress',
        f"Trigger {trigger} drops or changes a row of the progress. This transaction is not in any table.",
        f"DROP TRIGGER {trigger} ON {table}; the next start refuses it else.",
    )


def overtaken(sink: str, run: str, known: Reached, found: tuple[str, Reached] | None) -> SinkError:
    """Return the error of a run that does not hold a row of its own any more.

    :param known: how far this run knows the rows to be.
    :param found: which run holds the sink, and how far the rows are; ``None`` where a row is gone.
    """
    holder, reached = found or (run, known)
    if holder == run or reached < known:
        told = f"run {holder}, epoch {reached.epoch} of generation {reached.generation}" if found else "none"
        return RefusedError(
            f'progress of sink "{sink}" was rolled back while the sink ran',
            f"This is run {run}; the progress table knows of {told}.",
            "Start the sink again: it says what is missing, and what can be done.",
        )
    return FencedError(
        f'a newer start of sink "{sink}" took over',
        f"Run {holder} is in force; this is run {run}.",
        "Nothing to do if the newer start is yours; else find out who runs the same sink.",
    )
