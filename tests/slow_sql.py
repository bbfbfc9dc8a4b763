"""SQL that takes its time: a query may call nothing that sleeps, so it counts."""

from __future__ import annotations

_STEPS_PER_MILLISECOND = 1000


def slow(milliseconds: int | str, column: str = "value") -> str:
    """Return a SQL expression that keeps a processor busy for about so long, for each row.

    :param milliseconds: a number, or a SQL expression.
    :param column: of the source; Spark works out once for all rows what hangs on no column.
    """
    steps = f"CAST({milliseconds} AS INT) * {_STEPS_PER_MILLISECOND} + 1"
    return f"aggregate(sequence(1, {steps}), 0L, (sum, i) -> sum + hash({column}, i))"
