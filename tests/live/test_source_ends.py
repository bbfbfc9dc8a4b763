"""Where a source begins and ends as Spark sees it: behind open transactions, and with partitions added."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.core.errors import ExitCode
from tests.live.stage import Sink, Stage

_COUNTS = "SELECT word, count(*) AS n FROM source GROUP BY word"


def _values(stage: Stage, sink: Sink) -> list[bytes]:
    return sorted(record.value or b"" for record in stage.read(sink.out))


def test_a_sink_from_latest_has_once_what_an_open_transaction_held_at_its_start(stage: Stage) -> None:
    """The stranger's transaction is open over the whole first launch, and records of others are behind it."""
    source = stage.source("latest", {0: [("k", "before")]})
    stranger = Producer(
        {**stage.client, "transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": "600000"}
    )
    stranger.init_transactions(30)
    stranger.begin_transaction()
    stranger.produce(source, key="k", value="held", partition=0)
    assert stranger.flush(30) == 0
    stage.produce(source, [(0, "k", "behind")])
    sink = stage.sink("latest", source, from_={"format": "text", "start": "latest"})

    assert sink.run().positions == {0: 1}
    stranger.commit_transaction(30)
    sink.run()
    stage.produce(source, [(0, "k", "after")])
    sink.run()

    assert _values(stage, sink) == [b"after", b"behind", b"held"]


@pytest.mark.parametrize("records", [2, 3], ids=["nothing is left", "a record is left"])
def test_a_sink_takes_in_a_partition_that_was_added_and_whose_first_records_are_gone(
    stage: Stage, records: int
) -> None:
    source = stage.source("cut", {0: [("k", "v0")]})
    sink = stage.sink("cut", source, from_={"format": "text"})
    sink.run()
    stage.grow_topic(source, 2)
    stage.produce(source, [(1, "k", f"w{number}") for number in range(records)])
    stage.remove_records(source, {1: 2})
    stage.produce(source, [(0, "k", "v1")])

    sink.run()
    stage.produce(source, [(1, "k", "later")])
    status = sink.run()

    left = [b"w2"] if records > 2 else []
    assert _values(stage, sink) == sorted([b"v0", b"v1", b"later", *left])
    assert (status.generation, status.rows_total) == (1, 3 + len(left))


def test_a_stateful_sink_refuses_such_a_partition_and_starts_over_if_a_person_says_so(stage: Stage) -> None:
    source = stage.source("cut-state", {0: [(None, '{"word": "a"}')]})
    from_, to = {"schema": "word string"}, {"key": ["word"]}
    sink = stage.sink("cut-state", source, from_=from_, to=to, query=_COUNTS)
    sink.run()
    stage.grow_topic(source, 2)
    stage.produce(source, [(1, None, '{"word": "b"}')] * 3)
    stage.remove_records(source, {1: 2})

    refused = sink.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert refused.error.primary.startswith(f'source topic "{source}" has new partitions whose first records')
    assert sink.run(accept=Sink.code(refused, "start_over")).generation == 2
    assert _values(stage, sink) == [b'{"word":"a","n":1}', b'{"word":"a","n":1}', b'{"word":"b","n":1}']


def test_each_record_names_the_leader_epochs_under_which_the_source_was_read(stage: Stage) -> None:
    source = stage.source("leaders", {0: [("k", "v0")]})
    sink = stage.sink("leaders", source, from_={"format": "text"})

    sink.run()
    stage.produce(source, [(0, "k", "v1")])
    sink.run()

    assert {writer for writer, _ in stage.progress(sink)} == {"driver", "p0"}
    assert [record.leader_epochs.keys() for _, record in stage.progress(sink)] == [{0}] * 4
