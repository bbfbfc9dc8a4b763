"""A sink that was started by the release before goes on after an update.

``written_before`` holds what that release wrote for a sink of 21 source records, one of which did not parse:
its progress records and its last status, read from a real broker, without names and ids of that broker.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.connectors.kafka.creation import PROGRESS_CONFIG
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.connectors.kafka.topics import KafkaClient
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.progress.record import ProgressKey
from tests.live.stage import Sink, Stage

WRITTEN = Path(__file__).parent / "written_before"
JSON = {"format": "json", "schema": "id long, what string", "max_offsets_per_epoch": 12}
_BEFORE = {
    p: [(f"k{p}", json.dumps({"id": p * 100 + n, "what": f"w{n}"})) for n in range(10)] for p in (0, 1)
}


@pytest.mark.parametrize("writers", ["per_partition", "single"])
def test_a_sink_that_the_release_before_has_written_goes_on_behind_its_last_row(
    stage: Stage, writers: str
) -> None:
    sink = written_before(stage, writers)
    stage.produce(sink.source, [(p, "new", json.dumps({"id": p, "what": "new"})) for p in (0, 1)])

    status = sink.run()

    assert (status.generation, status.epoch, status.rows_total, status.dead_total) == (1, 3, 22, 1)
    assert [json.loads(record.value or b"")["what"] for record in stage.read(sink.out)] == ["new", "new"]
    assert "start over" not in sink.launches[-1].log


def test_its_witness_still_stops_a_sink_that_lost_its_progress(stage: Stage) -> None:
    sink = written_before(stage, "per_partition")
    stage.delete_topic(sink.progress)

    status = sink.fail(ExitCode.REFUSED)

    assert status.error is not None
    assert status.error.primary == f'progress of sink "{sink.parsed.name}" is lost'
    assert "20 rows" in status.error.detail


def written_before(stage: Stage, writers: str) -> Sink:
    """Return a sink with everything that the release before had left of it."""
    source = stage.source("before", _BEFORE)
    stage.produce(source, [(0, "k0", "no json")])
    sink = stage.sink("before", source, from_=JSON, to={"key": ["id"]}, writers=writers)
    dead = f"{source}_dead"
    sink.spec = {**sink.spec, "dead_letter": {"topic": dead}}
    stage.create_topic(sink.out, 2)
    stage.create_topic(dead)
    stage.create_topic(sink.progress, 1, **PROGRESS_CONFIG)
    names = {"source": source, "data": sink.out, "progress": sink.progress, "dead_letter": dead}
    left = json.loads(_with_ids(stage, (WRITTEN / f"{writers}.json").read_text(), sink, names))
    _put(stage, sink, left["records"])
    witness = SinkStatus.from_json(json.dumps(left["status"])).witness()
    assert witness is not None
    sink.remembered = witness
    return sink


def _with_ids(stage: Stage, text: str, sink: Sink, names: dict[str, str]) -> str:
    with KafkaClient(stage.connections().get("kafka", KafkaOptions)) as client:
        found = {name: facts.identity for name, facts in client.observe_topics(list(names.values())).items()}
    cluster = found[sink.source].system
    marks = {"<cluster>": cluster, "<sink>": sink.parsed.name, "<dead letters>": names["dead_letter"]}
    marks |= {f"<id of {role}>": found[name].id for role, name in names.items()}
    marks |= {f"<{role}>": name for role, name in names.items()}
    for mark, what in marks.items():
        text = text.replace(mark, what)
    return text


def _put(stage: Stage, sink: Sink, records: list[tuple[str, Any]]) -> None:
    producer = Producer(stage.client)
    for writer, record in records:
        key = ProgressKey(sink.parsed.name, writer).encode()
        producer.produce(sink.progress, key=key, value=json.dumps(record).encode(), partition=0)
    assert producer.flush(60) == 0
