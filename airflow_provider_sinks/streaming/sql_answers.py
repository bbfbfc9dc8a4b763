"""The Spark of a validation: analyses the SQL of some sinks as their jobs would, and runs nothing.

It has no connection to anything: the source is empty, lookups are tables without rows of the types that they
have. One session serves all questions.
"""

from __future__ import annotations

import os
import threading
import time

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_provider_sinks.core.errors import ConfigurationError, ExitCode, Problem
from airflow_provider_sinks.core.launch.liveness_lock import is_held
from airflow_provider_sinks.core.query.questions import (
    NoAnswer,
    NotTaken,
    QuestionFiles,
    SqlAnswer,
    SqlQuestion,
    Taken,
)
from airflow_provider_sinks.streaming.analysis import demand_analysable
from airflow_provider_sinks.streaming.failures import unexpected
from airflow_provider_sinks.streaming.session import open_session

_LOOK_SECONDS = 0.5


def answer(files: QuestionFiles) -> None:
    """Answer all questions of a folder. Ends the process as soon as nobody waits for the answers."""
    threading.Thread(target=_end_when_alone, args=[files], daemon=True).start()
    spark = open_session("validation")
    files.answer([_answer(spark, question) for question in files.questions()])
    spark.stop()


def _answer(spark: SparkSession, question: SqlQuestion) -> SqlAnswer:
    begun = time.monotonic()
    lookups = {name: _without_rows(schema) for name, schema in question.lookups.items()}
    try:
        output = demand_analysable(spark, question.spec, lookups)
    except ConfigurationError as error:
        problems = error.problems or (Problem("", error.primary),)
        return NotTaken(problems, time.monotonic() - begun)
    except Exception as error:  # noqa: BLE001  said for this sink; the others get their answers
        found = unexpected(error, question.spec.name)
        return NoAnswer(f"Spark could not analyse it ({found.detail or found.primary})")
    return Taken(spark.version, time.monotonic() - begun, output.schema.json())


def _without_rows(schema: bytes) -> pa.Table:
    return pa.ipc.read_schema(pa.py_buffer(schema)).empty_table()


def _end_when_alone(files: QuestionFiles) -> None:
    while is_held(files.liveness_lock):
        time.sleep(_LOOK_SECONDS)
    os._exit(ExitCode.FAILED)
