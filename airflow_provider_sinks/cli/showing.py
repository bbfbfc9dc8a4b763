"""``list``, ``describe`` and ``status``: what Airflow, or a folder, knows of sinks. None asks a broker."""

from __future__ import annotations

import argparse
from typing import Any

from airflow_provider_sinks.cli.frame import command, show, show_one, sink_homes
from airflow_provider_sinks.cli.sources import sinks_of_folder, spec_in_folder
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.lifecycle.sink_home import SinkHome
from airflow_provider_sinks.core.lifecycle.state_history import Entry, HistoryState, to_mappings
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.verbs import spec_of

_CODES = {
    HistoryState.STALLED: ExitCode.UNAVAILABLE,
    HistoryState.FAILED: ExitCode.FAILED,
    HistoryState.ORPHANED: ExitCode.FAILED,
}
_ORPHANED = "It runs, and no DAG names it. To end it: airflow sinks pause {}"


@command
def list_sinks(options: argparse.Namespace) -> None:
    """Show all sinks."""
    if options.folder:
        found = sinks_of_folder(options.folder)
        show(
            [{"sink": sink.spec.name, **_ends(sink.spec), "place": str(sink.place)} for sink in found],
            options.output,
        )
        return
    with sink_homes(options) as homes:
        show([_row(home) for home in homes.all()], options.output)


@command
def describe(options: argparse.Namespace) -> None:
    """Show what a sink is."""
    if options.folder:
        show_one(_described(spec_in_folder(options.folder, options.sink)), options.output)
        return
    with sink_homes(options) as homes:
        home = homes.one(options.sink)
    dags = [
        {
            "dag": dag.dag_id,
            "paused": dag.is_paused,
            "schedule": dag.schedule,
            "other_sinks": list(dag.others),
        }
        for dag in home.dags
    ]
    show_one({**_described(spec_of(home)), "dags": dags}, options.output)


@command
def status(options: argparse.Namespace) -> int:
    """Show where a sink stands; the exit code says whether somebody must look."""
    with sink_homes(options) as homes:
        home = homes.one(options.sink)
    entry = home.standing
    told: dict[str, Any] = _standing(home, entry)
    if options.history:
        told["history"] = to_mappings(home.history)
    if options.history and options.output in ("table", "plain"):
        show([_told(past) for past in home.history], options.output)
    else:
        show_one(told, options.output)
    return _CODES.get(entry.state, ExitCode.OK)


def _row(home: SinkHome) -> dict[str, Any]:
    entry = home.standing
    return {
        "sink": home.name,
        "state": entry.state.value,
        "since": entry.since or None,
        "epoch": home.status.get("epoch"),
        "rows_total": home.status.get("rows_total"),
        "lag": home.status.get("lag"),
        "connections": list(home.connections),
        "dags": [dag.dag_id for dag in home.dags],
        "task": "; ".join(sorted({task.told for task in home.tasks})) or None,
        "drivers": [driver.runs for driver in home.drivers],
        "paused": home.is_paused,
    }


def _standing(home: SinkHome, entry: Entry) -> dict[str, Any]:
    names = ("launch", "generation", "epoch", "rows", "rows_total", "dead_total", "rows_per_second", "lag")
    error = entry.error or home.newest_error
    target = {name: home.status[name] for name in ("health", "metrics") if home.status.get(name)}
    waiting = home.status.get("waits_for")
    return {
        "sink": home.name,
        "state": entry.state.value,
        "since": entry.since or None,
        **{name: home.status.get(name) for name in names},
        **({"waits_for": waiting} if waiting else {}),
        **target,
        "heard_of": home.status.get("at"),
        "tasks": [str(task) for task in home.tasks],
        "drivers": [driver.runs for driver in home.drivers],
        "error": error.primary if error else None,
        "detail": error.detail if error else None,
        "hint": _ORPHANED.format(home.name) if home.is_orphan else error.hint if error else None,
        "times": entry.times,
    }


def _told(entry: Entry) -> dict[str, Any]:
    error = entry.error.primary if entry.error else None
    return {
        "since": entry.since,
        "state": entry.state.value,
        "launch": entry.launch,
        "times": entry.times,
        "last": entry.at,
        "error": error,
    }


def _ends(spec: SinkSpec) -> dict[str, Any]:
    source = spec.source.kafka
    return {
        "source": f"{source.connection}/{source.topic}",
        "target": f"{spec.target_connection or spec.target_kind}/{spec.resources[Role.DATA]}",
        "connections": list(spec.connections),
    }


def _described(spec: SinkSpec) -> dict[str, Any]:
    every = spec.trigger.every
    return {
        "sink": spec.name,
        **_ends(spec),
        "query": spec.sql,
        "writers": spec.writer_mode.value,
        "keeps_state": spec.shape.stateful,
        "trigger": f"every {every.total_seconds():g} s" if every else "available now",
        **spec.shown(),
        "digest": spec.digest,
    }
