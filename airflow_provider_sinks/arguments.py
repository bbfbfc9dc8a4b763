"""The arguments that operators and sensors share; above all ``sink``, kept as plain data.

Plain data is what Airflow can template, serialise and show; it becomes a :class:`SinkSpec` again, with all
its problems at once, when the task runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.sink import SinkSpec


def plain(sink: Any) -> Any:
    """Return a spec as a dict; a template or the output of another task stays what it is. Never raises.

    :param sink: a :class:`SinkSpec`, a mapping, or something that becomes a mapping when the task runs.
    """
    if isinstance(sink, SinkSpec):
        return json.loads(sink.to_json())
    return dict(sink) if isinstance(sink, Mapping) else sink


def parse(sink: Any, *, reads_files: bool = False) -> SinkSpec:
    """Return the spec that a rendered argument stands for.

    :param reads_files: whether the author of a DAG wrote it, and nobody else can have.
    :raises ConfigurationError: with all problems of the spec.
    """
    if isinstance(sink, SinkSpec):
        return sink
    if isinstance(sink, str):
        sink = _from_json(sink)
    if not isinstance(sink, Mapping):
        problem = Problem("sink", f"is a {type(sink).__name__}", "a Sink, a mapping, or JSON text of one")
        raise ConfigurationError("the argument sink is not a sink", [problem])
    return SinkSpec.parse(sink, reads_files=reads_files)


def is_template(value: Any) -> bool:
    """Return whether a value, or a text somewhere in it, is rendered before the task runs."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    if isinstance(value, Mapping):
        return any(is_template(part) for part in [*value, *value.values()])
    if isinstance(value, (list, tuple, set)):
        return any(is_template(part) for part in value)
    return hasattr(value, "resolve") and hasattr(value, "iter_references")  # the output of another task


def accept_code(accept: str | None) -> str | None:
    """Return an accept code as a person pasted it into a form, or ``None`` when the field was left empty."""
    return (accept or "").strip() or None


def as_list(value: Any) -> list[Any]:
    """Return what Airflow takes as one thing or many, such as ``outlets``, as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        problem = Problem("sink", f"is not JSON: {error}", "was a template rendered to something else?")
        raise ConfigurationError("the argument sink is not a sink", [problem]) from None
