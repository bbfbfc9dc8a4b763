"""A reset changes only the table that was looked at, and only while its run is in force there.

A reset may stand still behind its fence, until the same command was run again to its end and the sink has
written rows. So each act asks the table that it is about to change whose it is, as it was just loaded:

- Emptying commits by compare-and-set on that very load. Whoever takes the table in between makes another
  current version, and nothing is emptied.
- Dead letters are judged by the progress in their own table, and not in the data table: a start takes that
  one as well, before it publishes a letter into it, and the compare-and-set is on that one. The data table
  may be of nobody yet at that moment, where it was made anew.
- No catalog and no storage removes a table by compare-and-set. A newer run that takes the table between the
  load and the removal loses it, with what it has committed by then. It is told: its next commit, and each
  start behind it, refuses a table that is gone.
"""

from __future__ import annotations

from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput


def demand_looked_at(step: EmptyOutput | DeleteOutput, table_id: str, shown: str) -> None:
    """See that a table is the one that was looked at.

    :param table_id: that it has now.
    :param shown: the same, as a look shows it.
    :raises RefusedError: it is another one.
    """
    if table_id != step.facts.id.partition(" ")[0]:
        raise RefusedError(
            f'table "{step.facts.name}" is not the one any more that was looked at',
            f"It had id {step.facts.id}, now it has {shown}.",
            "Somebody else changes it at this moment; look again before anything is deleted.",
        )
