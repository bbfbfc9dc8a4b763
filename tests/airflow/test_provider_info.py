"""What Airflow learns about this package is valid, true and complete, and costs nothing to learn."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.resources import files

import jsonschema
import pytest
from airflow.cli.cli_config import GroupCommand
from airflow.sdk import BaseOperator, BaseSensorOperator
from airflow.triggers.base import BaseTrigger

import airflow_provider_sinks
from airflow_provider_sinks import get_provider_info

HEAVY = ("airflow", "confluent_kafka", "psycopg", "pyarrow", "pydantic", "pyspark", "sqlglot")


def listed(kind: str) -> set[str]:
    return {module for entry in get_provider_info()[kind] for module in entry["python-modules"]}


def defining(folder: str, base: type) -> Iterator[str]:
    package = importlib.import_module(f"airflow_provider_sinks.{folder}")
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        classes = (value for _, value in inspect.getmembers(module, inspect.isclass))
        if any(issubclass(value, base) and value.__module__ == info.name for value in classes):
            yield info.name


def test_provider_info_fits_airflows_schema() -> None:
    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text())

    jsonschema.validate(get_provider_info(), schema)


def test_the_entry_point_is_the_function() -> None:
    (entry,) = entry_points(group="apache_airflow_provider", module="airflow_provider_sinks")

    assert entry.load() is get_provider_info


@pytest.mark.parametrize(
    ("kind", "base"),
    [("operators", BaseOperator), ("sensors", BaseSensorOperator), ("triggers", BaseTrigger)],
)
def test_each_module_with_such_a_class_is_listed_and_no_other(kind: str, base: type) -> None:
    assert set(defining(kind, base)) == listed(kind)


def test_every_link_of_the_operator_is_listed_and_can_be_loaded() -> None:
    from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

    paths = [path.rpartition(".") for path in get_provider_info()["extra-links"]]
    loaded = [getattr(importlib.import_module(module), name) for module, _, name in paths]

    assert loaded == [type(link) for link in SubmitSinkJobOperator.operator_extra_links]


@pytest.mark.parametrize("name", airflow_provider_sinks.__all__)
def test_the_short_name_can_be_used(name: str) -> None:
    assert getattr(airflow_provider_sinks, name)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, airflow_provider_sinks; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not set(HEAVY) & set(loaded)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Snik'"):
        airflow_provider_sinks.Snik  # noqa: B018


def test_the_commands_cost_nothing_until_one_is_run() -> None:
    module = "airflow_provider_sinks.cli.definition"
    code = f"import sys, {module} as commands; commands.get_cli_commands(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    ours = {name for name in loaded if name.startswith("airflow_provider_sinks.")}
    assert ours <= {"airflow_provider_sinks.provider_info", "airflow_provider_sinks.cli", module}
    assert "confluent_kafka" not in loaded


def test_each_command_is_there() -> None:
    from airflow_provider_sinks.cli import definition

    (group,) = definition.get_cli_commands()

    assert isinstance(group, GroupCommand)
    found = [
        name
        for command in group.subcommands
        for name in (
            [f"{command.name} {sub.name}" for sub in command.subcommands]
            if isinstance(command, GroupCommand)
            else [command.name]
        )
    ]
    assert found == list(definition.FUNCTIONS)
    for path in definition.FUNCTIONS.values():
        module, _, name = path.rpartition(".")
        assert callable(getattr(importlib.import_module(f"airflow_provider_sinks.cli.{module}"), name))
