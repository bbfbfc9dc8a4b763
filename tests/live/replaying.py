"""A replay of all dead letters of a sink, as the sink that it is."""

from __future__ import annotations

from airflow_provider_sinks.connectors.generations import Generations
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, replaying_sink
from airflow_provider_sinks.lifecycle.replays import begin
from tests.faults.driver import OWNER
from tests.live.stage import Sink, Stage


def replay(stage: Stage, sink: Sink, *, overwrite: bool = False) -> Sink:
    """Begin a replay of all letters, and return the sink that it is.

    :param overwrite: its rows may replace newer ones of their keys.
    """
    base = replaying_sink(sink.parsed)
    with Generations(base, sink.connections, OWNER, None, quiet_seconds=0) as generations:
        spec = begin(generations, base, sink.connections, ReplayRequest.parse(overwrite=overwrite)).sink
    assert spec is not None
    made = Sink(spec.to_mapping(), stage.connections(), stage.folder / spec.name, host=stage.host)
    made.driver_rows = stage.driver_rows
    stage.sinks.append(made)
    return made
