"""What is nested deeper than it can be read: a schema comes from whoever may register one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.spec.problems import UnfitPartsError


@contextmanager
def refusing_what_is_too_deep() -> Iterator[None]:
    """Say in words that Python's own limit was met."""
    try:
        yield
    except RecursionError:
        raise UnfitPartsError([Problem("", "is nested too deep to be read")]) from None
