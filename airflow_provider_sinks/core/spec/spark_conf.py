"""The Spark settings that a sink owns: what each must be, and why.

A DAG file that sets one otherwise is refused when it is read, and the driver refuses what reached it by
another way, such as ``spark-defaults.conf``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_provider_sinks.core.errors import Problem

DAEMON_MODULE = "airflow_provider_sinks.streaming.daemon"
"""Where Spark's Python workers come from."""
PRELOADED = "SINKS_PRELOADED"
"""The environment variable that names the module which daemons load before they fork."""


@dataclass(frozen=True)
class OwnedSetting:
    """A setting with one right value, and the reason."""

    value: str
    reason: str


_ROW_ONLY = "a query must not reach anything but its rows"

OWNED_SETTINGS = {
    "spark.python.daemon.module": OwnedSetting(
        DAEMON_MODULE,
        "it proves that a task has seen its whole input; a writer would else commit a part of an epoch",
    ),
    "spark.speculation": OwnedSetting("false", "two tasks for one source partition fence each other"),
    "spark.sql.adaptive.enabled": OwnedSetting(
        "false", "it re-plans tasks, and one task must be one source partition"
    ),
    "spark.python.worker.reuse": OwnedSetting(
        "true", "a writer keeps its transactional producer between epochs"
    ),
    "spark.sql.variable.substitute": OwnedSetting(
        "false", f"${{env:NAME}} reads the environment, and {_ROW_ONLY}"
    ),
    "spark.sql.runSQLOnFiles": OwnedSetting("false", f"csv.`/a/path` reads a file, and {_ROW_ONLY}"),
    "spark.sql.ansi.doubleQuotedIdentifiers": OwnedSetting(
        "false", "the query was checked with text in double quotes, and would mean something else"
    ),
}


def setting_problems(conf: Mapping[str, object]) -> Iterator[Problem]:
    """Give the settings that a sink needs otherwise.

    :param conf: Spark settings, as a user or a cluster gives them.
    """
    for key, owned in OWNED_SETTINGS.items():
        given = conf.get(key)
        if given is not None and str(given).strip().lower() != owned.value.lower():
            what = f"is set to {given!r}, but a sink needs {owned.value!r}: {owned.reason}"
            yield Problem(key, what, "leave it out")
