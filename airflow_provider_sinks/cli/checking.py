"""``plan`` and ``check``: what a start would do, and whether connections and SQL are good. Both only look."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from airflow_provider_sinks.arguments import accept_code
from airflow_provider_sinks.cli.frame import command, show, show_one, show_text, sink_homes, tell
from airflow_provider_sinks.cli.sources import spec_in_folder, specs_in_folder
from airflow_provider_sinks.core.checks.check import Report
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.query.questions import AskSpark, NoAnswer, NotTaken, Taken
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.verbs import spec_of
from airflow_provider_sinks.metadata.memory import Memory
from airflow_provider_sinks.metadata.sink_homes import SinkHomes


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
    from airflow_provider_sinks.lifecycle.dry_run import dry_run

    with sink_homes(options) as homes:
        spec = _spec(options, homes)
        memory, output = _Remembered(homes, spec.name), _output(spec, options)
        seen = dry_run(spec, memory, accept_code(options.accept), output)
    if options.output in ("table", "plain"):
        show_text(str(seen))
    else:
        show_one(seen.to_mapping(), options.output)
    error = seen.error()
    return int(error.exit_code) if error else 0


@command
def check(options: argparse.Namespace) -> int:
    """Show all checks of some sinks; one Spark is asked about the SQL of all."""
    from airflow_provider_sinks.operators.validate.sink_report import sink_reports

    specs, witnesses = _specs(options)
    ask = AskSpark(options.ask_spark)
    reports = sink_reports(specs, options.spark_conn_id, ask=ask, witnesses=witnesses)
    if options.output == "table":
        show_text("\n\n".join(_table(report, titled=len(reports) > 1) for report in reports))
    else:
        named = zip(specs, reports, strict=True)
        show(
            [{"sink": spec.name, **made} for spec, report in named for made in report.to_data()],
            options.output,
        )
    errors = [error for report in reports if (error := report.error()) is not None]
    for error in errors:
        tell(error.primary)
    return int(min(error.exit_code for error in errors)) if errors else 0


def _output(spec: SinkSpec, options: argparse.Namespace) -> Mapping[str, Any] | None:
    """Return the query's columns where a start may alter the target, or register schemas, for them.

    Only Spark knows them.
    """
    from airflow_provider_sinks.operators.validate.sink_report import spark_answer

    if not spec.on_schema_change.adds and not spec.target_registries:
        return None
    answer = spark_answer(spec, options.spark_conn_id)
    match answer:
        case Taken():
            found: Mapping[str, Any] = json.loads(answer.output)
            return found
        case NotTaken():
            raise ConfigurationError(f'Spark does not take the query of sink "{spec.name}"', answer.problems)
        case NoAnswer():
            tell(f"Spark was not asked for the columns of the query: {answer.why}")
            return None
        case other:
            assert_never(other)


def _table(report: Report, *, titled: bool) -> str:
    return f"{report.title}:\n{report.table()}" if titled else report.table()


def _specs(options: argparse.Namespace) -> tuple[list[SinkSpec], dict[str, Witness]]:
    """Return the sinks that were named, and what Airflow remembers of them; or all of the folder."""
    if options.folder:
        return specs_in_folder(options.folder, options.sinks), {}
    if not options.sinks:
        raise ConfigurationError(
            "no sink is named", [Problem("SINK", "is missing", "name sinks, or give --folder")]
        )
    with sink_homes(options) as homes:
        specs = [spec_of(homes.one(sink)) for sink in options.sinks]
        known = {spec.name: homes.memory(spec.name).witness for spec in specs}
        return specs, {sink: witness for sink, witness in known.items() if witness is not None}


def _spec(options: argparse.Namespace, homes: SinkHomes) -> SinkSpec:
    if options.folder:
        return spec_in_folder(options.folder, options.sink)
    return spec_of(homes.one(options.sink))
