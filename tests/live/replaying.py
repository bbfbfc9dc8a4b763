"""Replays of the dead letters of a sink: how they are begun, and the sinks that they are."""

from __future__ import annotations

from typing import Any

from airflow_provider_sinks.connectors.generations import Generations
from airflow_provider_sinks.connectors.stored_letters import stored_letters
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, replaying_sink
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.replays import Begun, begin
from tests.faults.driver import OWNER
from tests.live.stage import KeyValue, Sink, Stage

NARROW = {"schema": "id int NOT NULL, name string NOT NULL"}
"""What a sink reads by at first, and sets much aside."""
WIDE = {"schema": "id string, name string"}
"""What it reads by once it is mended."""


def good(first: int, count: int) -> list[KeyValue]:
    """Return records that fit either schema."""
    return [("k", f'{{"id": {number}, "name": "n"}}') for number in range(first, first + count)]


def of_another_type(first: int, count: int) -> list[KeyValue]:
    """Return records whose ids are text."""
    return [("k", f'{{"id": "t{number}", "name": "n"}}') for number in range(first, first + count)]


def without_name(first: int, count: int) -> list[KeyValue]:
    """Return records that lack a column."""
    return [("k", f'{{"id": {number}}}') for number in range(first, first + count)]


def cut_off(first: int, count: int) -> list[KeyValue]:
    """Return records that are no JSON."""
    return [("k", f'{{"id": {number}') for number in range(first, first + count)]


def begin_replay(sink: Sink, *, dry_run: bool = False, **asked: Any) -> Begun:
    """Begin a replay of the letters that are asked for, or say what it would be."""
    base = replaying_sink(sink.parsed)
    with Generations(base, sink.connections, OWNER, None, quiet_seconds=0) as generations:
        return begin(generations, base, sink.connections, ReplayRequest.parse(**asked), dry_run=dry_run)


def replaying(stage: Stage, spec: SinkSpec | None) -> Sink:
    """Return the sink that a replay is."""
    assert spec is not None
    folder = stage.folder / spec.name
    made = Sink(
        spec.to_mapping(), stage.connections(), folder, host=stage.host, driver_rows=stage.driver_rows
    )
    made.launches += [launch for one in stage.sinks if one.folder == folder for launch in one.launches]
    stage.sinks.append(made)
    return made


def replay(stage: Stage, sink: Sink, *, overwrite: bool = False) -> Sink:
    """Begin a replay of all letters, and return the sink that it is.

    :param overwrite: its rows may replace newer ones of their keys.
    """
    return replaying(stage, begin_replay(sink, overwrite=overwrite).sink)


def letters_of(sink: Sink) -> list[Letter]:
    """Return what a sink has set aside."""
    with stored_letters(sink.parsed, sink.connections) as letters:
        return list(letters.all())
