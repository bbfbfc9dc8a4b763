"""The columns between Spark and a writer: reports survive the way back, and nothing imports pandas."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport


def test_a_report_comes_back_as_it_was() -> None:
    report = TaskReport("p3", Outcome.STOPPED, rows=7, holder="t", primary="what", hint="ünï")

    (text,) = report.to_batch().column("report").to_pylist()

    assert TaskReport.from_json(text) == report


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_integers_are_seen_without_a_copy_also_in_a_slice(kind: pa.DataType) -> None:
    column = pa.array([5, 6, 7, 8], kind).slice(1, 2)

    assert rows.integers(column).tolist() == [6, 7]


def test_a_worker_imports_no_pandas_for_them() -> None:
    code = """
import sys, pyarrow as pa
from airflow_provider_sinks.connectors import rows
from airflow_provider_sinks.streaming.task_report import TaskReport
TaskReport("p0", "committed").to_batch()
buffer = pa.py_buffer(bytes(16))
rows.integers(pa.Array.from_buffers(pa.int64(), 2, [None, buffer]))
sys.exit("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False)

    assert done.returncode == 0
