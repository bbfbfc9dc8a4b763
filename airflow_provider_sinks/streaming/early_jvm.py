"""What the JVM of a driver loads before there is a session: it waits for Python, which loads the job's code.

``spark-submit`` starts Python from a JVM that has nothing to do until it is asked for a session. What every
session is made of, whatever its settings are, it can load by then.

It is over before a session is opened: two threads of a JVM that load the same classes from two ends may wait
for each other for good.
"""

from __future__ import annotations

import threading
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

_OBJECTS = (
    "org.apache.spark.sql.internal.SQLConf",
    "org.apache.spark.sql.catalyst.analysis.FunctionRegistry",
    "org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry",
)
"""They register what Spark has hundreds of."""
_QUERY = "SELECT a + 1 AS b FROM c LEFT JOIN d USING (e) WHERE f > 'g'"


class EarlyJvm:
    """Loads in a thread of its own, which imports nothing: the main thread is about to import much."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=_try, name="early-jvm", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is loaded any more."""
        self._thread.join()


def load(jvm: Any) -> None:
    """Load what sessions need."""
    for name in _OBJECTS:
        jvm.java.lang.Class.forName(f"{name}$")
    jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser.parsePlan(_QUERY)


def _try() -> None:
    """Load; what another version of Spark has elsewhere is loaded when it is needed, as ever."""
    SparkContext._ensure_initialized()  # noqa: SLF001  PySpark has no public word for it
    try:
        load(SparkContext._jvm)  # noqa: SLF001  likewise
    except Py4JError:
        return
