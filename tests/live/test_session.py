"""The driver's own Spark, without the checks before it: what is not for queries is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.faults.driver import QUICK_START

_PROGRAM = """
import json, sys
from pyspark.errors import AnalysisException
from airflow_provider_sinks.streaming.session import open_session

session = open_session("session")

def ask(query):
    try:
        return [list(row) for row in session.sql(query).collect()]
    except AnalysisException as error:
        return error.getCondition()

print("ANSWERS " + json.dumps({query: ask(query) for query in json.loads(sys.argv[1])}))
session.stop()
"""
_CALL = "('java.lang.System', 'getenv', 'HOME') AS x"
_UNKNOWN = {
    f"SELECT reflect{_CALL}": "UNRESOLVED_ROUTINE",
    f"SELECT `java_method`{_CALL}": "UNRESOLVED_ROUTINE",
    f"SELECT builtin.try_reflect{_CALL}": "UNRESOLVED_ROUTINE",
    f"SELECT IDENTIFIER('refl' || 'ect'){_CALL}": "ROUTINE_NOT_FOUND",
    "SELECT xpath_string('<a>b</a>', 'a') AS x": "UNRESOLVED_ROUTINE",
    "SELECT * FROM range(3)": "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    "SELECT * FROM text.`/etc/passwd`": "TABLE_OR_VIEW_NOT_FOUND",
}
_KNOWN: dict[str, Any] = {
    "SELECT '${env:HOME} ${spark.app.name}' AS x": [["${env:HOME} ${spark.app.name}"]],
    "SELECT upper('a') AS x, concat('b', 'c') AS y": [["A", "bc"]],
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the driver's session says to each query."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps([*_UNKNOWN, *_KNOWN])]
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{QUICK_START}" pyspark-shell',
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    found: dict[str, Any] = json.loads(line.removeprefix("ANSWERS "))
    return found


@pytest.mark.parametrize(("query", "answer"), [*_UNKNOWN.items(), *_KNOWN.items()])
def test_the_drivers_spark_has_nothing_that_reaches_beyond_rows(
    answers: dict[str, Any], query: str, answer: object
) -> None:
    assert answers[query] == answer
