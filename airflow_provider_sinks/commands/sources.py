"""Where a command finds sinks that no Airflow needs to know: in a folder of DAGs and YAML files."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_sinks.checker.facts import Declared, Limits
from airflow_provider_sinks.checker.folder import gather
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec import SinkSpec


def sinks_of_folder(folder: str) -> tuple[Declared, ...]:
    """Return all valid sinks of a folder; ``python -m airflow_provider_sinks check`` tells of the others.

    :raises ConfigurationError: there is no such folder.
    """
    return gather(Path(folder), Limits()).sinks


def spec_in_folder(folder: str, sink: str) -> SinkSpec:
    """Return one sink of a folder.

    :raises ConfigurationError: there is no valid sink of this name.
    """
    found = {declared.spec.name: declared.spec for declared in sinks_of_folder(folder)}
    if sink not in found:
        hint = nearest(sink, found) or f"to see why: python -m airflow_provider_sinks check {folder}"
        raise ConfigurationError(
            f'folder {folder} has no valid sink "{sink}"', [Problem(sink, "is not there", hint)]
        )
    return found[sink]
