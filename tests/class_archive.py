"""The archive of Spark's classes that the drivers of a suite start with: a suite starts some sixty.

python -m tests.class_archive    # makes the archive, if it is missing
"""

from __future__ import annotations

import sys
from functools import cache

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.hooks.class_archive import ClassArchive, TakenArchive
from airflow_provider_sinks.local import spark


@cache
def taken() -> TakenArchive | None:
    """Return how a driver starts with it that has no settings but those of its arguments."""
    return _archive().taken("")


def _archive() -> ClassArchive:
    found = ClassArchive.of("spark-submit", spark.submit_environment())
    assert found is not None
    return found


def made() -> TakenArchive | None:
    """Return the same, made now if it is missing.

    :raises SinkError: it cannot be made.
    """
    if (found := taken()) is not None:
        return found
    sys.stdout.write("Spark's classes: kept in an archive, once, so that drivers start sooner; a minute\n")
    sys.stdout.flush()
    _archive().make(spark.submit_environment())
    taken.cache_clear()
    return taken()


if __name__ == "__main__":
    try:
        made()
    except SinkError as error:  # starts are slower without it
        sys.stderr.write(f"{error}\n")
