"""``plan`` and ``check``: what a start would do, and whether connections are good. Both change nothing."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from airflow_provider_sinks.arguments import accept_code
from airflow_provider_sinks.commands.frame import command, show, show_one, sink_homes, tell
from airflow_provider_sinks.commands.sources import spec_in_folder
from airflow_provider_sinks.core.spec import SinkSpec
from airflow_provider_sinks.hooks.memory import Memory
from airflow_provider_sinks.hooks.sink_homes import SinkHomes
from airflow_provider_sinks.hooks.sink_verbs import spec_of


@dataclass(frozen=True)
class _Remembered:
    """What Airflow remembers of one sink, for a look."""

    homes: SinkHomes
    sink: str

    def recall(self) -> Memory:
        """Return it."""
        return self.homes.memory(self.sink)


@command
def plan(options: argparse.Namespace) -> int:
    """Show what a start would do; the exit code is the one that it would end with."""
    from airflow_provider_sinks.hooks.look import look

    with sink_homes(options) as homes:
        spec = _spec(options, homes)
        seen = look(spec, _Remembered(homes, spec.name), accept_code(options.accept))
    if options.output in ("table", "plain"):
        print(seen)  # noqa: T201  it is the result
    else:
        show_one(seen.to_mapping(), options.output)
    error = seen.verdict.error()
    return int(error.exit_code) if error else 0


@command
def check(options: argparse.Namespace) -> int:
    """Show all checks of a sink's connections."""
    from airflow_provider_sinks.operators.validate_connection import sink_report

    if options.folder:
        spec = spec_in_folder(options.folder, options.sink)
    else:
        with sink_homes(options) as homes:
            spec = spec_of(homes.one(options.sink))
    report = sink_report(spec, options.spark_conn_id)
    if options.output == "table":
        print(report.table())  # noqa: T201  it is the result
    else:
        show(report.to_data(), options.output)
    error = report.error()
    if error is not None:
        tell(error.primary)
    return int(error.exit_code) if error else 0


def _spec(options: argparse.Namespace, homes: SinkHomes) -> SinkSpec:
    if options.folder:
        return spec_in_folder(options.folder, options.sink)
    return spec_of(homes.one(options.sink))
