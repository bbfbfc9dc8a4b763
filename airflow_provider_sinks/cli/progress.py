"""``progress``: what the records of a sink say, and how far the source is ahead of them."""

from __future__ import annotations

import argparse
from typing import Any

from airflow_provider_sinks.cli.frame import command, show, show_one, sink_homes, tell
from airflow_provider_sinks.connectors.registry import end_types
from airflow_provider_sinks.core.decision.facts import Observation
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from airflow_provider_sinks.core.wording import summary
from airflow_provider_sinks.hooks.connections import resolve
from airflow_provider_sinks.lifecycle.verbs import spec_of

_READ_SECONDS = 30.0


@command
def progress(options: argparse.Namespace) -> None:
    """Show how far each writer and each source partition is."""
    from airflow_provider_sinks.connectors.observer import SinkObserver

    with sink_homes(options) as homes:
        spec = spec_of(homes.one(options.sink))
    with SinkObserver(spec, resolve(spec, end_types(spec)), _READ_SECONDS) as observer:
        seen = observer.observe()
    if seen.history is None:
        raise UnavailableError(
            f'the progress of sink "{spec.name}" could not be read',
            seen.history_reason,
            "Look at the progress topic and at what this user may see of it.",
        )
    writers = [_writer(writer, record) for writer, record in sorted(seen.history.records.items())]
    partitions = _partitions(seen)
    if options.output in ("table", "plain"):
        tell(summary(seen.history))
        show(writers, options.output)
        show(partitions, options.output)
    else:
        document = {"sink": spec.name, "generation": seen.history.generation, "epoch": seen.history.epoch}
        show_one({**document, "writers": writers, "partitions": partitions}, options.output)


def _writer(writer: WriterId, record: ProgressRecord) -> dict[str, Any]:
    return {
        "writer": writer,
        "generation": record.generation,
        "epoch": record.epoch,
        "rows": record.rows,
        "rows_total": record.rows_total,
        "dead_total": record.dead_total,
        "at": record.at,
        "run": record.run,
    }


def _partitions(seen: Observation) -> list[dict[str, Any]]:
    positions = seen.known.known_positions()
    return [
        {
            "partition": partition,
            "position": positions.get(partition),
            "first": low,
            "end": seen.source.high.get(partition),
            "lag": seen.source.high.get(partition, low) - max(low, positions.get(partition, low)),
        }
        for partition, low in sorted(seen.source.low.items())
    ]
