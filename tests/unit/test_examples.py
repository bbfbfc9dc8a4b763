"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "alter.fold",
        "connection.kafka_fields",
        "connection.kafka_options",
        "lifecycle.rewind_request",
        "query.analysis",
        "spec.build",
        "spec.sink",
        "spec.sink_file",
    ],
)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"airflow_provider_sinks.core.{name}")

    failed, tried = doctest.testmod(module)

    assert (failed, tried > 0) == (0, True)
