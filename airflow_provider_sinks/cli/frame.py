"""The frame of each command: the way to Airflow, errors as exit codes, output, a question before an act.

A command finds connections where ``airflow connections get`` does: in the environment, a secrets backend, or
the metadata database. Results go to stdout, everything else to stderr, so that ``-o json`` can be piped.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.lifecycle.steps import Plan
from airflow_provider_sinks.core.wording import visible
from airflow_provider_sinks.drivers.running import RunningDrivers
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from airflow_provider_sinks.metadata.sink_homes import SinkHomes

DECLINED, USAGE = 1, 2
_LINES = "\n\t"

Command = Callable[[argparse.Namespace], "int | None"]


class DeclinedError(Exception):
    """The person who was asked said no, or could not be asked."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


def command(function: Command) -> Callable[[argparse.Namespace], None]:
    """Let a function be a command: what it returns, or the error that it raises, is the exit code."""

    @functools.wraps(function)
    def run(options: argparse.Namespace) -> None:
        os.environ.setdefault("_AIRFLOW_PROCESS_CONTEXT", "server")  # as Airflow's own commands do
        try:
            code = function(options) or 0
        except SinkError as error:
            tell(str(error))
            code = int(error.exit_code)
        except DeclinedError as declined:
            tell(str(declined))
            code = declined.code
        sys.stdout.flush()
        raise SystemExit(code)

    return run


@contextmanager
def sink_homes(options: argparse.Namespace) -> Iterator[SinkHomes]:
    """Give the sinks of the Airflow that the options lead to."""
    with airflow_api(options.api_conn_id) as api:
        yield SinkHomes(api, RunningDrivers(getattr(options, "yarn_conn_id", None) or ""))


def tell(text: str) -> None:
    """Say something beside the result."""
    sys.stderr.write(f"{visible(text, keep=_LINES)}\n")


def show_text(text: str) -> None:
    """Print a result that is lines of text."""
    sys.stdout.write(f"{visible(text, keep=_LINES)}\n")


def show(rows: Sequence[Mapping[str, Any]], output: str) -> None:
    """Print rows as a table, each on a line of its own, or as JSON or YAML with their types.

    :param output: ``table``, ``plain``, ``json`` or ``yaml``.
    """
    plain = [dict(row) for row in rows]
    if not _show_data(plain, output):
        _show_table(plain, output, "")


def show_one(thing: Mapping[str, Any], output: str, *, in_lines: bool = True) -> None:
    """Print one thing: as a table of its properties, or as JSON or YAML.

    :param in_lines: a value may go over several lines, as a query does.
    """
    if not _show_data(dict(thing), output):
        rows = [{"property": name, "value": value} for name, value in thing.items()]
        _show_table(rows, output, _LINES if in_lines else "")


def _show_table(rows: Sequence[Mapping[str, Any]], output: str, keep: str) -> None:
    """Print rows as they are: neither rich's markup nor its names of pictures are looked for in them."""
    from airflow.cli.simple_table import AirflowConsole

    texts = [{name: visible(_text(value), keep=keep) for name, value in row.items()} for row in rows]
    AirflowConsole(markup=False, emoji=False).print_as(texts, output)


def confirm(options: argparse.Namespace) -> Callable[[Plan], None]:
    """Return what shows a plan and asks a person, unless ``--yes`` was given."""

    def ask(plan: Plan) -> None:
        tell(str(plan))
        if options.yes:
            return
        if not sys.stdin.isatty():
            raise DeclinedError("Nobody can be asked here, and nothing was done. Give --yes to agree.", USAGE)
        sys.stderr.write("Go on? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise DeclinedError("Nothing was done.", DECLINED)

    return ask


def _show_data(data: object, output: str) -> bool:
    if output == "json":
        sys.stdout.write(json.dumps(data, indent=2) + "\n")
    elif output == "yaml":
        sys.stdout.write(yaml.safe_dump(data, sort_keys=False))
    return output in ("json", "yaml")


def _text(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(part)}" for key, part in value.items()) or "-"
    return ", ".join(map(_text, value)) or "-" if isinstance(value, (list, tuple)) else str(value)
