"""What a start finds and will not guess about: broken, refused with a hint, mended, running again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Producer

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.progress.record import ProgressKey
from tests.live.stage import Sink, Stage


@dataclass(frozen=True)
class Disruption:
    """Something that must stop a start.

    :param break_it: does the harm to a sink that has written two rows, and returns what mends it.
    :param primary: what the refusal must begin with; ``{...}`` are the sink's names.
    :param hint: what must help, in part.
    """

    break_it: Callable[[Stage, Sink], Callable[[], None] | None]
    primary: str
    hint: str


def _other_policy(stage: Stage, sink: Sink) -> Callable[[], None]:
    stage.configure_topic(sink.progress, "cleanup.policy", "compact,delete")
    return lambda: stage.configure_topic(sink.progress, "cleanup.policy", "compact")


def _two_partitions(stage: Stage, sink: Sink) -> None:
    stage.grow_topic(sink.progress, 2)


def _garbage(stage: Stage, sink: Sink) -> None:
    stage.produce(sink.progress, [(0, ProgressKey(sink.parsed.name, "p0").encode(), b"not a record")])


def _newer_format(stage: Stage, sink: Sink) -> None:
    writer, newest = stage.progress(sink)[-1]
    key = ProgressKey(sink.parsed.name, writer).encode()
    stage.produce(sink.progress, [(0, key, newest.encode().replace(b'"v":1', b'"v":99'))])


def _other_owner(stage: Stage, sink: Sink) -> Callable[[], None]:
    newest = dict(stage.progress(sink))["driver"]
    key = ProgressKey(sink.parsed.name, "driver").encode()
    stage.produce(sink.progress, [(0, key, replace(newest, owner="another").encode())])
    return lambda: stage.produce(sink.progress, [(0, key, newest.encode())])


def _progress_deleted(stage: Stage, sink: Sink) -> None:
    stage.delete_topic(sink.progress)


def _data_replaced(stage: Stage, sink: Sink) -> None:
    stage.delete_topic(sink.out)
    stage.create_topic(sink.out)


def _source_deleted(stage: Stage, sink: Sink) -> None:
    stage.delete_topic(sink.source)


def _records_removed(stage: Stage, sink: Sink) -> None:
    stage.produce(sink.source, [(0, "k", "never read")])
    stage.remove_records(sink.source, {0: 3})


DISRUPTIONS = {
    "progress topic not exactly compacted": Disruption(
        _other_policy,
        'progress topic "{progress}" is not exactly compacted',
        "--add-config cleanup.policy=compact",
    ),
    "progress topic with two partitions": Disruption(
        _two_partitions, 'progress topic "{progress}" has 2 partitions', "--delete --topic {progress}"
    ),
    "garbage under our own key": Disruption(
        _garbage, 'progress of sink "{name}" cannot be read', 'accept="resume_from_witness-'
    ),
    "newer format under our own key": Disruption(
        _newer_format, 'sink "{name}" was taken over by a newer start', "pip install --upgrade"
    ),
    "another owner": Disruption(
        _other_owner, 'sink "{name}" belongs to another Airflow', 'accept="take_over-'
    ),
    "progress topic deleted, but Airflow remembers": Disruption(
        _progress_deleted, 'progress of sink "{name}" is lost', 'accept="resume_from_witness-'
    ),
    "data topic made anew": Disruption(
        _data_replaced,
        'data topic "{out}" is not the one that sink "{name}" has written to',
        'accept="adopt-',
    ),
    "records removed before they were read": Disruption(
        _records_removed,
        'sink "{name}" has missed up to 1 record of source topic "{source}"',
        'accept="skip_lost-',
    ),
    "source topic deleted": Disruption(
        _source_deleted,
        'source topic "{source}" is missing, but sink "{name}" has read from it',
        "Make the topic again",
    ),
}


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in DISRUPTIONS.items()])
def test_start_is_refused_touches_nothing_and_goes_on_once_mended(case: Disruption, stage: Stage) -> None:
    source = stage.source("refused", {0: [("k", "v0"), ("k", "v1")]})
    sink = stage.sink("refused", source, from_={"format": "text"})
    sink.run()
    mend = case.break_it(stage, sink)
    names = {"name": sink.parsed.name, "progress": sink.progress, "out": sink.out, "source": source}
    topics, ends = stage.topics(), stage.end_offsets(sink)

    status = sink.fail(ExitCode.REFUSED)

    assert status.error is not None
    assert status.error.primary.startswith(case.primary.format(**names))
    assert case.hint.format(**names) in status.error.hint
    assert stage.topics() == topics
    assert stage.end_offsets(sink) == ends
    if mend is not None:
        mend()
        stage.produce(source, [(0, "k", "v2")])
        assert sink.run().rows_total == 3
        assert [record.value for record in stage.read(sink.out)] == [b"v0", b"v1", b"v2"]


def test_lost_progress_resumes_from_the_witness_without_loss_or_repetition(stage: Stage) -> None:
    source = stage.source("witness", {0: [("k", "v0")], 1: [("k", "w0")]})
    sink = stage.sink("witness", source, from_={"format": "text"})
    sink.run()
    stage.delete_topic(sink.progress)
    stage.produce(source, [(0, "k", "v1"), (1, "k", "w1")])
    refused = sink.fail(ExitCode.REFUSED)

    status = sink.run(accept=sink.code(refused, "resume_from_witness"))

    assert sorted(record.value or b"" for record in stage.read(sink.out)) == [b"v0", b"v1", b"w0", b"w1"]
    assert (status.generation, status.rows) == (2, 2)


def test_a_sink_that_only_the_broker_remembers_is_not_taken_for_a_new_one(stage: Stage) -> None:
    """Progress, checkpoint and witness are gone: what is left are the transactional ids that committed."""
    source = stage.source("forgotten", {0: [("k", "v0"), ("k", "v1")]})
    known = stage.sink("forgotten", source, from_={"format": "text"})
    known.run()
    stage.delete_topic(known.progress)
    fresh = replace(known, folder=known.folder.with_name(f"{known.folder.name}-fresh"), launches=[])
    stage.sinks.append(fresh)
    topics, rows = stage.topics(), stage.read(known.out)

    refused = fresh.fail(ExitCode.REFUSED)

    assert refused.error is not None
    assert refused.error.primary.startswith(f'progress of sink "{known.parsed.name}" is lost')
    assert "the transaction coordinator knows of commits by" in refused.error.detail
    assert "resume_from_witness-" not in refused.error.hint
    assert stage.topics() == topics
    assert stage.read(known.out) == rows
    assert fresh.run(fresh.code(refused, "start_over")).rows_total == len(rows) == 2


def test_removed_records_are_left_out_once_a_person_says_so(stage: Stage) -> None:
    source = stage.source("removed", {0: [("k", "v0")], 1: [("k", "w0")]})
    sink = stage.sink("removed", source, from_={"format": "text"})
    sink.run()
    stage.produce(source, [(0, "k", "never read"), (0, "k", "v2"), (1, "k", "w1")])
    stage.remove_records(source, {0: 2})
    refused = sink.fail(ExitCode.REFUSED)

    status = sink.run(accept=sink.code(refused, "skip_lost"))

    assert sorted(record.value or b"" for record in stage.read(sink.out)) == [b"v0", b"v2", b"w0", b"w1"]
    assert (status.generation, status.rows_total) == (1, 4)


def test_new_sink_waits_for_a_source_that_is_not_there_and_makes_nothing(stage: Stage) -> None:
    sink = stage.sink("early", "pytest_sink-job_not-there", from_={"format": "text"})
    before = stage.topics()

    status = sink.fail(ExitCode.UNAVAILABLE)

    assert status.error is not None
    assert "pytest_sink-job_not-there" in str(status.error)
    assert stage.topics() == before


def test_a_code_that_a_running_job_prints_fits_the_next_start_and_no_other_case(stage: Stage) -> None:
    """Airflow writes a witness when the job is over, which the job did not have when it began."""
    source = stage.source("under-way", {0: [("k", "v0"), ("k", "v1")]})
    sink = stage.sink("under-way", source, from_={"format": "text"}, trigger={"every": "100ms"})
    running = sink.launch()
    running.wait_until(lambda: running.has_passed({0: 2}))
    stage.delete_topic(sink.out)
    assert running.wait() == ExitCode.REFUSED
    printed = running.status
    assert printed is not None
    accept = sink.code(printed, "continue_without_output")
    stage.produce(source, [(0, "k", "v2")])

    fitting = sink.launch(accept)
    fitting.wait_until(lambda: fitting.has_passed({0: 3}))

    assert fitting.stop() == ExitCode.OK
    assert [record.value for record in stage.read(sink.out)] == [b"v2"]
    stage.delete_topic(sink.out)
    assert "does not fit what is seen now" in str(sink.fail(ExitCode.REFUSED, accept).error)


def test_the_status_says_that_a_start_waits_for_an_open_transaction(stage: Stage) -> None:
    source = stage.source("waits", {0: [("k", "v0")]})
    sink = stage.sink("waits", source, from_={"format": "text"})
    sink.run()
    other = Producer(
        {
            **stage.client,
            "transactional.id": f"somebody-{sink.parsed.name}",
            "transaction.timeout.ms": "600000",
        }
    )
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(sink.progress, key=b"not ours", value=b"x", partition=0)
    other.flush(30)

    waiting = sink.launch()
    waiting.wait_until(lambda: (now := waiting.status) is not None and bool(now.waits_for))

    assert waiting.status is not None
    assert f'progress topic "{sink.progress}"' in waiting.status.waits_for
    assert "kafka-transactions.sh" in waiting.status.waits_for
    other.abort_transaction(30)
    assert waiting.wait() == ExitCode.OK
    assert waiting.status.waits_for == ""
