"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "connectors.kafka.option_fields",
        "connectors.kafka.options",
        "core.alter.fold",
        "core.lifecycle.rewind_request",
        "core.query.analysis",
        "core.spec.build",
        "core.spec.sink",
        "core.spec.sink_file",
    ],
)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"airflow_provider_sinks.{name}")

    failed, tried = doctest.testmod(module)

    assert (failed, tried > 0) == (0, True)
