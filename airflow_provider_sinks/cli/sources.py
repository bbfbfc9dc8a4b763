"""Where a command finds sinks that no Airflow needs to know: in a folder of DAGs and YAML files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from airflow_provider_sinks.checker.facts import Declared, Limits
from airflow_provider_sinks.checker.folder import gather
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.spec.sink import SinkSpec


def sinks_of_folder(folder: str) -> tuple[Declared, ...]:
    """Return all valid sinks of a folder; ``python -m airflow_provider_sinks check`` tells of the others.

    :raises ConfigurationError: there is no such folder.
    """
    return gather(Path(folder), Limits()).sinks


def spec_in_folder(folder: str, sink: str) -> SinkSpec:
    """Return one sink of a folder.

    :raises ConfigurationError: there is no valid sink of this name.
    """
    return specs_in_folder(folder, [sink])[0]


def specs_in_folder(folder: str, sinks: Sequence[str] = ()) -> list[SinkSpec]:
    """Return some sinks of a folder, or all of them.

    :raises ConfigurationError: there is no valid sink of a name, or none at all.
    """
    found = {declared.spec.name: declared.spec for declared in sinks_of_folder(folder)}
    to_see_why = f"to see why: python -m airflow_provider_sinks check {folder}"
    missing = [
        Problem(sink, "is not there", nearest(sink, found) or to_see_why)
        for sink in sinks
        if sink not in found
    ]
    if missing:
        names = ", ".join(f'"{problem.where}"' for problem in missing)
        raise ConfigurationError(f"folder {folder} has no valid sink {names}", missing)
    if not found:
        raise ConfigurationError(f"folder {folder} has no valid sink", hint=to_see_why)
    return [found[sink] for sink in sinks] or list(found.values())
