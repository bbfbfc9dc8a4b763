"""The archive of Spark's classes that the drivers of a suite start with: a suite starts some sixty.

python -m tests.class_archive    # makes the archive, if it is missing
"""

from __future__ import annotations

import sys
from functools import cache

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.hooks.class_archive import ClassArchive
from airflow_provider_sinks.local import spark


@cache
def options() -> str:
    """Return the option of a JVM that starts with Spark's own jars; empty if there is no archive."""
    return _archive().java_option("")


def _environment() -> dict[str, str]:
    return {**spark.submit_environment(), "XDG_CACHE_HOME": sys.prefix}


def _archive() -> ClassArchive:
    found = ClassArchive.of("spark-submit", _environment())
    assert found is not None
    return found


if __name__ == "__main__" and not options():
    try:
        _archive().make(_environment())
    except SinkError as error:  # starts are slower without it
        sys.stderr.write(f"{error}\n")
