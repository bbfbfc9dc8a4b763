"""The end of a JVM that had not enough memory: how it is known, and what helps."""

from __future__ import annotations

import re

from airflow_provider_sinks.core.errors import JobFailedError

SIGNS = re.compile(r"OutOfMemoryError|OutOfMemoryException|OutOfDirectMemoryError")
"""What Java, Arrow and Netty call it."""
EXIT_CODE = 52
"""With which Spark ends a JVM whose task ran out of memory."""


def out_of_memory(sink: str, seen: str) -> JobFailedError:
    """Return the error for it.

    :param seen: in Java's words.
    """
    return JobFailedError(
        f'the driver or an executor of sink "{sink}" ran out of memory',
        seen,
        'Give it more: conf={"spark.driver.memory": "4g"} (1g unless set; with executors of their own '
        "spark.executor.memory too), or fewer cores. What was committed stays.",
    )
