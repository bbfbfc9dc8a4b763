"""The Spark session of a sink: the settings that exactly-once needs, set before the first task runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.conf import SparkConf
from pyspark.sql import SparkSession

from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.query.functions import ALLOWED
from airflow_provider_sinks.core.spec.spark_conf import OWNED_SETTINGS, PRELOADED, setting_problems
from airflow_provider_sinks.streaming import arriving_rows, arrow_batches, large_rows

REDACTION_REGEX = "(?i)secret|password|token|access[.]?key|jaas|ssl[.]"
"""Whose values Spark must not show, by name."""
PLAN_REDACTION_REGEX = (
    r'(?s)(?<=LoginModule required )(?:\w+="(?:[^"\\]|\\.)*"\s*)+'
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"
    r"|(?<=[.]password -> )[^\n]*"
)
"""What Spark must cut out of the text of a plan: a view over a stream shows the options of its source there,
with their values, in the UI and in the event log."""

METHOD_BYTES = "spark.sql.codegen.hugeMethodLimit"
METHOD_BYTES_MAX = "8000"
"""HotSpot never compiles a larger method, and the one that Spark makes of a plan with a dozen JSON fields is
larger: then each operator has code of its own (``tests/bench/wide_rows.py``)."""

_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stopTimeout": "20s",
    **arrow_batches.CHECKED,
    # Over TCP each task waits 40 ms for its input: Nagle's algorithm against a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    METHOD_BYTES: METHOD_BYTES_MAX,
}

_IN_PROCESS = "128m"
"""What a task hands to a driver in its process as it is; more goes through Spark's store of blocks."""
_LOG_LEVEL = "WARN"
_SHORT_FOLDER = "/tmp"  # noqa: S108  only sockets are made in it, readable by their owner alone

_REDACTED = {
    "spark.redaction.regex": REDACTION_REGEX,
    "spark.redaction.string.regex": PLAN_REDACTION_REGEX,
    "spark.sql.redaction.string.regex": PLAN_REDACTION_REGEX,
}


def open_session(sink: str, writers: str = "") -> SparkSession:
    """Return the session of this driver, set up for exactly-once.

    :param sink: the sink's name; becomes the application's name.
    :param writers: the module that the target's writers are made of; daemons load it before they fork.
    :raises ConfigurationError: when the user set what must not be set, naming each setting.
    """
    # What spark-submit was given stands in the JVM; a SparkConf made before it is there is empty.
    SparkContext._ensure_initialized()  # noqa: SLF001  PySpark has no public word for it
    conf = SparkConf()
    _refuse_owned(conf)
    for key, owned in OWNED_SETTINGS.items():
        conf.set(key, owned.value)
    for key, value in _DEFAULTS.items():
        conf.setIfMissing(key, value)
    if (conf.get("spark.master") or "").startswith("yarn"):
        # The name of a socket has at most 107 bytes; the folders of a container alone are often longer.
        conf.setIfMissing("spark.python.unix.domain.socket.dir", _SHORT_FOLDER)
    if (conf.get("spark.master") or "").partition("[")[0] == "local":
        conf.setIfMissing("spark.task.maxDirectResultSize", _IN_PROCESS)
    for key, value in _REDACTED.items():
        given = conf.get(key)
        conf.set(key, f"{given}|{value}" if given else value)
    conf.set("spark.executorEnv.PYTHONPATH", executor_python_path(conf.get("spark.executorEnv.PYTHONPATH")))
    conf.set(f"spark.executorEnv.{PRELOADED}", writers)
    conf.setAppName(f"sink:{sink}")
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    session.sparkContext.setLogLevel(_LOG_LEVEL)
    _forget_functions(session)
    return session


def _forget_functions(session: SparkSession) -> None:
    """Take out of Spark's registries what no query may call, but for what numbers tasks and rows for us.

    Queries are checked before; here it does not matter how a name is written. Streaming queries run in a
    copy of this session, which has the same registries.
    """
    state = session._jsparkSession.sessionState()  # noqa: SLF001  PySpark has no public word for it
    jvm: Any = session._jvm  # noqa: SLF001  likewise
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # each dot is a call of the JVM
    kept = {*ALLOWED, large_rows.COUNTING, arriving_rows.NUMBERING}
    for registry in (state.functionRegistry(), state.tableFunctionRegistry()):
        for name in registry.listFunction().mkString(" ").split():
            if re.fullmatch(r"\w+", name) and name not in kept:
                registry.dropFunction(identifier(name))


@contextmanager
def silenced() -> Iterator[None]:
    """Keep Spark quiet while a query is stopped: it tells of errors where it does what it was asked to."""
    context = SparkSession.active().sparkContext
    context.setLogLevel("OFF")
    try:
        yield
    finally:
        context.setLogLevel(_LOG_LEVEL)


def executor_python_path(given: str | None) -> str:
    """Return the path on which an executor finds this package before Spark has told it of ``--py-files``.

    The daemon is started as ``python -m``, so the package must be importable by then: from the place where
    this driver has it (executors on the same machine), or from the zip file of that name in an executor's
    working directory, where Spark puts ``--py-files`` (executors elsewhere).

    :param given: what the user set for the executors, kept in front.
    """
    here = str(Path(__file__).parents[2])
    parts = [given, here, "airflow_provider_sinks.zip"]
    return ":".join(part for part in parts if part)


def _refuse_owned(conf: Any) -> None:
    problems = list(setting_problems({key: conf.get(key) for key in OWNED_SETTINGS}))
    master = conf.get("spark.master") or ""
    if problems:
        raise ConfigurationError("the Spark settings do not fit a sink", problems, "leave these settings out")
    if master.startswith("local[") and "," not in master:
        print(  # noqa: T201  the driver's log is what it prints
            f"warning: master {master} never retries a failed task; local[N,4] does", file=sys.stderr
        )
