"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    ["alteration", "build", "kafka_fields", "kafka_options", "plan", "rewind_ask", "sink_file", "spec"],
)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"airflow_provider_sinks.core.{name}")

    failed, tried = doctest.testmod(module)

    assert (failed, tried > 0) == (0, True)
