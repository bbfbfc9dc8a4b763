"""Every row of the decision table and every way on, on a real broker: what is decided, what is said, and
what exists afterwards.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory
from airflow_provider_sinks.connectors.kafka.transactions import fence
from airflow_provider_sinks.connectors.observer import SinkObserver
from airflow_provider_sinks.core.decision.decide import decide
from airflow_provider_sinks.core.decision.facts import Observation, ResourceFacts, Role
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.owner import OwnerReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.progress_place import PlaceReason
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.reasons.records import RecordsReason
from airflow_provider_sinks.core.decision.reasons.source import SourceReason
from airflow_provider_sinks.core.decision.start_request import start_request
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.progress.history import EARLIEST
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressKey, partition_writer
from airflow_provider_sinks.local.broker import KafkaBroker
from tests import administrator
from tests.live.sink_world import SOURCE_PARTITIONS, SinkWorld

WorldFactory = Callable[..., SinkWorld]


@pytest.fixture(scope="module")
def other_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Another cluster."""
    with KafkaBroker.start(tmp_path_factory.mktemp("other") / "kafka") as running:
        yield running


@pytest.fixture
def world(broker: KafkaBroker, request: pytest.FixtureRequest) -> WorldFactory:
    """Make a sink with a source topic of its own."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:60].strip("-")

    def make(**options: Any) -> SinkWorld:
        made = SinkWorld(broker, f"pytest_{test}_{uuid.uuid4().hex[:8]}", options)
        made.create(made.source)
        return made

    return make


@pytest.fixture
def written(world: WorldFactory) -> SinkWorld:
    """A sink that has started and written two epochs of ten rows."""
    made = world()
    made.start()
    made.write(1)
    made.write(2)
    return made


def reasons(verdict: Verdict) -> list[Reason]:
    return [refusal.reason for refusal in verdict.refusals]


def code(verdict: Verdict, name: str) -> str:
    """Return the code of a way on as a person finds it: in the hint."""
    found = re.search(rf'accept="({re.escape(name)}-[0-9a-f]{{10}})"', verdict.hint)
    assert found, verdict.hint
    return found.group(1)


def assert_refused(verdict: Verdict, reason: Reason, primary: str, *ways: str) -> None:
    assert (verdict.kind, reasons(verdict)) == (VerdictKind.REFUSE, [reason]), str(verdict)
    assert verdict.primary == primary
    assert [offer.name for offer in verdict.offers] == list(ways)
    for way in ways:
        assert code(verdict, way)


# Rows that start or resume.


def test_a_new_sink_gets_both_topics_and_starts(world: WorldFactory) -> None:
    sink = world()

    verdict = sink.start()

    assert (verdict.kind, verdict.generation) == (VerdictKind.START, 1)
    assert sink.created(verdict) == {Role.PROGRESS, Role.DATA}
    seen = sink.observe()
    assert (seen.progress.partitions, seen.progress.unfit, seen.progress.hidden) == (1, None, "")
    assert seen.data.partitions == SOURCE_PARTITIONS
    assert [json.loads(key or b"") for key, _ in sink.read(sink.progress)] == [[sink.name, DRIVER]]


def test_the_topics_of_a_new_sink_are_made_as_the_spec_says(world: WorldFactory) -> None:
    sink = world(dead_letter={"topic": f"dlq_{uuid.uuid4().hex}", "config": {"retention.ms": "60000"}})
    options = {
        "connection": "dst",
        "topic": sink.data,
        "partitions": 3,
        "config": {"retention.ms": "3600000"},
    }
    sink.options = {**sink.options, "target": {"kafka": {**options, "format": "bytes"}}}
    sink.options = {
        **sink.options,
        "source": {"kafka": {"connection": "src", "topic": sink.source, "format": "bytes"}},
    }

    assert sink.created(sink.start()) == {Role.PROGRESS, Role.DATA, Role.DEAD_LETTER}

    seen = sink.observe()
    assert (seen.data.partitions, seen.dead_letter and seen.dead_letter.partitions) == (3, 1)
    data, progress = (administrator.options(sink.admin, name) for name in (sink.data, sink.progress))
    assert data["retention.ms"] == "3600000"
    assert int(progress["segment.bytes"]) == 16 * 1024 * 1024


def test_a_progress_topic_that_nobody_remembers_is_made_again(written: SinkWorld) -> None:
    """The seed rule. The broker forgets ids after seven days; here the sink gets ids that it never had."""
    written.delete(written.progress)
    written.options = {"transactional_id_prefix": "forgotten"}

    verdict = written.start()

    assert (verdict.kind, written.created(verdict)) == (VerdictKind.START, {Role.PROGRESS})
    assert re.search(r'data topic ".*_out" holds up to 2\d records already', verdict.warnings[0])
    assert len(written.read(written.data)) == 20


# What the broker remembers.


def test_a_sink_whose_ids_have_committed_is_not_new(written: SinkWorld) -> None:
    written.delete(written.progress)

    verdict = written.start()

    assert_refused(
        verdict, ProgressReason.PROGRESS_LOST, f'progress of sink "{written.name}" is lost', "start_over"
    )  # fmt: skip
    assert "the transaction coordinator knows of commits by all, driver" in verdict.detail
    assert "how many it wrote is unknown" in verdict.hint
    assert written.start(code(verdict, "start_over")).kind is VerdictKind.START
    assert written.decide().kind is VerdictKind.RESUME


def test_a_fence_does_not_make_a_sink_new_that_has_written(written: SinkWorld) -> None:
    """A driver that is killed is fenced from Airflow, and a start may die behind its fence."""
    fence(written.kafka_options(), [written.transactional_id(writer) for writer in written.writers()])
    written.delete(written.progress)

    verdict = written.start()

    assert reasons(verdict) == [ProgressReason.PROGRESS_LOST]
    assert "the transaction coordinator knows of all, driver" in verdict.detail


def test_a_new_sink_whose_first_starts_die_behind_their_fence_is_still_new(world: WorldFactory) -> None:
    sink = world()
    for _ in range(3):
        fence(sink.kafka_options(), [sink.transactional_id(writer) for writer in sink.writers()])

    assert sink.start().kind is VerdictKind.START


def test_a_sink_that_announced_itself_and_wrote_nothing_may_lose_its_progress(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.delete(sink.progress)

    assert sink.start().kind is VerdictKind.START


@pytest.mark.parametrize("knows", [False, True], ids=["no witness", "witness"])
@pytest.mark.parametrize("owner", ["us", "them"])
def test_another_progress_topic_does_not_make_a_sink_of_the_same_name_new(
    written: SinkWorld, owner: str, *, knows: bool
) -> None:
    """Whose it ever is: the ids are shared by all sinks of one name in a cluster."""
    witness = written.witness() if knows else None
    written.options = {"progress": f"pytest_other_{uuid.uuid4().hex[:8]}"}
    written.owner = owner

    verdict = written.start(witness=witness)

    assert reasons(verdict) == [ProgressReason.PROGRESS_LOST]
    assert len(written.read(written.data)) == 20
    assert knows or "by one with another progress topic" in verdict.detail


def test_looking_at_a_fresh_cluster_makes_no_topic_of_transactions(other_broker: KafkaBroker) -> None:
    sink = SinkWorld(other_broker, f"pytest_fresh_{uuid.uuid4().hex[:8]}")
    sink.create(sink.source)

    assert sink.observe().memory == BrokerMemory()
    assert "__transaction_state" not in sink.admin.list_topics(timeout=60).topics


def test_a_sink_without_a_record_in_a_shared_progress_topic_starts(world: WorldFactory) -> None:
    shared = f"pytest_shared_{uuid.uuid4().hex[:8]}"
    first, second = world(progress=shared), world(progress=shared)
    first.start()
    first.write(1)

    verdict = second.start()

    assert (verdict.kind, second.created(verdict)) == (VerdictKind.START, {Role.DATA})
    assert first.decide().kind is VerdictKind.RESUME


@pytest.mark.parametrize("has_started", [False, True], ids=["a new sink", "a sink that wrote nothing"])
def test_rows_never_go_into_a_topic_that_holds_progress(world: WorldFactory, *, has_started: bool) -> None:
    shared = f"pytest_shared_{uuid.uuid4().hex[:8]}"
    first, second = world(progress=shared), world()
    first.start()
    first.write(1)
    if has_started:
        second.start()
    second.options = {"target": f"dst/{shared}"}

    verdict = second.start()

    primary = f'data topic "{shared}" holds the progress of sink "{first.name}"'
    assert_refused(verdict, OutputReason.OUTPUT_UNFIT, primary)
    assert verdict.hint == "Name another topic."
    assert first.decide().kind is VerdictKind.RESUME


def test_a_data_topic_of_a_sink_that_wrote_nothing_is_made_again(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.delete(sink.data)

    verdict = sink.start()

    assert (verdict.kind, sink.created(verdict)) == (VerdictKind.RESUME, {Role.DATA})
    assert sink.data in sink.topics()
    assert sink.decide().warnings == ()


def test_another_data_topic_is_adopted_by_a_sink_that_wrote_nothing(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.delete(sink.data)
    sink.create(sink.data)

    verdict = sink.start()

    assert (verdict.kind, verdict.actions) == (VerdictKind.RESUME, ())
    assert "is another one than recorded; nothing was written to the old one" in verdict.warnings[0]
    assert sink.decide().warnings == ()


def test_a_sink_that_has_written_resumes_after_its_newest_epoch(written: SinkWorld) -> None:
    verdict = written.start(witness=written.witness())

    assert (verdict.kind, verdict.generation, verdict.epoch) == (VerdictKind.RESUME, 1, 2)
    assert verdict.positions == {0: 20, 1: 20}
    assert (verdict.actions, verdict.warnings) == ((), ())


def test_more_partitions_of_the_data_topic_are_a_warning(written: SinkWorld) -> None:
    administrator.grow_topic(written.admin, written.data, 3)

    verdict = written.start()

    assert verdict.kind is VerdictKind.RESUME
    assert "grew from 2 to 3 partitions: keys move" in verdict.warnings[0]
    assert written.decide().warnings == ()


def test_a_torn_epoch_resumes_each_partition_at_its_own_place(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.write(1, writer=partition_writer(0))
    sink.write(1, writer=partition_writer(1))
    sink.write(2, writer=partition_writer(1))

    assert sink.decide().positions == {0: 10, 1: 20}


def test_a_source_partition_that_was_added_starts_at_its_first_offset(written: SinkWorld) -> None:
    administrator.grow_topic(written.admin, written.source, 3)

    assert written.decide().positions == {0: 20, 1: 20, 2: EARLIEST}


# Rows that wait. What an ACL hides, and what a broker does not answer, stands in test_kafka_client.py.


def test_a_new_sink_waits_for_its_source(world: WorldFactory) -> None:
    sink = world()
    sink.delete(sink.source)

    verdict = sink.start()

    assert verdict.kind is VerdictKind.WAIT
    assert f'source topic "{sink.source}" does not exist' in verdict.primary
    assert sink.topics() == set()


# Rows that refuse, and their ways on.


def test_lost_progress_is_refused_when_the_witness_saw_rows(written: SinkWorld) -> None:
    witness = written.witness()
    written.delete(written.progress)

    verdict = written.start(witness=witness)

    primary = f'progress of sink "{written.name}" is lost'
    assert_refused(verdict, ProgressReason.PROGRESS_LOST, primary, "resume_from_witness", "start_over")
    assert "is missing, but Airflow's witness knows 20 rows through epoch 2 of generation 1" in verdict.detail
    assert re.search(r"holds up to 2\d records", verdict.detail)
    assert written.progress not in written.topics()


def test_resume_from_witness_goes_on_where_airflow_remembers(written: SinkWorld) -> None:
    witness = written.witness()
    written.delete(written.progress)
    accept = code(written.decide(witness=witness), "resume_from_witness")

    verdict = written.start(accept, witness)

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.RESUME, 2, {0: 20, 1: 20})
    assert written.created(verdict) == {Role.PROGRESS}
    assert len(written.read(written.data)) == 20
    assert written.announced is not None
    assert (written.announced.rows_before, dict(written.announced.from_)) == (20, {0: 20, 1: 20})
    after = written.decide(witness=witness)
    assert (after.kind, after.positions, after.warnings) == (VerdictKind.RESUME, {0: 20, 1: 20}, ())


def test_a_code_does_not_fit_the_next_loss(written: SinkWorld) -> None:
    written.delete(written.data)
    accept = code(written.decide(), "continue_without_output")
    written.start(accept)
    written.write(3)
    written.delete(written.data)

    verdict = written.start(accept)

    assert reasons(verdict) == [OutputReason.OUTPUT_LOST]
    assert f'accept="{accept}" does not fit what is seen now' in verdict.detail
    assert code(verdict, "continue_without_output") != accept
    assert written.data not in written.topics()


def test_lost_progress_and_lost_output_leave_only_a_new_beginning(written: SinkWorld) -> None:
    witness = written.witness()
    written.delete(written.progress)
    written.delete(written.data)

    verdict = written.decide(witness=witness)

    assert reasons(verdict) == [ProgressReason.PROGRESS_LOST]
    assert [offer.name for offer in verdict.offers] == ["start_over"]
    assert written.start(code(verdict, "start_over"), witness).generation == 2
    assert written.topics() == {written.source, written.data, written.progress}


def alter(sink: SinkWorld, topic: str, **config: str) -> None:
    options = {name.replace("_", "."): value for name, value in config.items()}
    administrator.configure_topic(sink.admin, topic, options)


def empty(sink: SinkWorld) -> None:
    """Do what an accident does: another policy, everything deleted, and the policy put right again."""
    alter(sink, sink.progress, cleanup_policy="delete")
    administrator.remove_records(sink.admin, sink.progress, {0: -1})
    alter(sink, sink.progress, cleanup_policy="compact")


def test_an_emptied_progress_topic_is_refused_without_a_witness(written: SinkWorld) -> None:
    empty(written)

    verdict = written.start()

    primary = f'progress topic "{written.progress}" of sink "{written.name}" was emptied'
    assert_refused(verdict, ProgressReason.PROGRESS_EMPTIED, primary, "start_over")
    assert re.search(
        r"begins at offset \d+ and has no record of this sink: something was here", verdict.detail
    )
    assert written.read(written.progress) == []


def test_an_emptied_progress_topic_is_lost_progress_beside_a_witness(written: SinkWorld) -> None:
    witness = written.witness()
    empty(written)

    verdict = written.start(witness=witness)

    primary = f'progress of sink "{written.name}" is lost'
    assert_refused(verdict, ProgressReason.PROGRESS_LOST, primary, "resume_from_witness", "start_over")


def remove_before(sink: SinkWorld, offset: int) -> None:
    """Remove the oldest records of the progress topic, as a wrong policy does, and repair it as we say."""
    alter(sink, sink.progress, cleanup_policy="compact,delete")
    administrator.remove_records(sink.admin, sink.progress, {0: offset})
    alter(sink, sink.progress, cleanup_policy="compact")


def ends_of(sink: SinkWorld) -> int:
    return sink.observe().progress.high[0]


def test_a_witness_that_knows_more_offsets_is_asked(world: WorldFactory) -> None:
    """The driver's record and that of the first writer are gone, and the epoch is the witness's."""
    sink = world()
    sink.start()
    sink.write(1, writer=partition_writer(0))
    removed = ends_of(sink)
    sink.write(1, writer=partition_writer(1))
    witness = sink.witness()
    remove_before(sink, removed)

    verdict = sink.start(witness=witness)

    assert_refused(
        verdict, ProgressReason.PROGRESS_ROLLED_BACK, f'progress of sink "{sink.name}" was rolled back',
        "resume_from_witness", "start_over",
    )  # fmt: skip
    assert "by the records the source goes on at offsets 0: 0, 1: 10, by the witness at 0: 10, 1: 10" in (
        verdict.detail
    )
    resumed = sink.start(code(verdict, "resume_from_witness"), witness)
    assert (resumed.kind, resumed.positions) == (VerdictKind.RESUME, {0: 10, 1: 10})


def test_a_progress_topic_without_its_driver_was_emptied_in_part(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.write(1, writer=partition_writer(0))
    removed = ends_of(sink)
    sink.write(1, writer=partition_writer(1))
    remove_before(sink, removed)

    verdict = sink.start()

    primary = f'progress topic "{sink.progress}" of sink "{sink.name}" was emptied in part'
    assert_refused(verdict, ProgressReason.PROGRESS_EMPTIED_IN_PART, primary, "start_over")
    assert f'keys ["{sink.name}","driver"]. It begins at offset {removed}' in verdict.detail


def test_a_writer_that_the_driver_names_and_whose_record_is_gone_is_missed(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.write(1, writer=partition_writer(0))
    removed = ends_of(sink)
    sink.start()
    remove_before(sink, removed)

    verdict = sink.start()

    assert reasons(verdict) == [ProgressReason.PROGRESS_EMPTIED_IN_PART]
    assert f'keys ["{sink.name}","p0"]' in verdict.detail


def test_old_records_may_be_removed_while_everything_that_counts_is_there(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    for epoch in (1, 2, 3):
        sink.write(epoch)
    removed = ends_of(sink)
    sink.write(4)
    sink.start()
    remove_before(sink, removed)

    verdict = sink.start(witness=sink.witness())

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 40, 1: 40})


def test_a_deletion_mark_under_our_own_key_is_something_that_was_here(world: WorldFactory) -> None:
    sink = world()
    sink.start()
    sink.put(ProgressKey(sink.name, DRIVER).encode(), None)

    verdict = sink.start()

    assert reasons(verdict) == [ProgressReason.PROGRESS_EMPTIED]
    assert "1 deletion mark in place of" in verdict.detail


def test_a_missing_data_topic_is_refused_once_rows_were_written(written: SinkWorld) -> None:
    was = written.topic_id(written.data)
    written.delete(written.data)

    verdict = written.start()

    primary = f'data topic "{written.data}" is missing, but sink "{written.name}" has written to it'
    assert_refused(verdict, OutputReason.OUTPUT_LOST, primary, "continue_without_output", "start_over")
    assert "records 20 rows through epoch 2 of generation 1" in verdict.detail
    assert was in verdict.detail
    assert written.data not in written.topics()


def test_continue_without_output_makes_the_topic_anew_and_repeats_nothing(written: SinkWorld) -> None:
    written.delete(written.data)

    verdict = written.start(code(written.decide(), "continue_without_output"))

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.RESUME, 1, {0: 20, 1: 20})
    assert written.read(written.data) == []
    assert written.decide().warnings == ()


def test_start_over_after_lost_output_begins_where_the_spec_says(written: SinkWorld) -> None:
    written.delete(written.data)

    verdict = written.start(code(written.decide(), "start_over"))

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.START, 2, None)
    assert written.announced is not None
    assert (written.announced.rows_before, dict(written.announced.to)) == (0, {0: 0, 1: 0})
    assert written.decide().epoch == 0


def test_a_replaced_data_topic_is_refused_once_rows_were_written(written: SinkWorld) -> None:
    was = written.topic_id(written.data)
    written.delete(written.data)
    written.create(written.data)

    verdict = written.start()

    primary = f'data topic "{written.data}" is not the one that sink "{written.name}" has written to'
    assert_refused(verdict, OutputReason.OUTPUT_REPLACED, primary, "adopt", "start_over")
    assert was in verdict.detail
    assert written.topic_id(written.data) in verdict.detail


def test_adopt_takes_the_data_topic_that_is_there(written: SinkWorld) -> None:
    written.delete(written.data)
    written.create(written.data)

    verdict = written.start(code(written.decide(), "adopt"))

    assert (verdict.kind, verdict.positions, verdict.actions) == (VerdictKind.RESUME, {0: 20, 1: 20}, ())
    assert (written.decide().kind, written.decide().warnings) == (VerdictKind.RESUME, ())


def test_start_over_beside_the_old_rows_counts_them(written: SinkWorld) -> None:
    written.delete(written.source)
    written.create(written.source)

    refused = written.decide()
    verdict = written.start(code(refused, "start_over"))

    assert re.search(r"keeps what it holds \(up to 2\d records; this sink wrote 20 rows\)", refused.hint)
    assert (verdict.generation, verdict.rows_before) == (2, 20)
    written.delete(written.data)
    assert reasons(written.decide()) == [OutputReason.OUTPUT_LOST]


def test_a_data_topic_with_fewer_partitions_is_another_one(written: SinkWorld) -> None:
    written.delete(written.data)
    written.create(written.data, partitions=1)

    verdict = written.start()

    assert reasons(verdict) == [OutputReason.OUTPUT_REPLACED]
    assert "2 partitions in cluster" in verdict.detail
    assert "1 partition in cluster" in verdict.detail


def test_a_spec_that_names_another_target_does_not_forget_the_old_one(written: SinkWorld) -> None:
    renamed = f"{written.name}_new"
    written.options = {**written.options, "target": f"dst/{renamed}"}

    verdict = written.start()

    assert reasons(verdict) == [OutputReason.OUTPUT_LOST]
    assert verdict.primary.endswith(f'has written to "{written.data}"')
    assert renamed not in written.topics()


def test_a_replaced_source_topic_is_refused(written: SinkWorld) -> None:
    was = written.topic_id(written.source)
    written.delete(written.source)
    written.create(written.source)
    written.fill(20)

    verdict = written.start()

    primary = f'source topic "{written.source}" is not the one that sink "{written.name}" has read from'
    assert_refused(verdict, SourceReason.SOURCE_REPLACED, primary, "adopt", "start_over")
    assert was in verdict.detail
    assert "old offsets of the new topic, silently: 0: 20, 1: 20" in verdict.detail


def test_adopt_takes_a_source_topic_with_the_same_offsets(written: SinkWorld) -> None:
    written.delete(written.source)
    written.create(written.source)
    written.fill(20)

    verdict = written.start(code(written.decide(), "adopt"))

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 20, 1: 20})
    assert written.decide().kind is VerdictKind.RESUME


def test_a_source_made_anew_and_shorter_cannot_be_adopted(written: SinkWorld) -> None:
    written.delete(written.source)
    written.create(written.source)
    written.fill(20)
    adopt = code(written.decide(), "adopt")
    written.delete(written.source)
    written.create(written.source)
    written.fill(15)

    verdict = written.start(adopt)

    primary = f'source topic "{written.source}" is not the one that sink "{written.name}" has read from'
    assert_refused(verdict, SourceReason.SOURCE_REPLACED, primary, "start_over")


def test_a_source_made_anew_that_begins_behind_the_place_is_adopted_only_with_its_gap(
    written: SinkWorld,
) -> None:
    written.delete(written.source)
    written.create(written.source)
    written.fill(40)
    administrator.remove_records(written.admin, written.source, {0: 25})
    verdict = written.decide()

    assert reasons(verdict) == [SourceReason.SOURCE_REPLACED, SourceReason.RECORDS_REMOVED]
    assert "It does not have offsets 0: 20 to 24 (by source partition), up to 5 records." in verdict.detail
    assert "resume at offsets 0: 25, 1: 20" in verdict.hint
    taken = written.start(code(verdict, "adopt+skip_lost"))
    assert (taken.kind, taken.positions) == (VerdictKind.RESUME, {0: 25, 1: 20})
    assert written.decide().kind is VerdictKind.RESUME


def test_a_source_that_ends_before_the_place_that_was_read_to_is_refused(written: SinkWorld) -> None:
    written.write_beyond(3)

    verdict = written.start()

    primary = f'source topic "{written.source}" ends before the place that sink "{written.name}" has read to'
    assert_refused(verdict, SourceReason.SOURCE_SHORTER, primary, "start_over")
    assert "offsets 0: 20 to 29, 1: 20 to 29" in verdict.detail
    assert f"airflow sinks rewind {written.name} --offsets 0:20,1:20" in verdict.hint
    assert written.start(code(verdict, "start_over")).generation == 2


def test_what_a_running_driver_reads_and_commits_during_a_look_is_no_loss(written: SinkWorld) -> None:
    with SinkObserver(written.spec, written.connections()) as observer:
        look = observer.connector.observe

        def after_another_epoch(source: ResourceFacts) -> Observation:
            written.write(3)
            return look(source)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(observer.connector, "observe", after_another_epoch)
            seen = observer.observe()

    verdict = decide(seen, start_request(written.spec, written.owner))
    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 30, 1: 30})


def test_a_source_in_another_cluster_is_refused(written: SinkWorld, other_broker: KafkaBroker) -> None:
    written.source_broker = other_broker
    written.create(written.source)

    verdict = written.start()

    assert reasons(verdict) == [SourceReason.SOURCE_REPLACED]
    assert len(set(re.findall(r"in cluster (\S+?)[.\s]", verdict.detail))) == 2


def test_a_missing_source_topic_is_refused_until_it_is_there(written: SinkWorld) -> None:
    written.delete(written.source)

    verdict = written.start()

    primary = f'source topic "{written.source}" is missing, but sink "{written.name}" has read from it'
    assert_refused(verdict, SourceReason.SOURCE_LOST, primary)
    assert "Make the topic again" in verdict.hint
    assert written.source not in written.topics()


def test_rolled_back_progress_is_refused(written: SinkWorld) -> None:
    written.write(3)
    newer = written.witness()
    restore_without_newest(written)

    verdict = written.start(witness=newer)

    assert set(reasons(verdict)) == {ProgressReason.PROGRESS_ROLLED_BACK, PlaceReason.PROGRESS_REPLACED}
    assert "records 20 rows through epoch 2" in verdict.detail
    assert "witness knows 30 rows through epoch 3" in verdict.detail
    assert [offer.name for offer in verdict.offers] == ["resume_from_witness", "start_over"]


def restore_without_newest(sink: SinkWorld) -> None:
    """Do what restoring a backup does: make the progress topic again and put its older records back."""
    backup = sink.read(sink.progress)[:-1]
    sink.delete(sink.progress)
    sink.create(sink.progress, partitions=1, **{"cleanup.policy": "compact"})
    for key, value in backup:
        sink.put(key or b"", value)


def test_resume_from_witness_repeats_nothing_after_a_rollback(written: SinkWorld) -> None:
    written.write(3)
    newer = written.witness()
    restore_without_newest(written)

    verdict = written.start(code(written.decide(witness=newer), "resume_from_witness"), newer)

    assert (verdict.kind, verdict.generation, verdict.positions) == (VerdictKind.RESUME, 2, {0: 30, 1: 30})
    assert written.decide(witness=newer).kind is VerdictKind.RESUME


def test_records_copied_to_another_topic_are_refused_even_without_a_witness(written: SinkWorld) -> None:
    restore_without_newest(written)

    verdict = written.start()

    topic, sink = f'progress topic "{written.progress}"', f'sink "{written.name}"'
    primary = f"{topic} is not the one that {sink} has written its progress to"
    assert_refused(verdict, PlaceReason.PROGRESS_REPLACED, primary, "adopt", "start_over")
    assert written.start(code(verdict, "adopt")).positions == {0: 10, 1: 10}


def test_a_sink_of_another_airflow_is_refused(written: SinkWorld) -> None:
    written.owner = "them"

    verdict = written.start()

    primary = f'sink "{written.name}" belongs to another Airflow'
    assert_refused(verdict, OwnerReason.OTHER_OWNER, primary, "take_over")
    assert "records owner us, this Airflow is them" in verdict.detail
    assert written.run in verdict.detail


def test_take_over_makes_this_airflow_the_owner(written: SinkWorld) -> None:
    written.owner = "them"

    verdict = written.start(code(written.decide(), "take_over"))

    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, {0: 20, 1: 20})
    assert written.decide().kind is VerdictKind.RESUME
    written.owner = "us"
    assert reasons(written.decide()) == [OwnerReason.OTHER_OWNER]


def test_garbage_under_our_own_key_is_refused(written: SinkWorld) -> None:
    written.put(ProgressKey(written.name, SINGLE_WRITER).encode(), b"not a record")

    verdict = written.start()

    primary = f'progress of sink "{written.name}" cannot be read'
    assert_refused(verdict, RecordsReason.GARBAGE, primary, "start_over")
    assert f"""key ["{written.name}","all"]: not JSON: b'not a record'""" in verdict.detail


def test_a_progress_topic_that_is_not_compacted_is_refused(written: SinkWorld, broker: KafkaBroker) -> None:
    alter(written, written.progress, cleanup_policy="compact,delete")

    verdict = written.start()

    primary = f'progress topic "{written.progress}" is not exactly compacted'
    assert_refused(verdict, PlaceReason.PROGRESS_UNFIT, primary)
    assert "Found cleanup.policy=compact,delete, must be compact" in verdict.detail
    assert verdict.hint == (
        f"kafka-configs.sh --bootstrap-server {broker.bootstrap} --alter --entity-type topics --entity-name "
        f"{written.progress} --add-config cleanup.policy=compact"
    )
    alter(written, written.progress, cleanup_policy="compact")
    assert written.decide().kind is VerdictKind.RESUME


def test_a_progress_topic_with_two_partitions_is_refused(world: WorldFactory, broker: KafkaBroker) -> None:
    sink = world()
    sink.create(sink.progress, partitions=2, **{"cleanup.policy": "compact"})

    verdict = sink.start()

    assert_refused(verdict, PlaceReason.PROGRESS_UNFIT, f'progress topic "{sink.progress}" has 2 partitions')
    assert (
        f"kafka-topics.sh --bootstrap-server {broker.bootstrap} --delete --topic {sink.progress};"
        in verdict.hint
    )
    assert sink.data not in sink.topics()
    sink.delete(sink.progress)
    assert sink.start().kind is VerdictKind.START


# The dead-letter topic, by its dead letters.


@pytest.fixture
def with_dead_letters(world: WorldFactory) -> SinkWorld:
    """A sink with a dead-letter topic that has started and written rows, but no dead letter."""
    made = world()
    made.options = {"dead_letter": made.dead_letter}
    made.start()
    made.write(1)
    return made


def test_a_dead_letter_topic_without_dead_letters_is_made_again(with_dead_letters: SinkWorld) -> None:
    sink = with_dead_letters
    sink.delete(sink.dead_letter)

    assert sink.created(sink.start()) == {Role.DEAD_LETTER}
    assert sink.dead_letter in sink.topics()


def test_a_dead_letter_topic_with_dead_letters_is_missed(with_dead_letters: SinkWorld) -> None:
    sink = with_dead_letters
    sink.write(2, dead=3)
    sink.delete(sink.dead_letter)

    verdict = sink.start()

    primary = f'dead-letter topic "{sink.dead_letter}" is missing, but sink "{sink.name}" has written to it'
    assert_refused(verdict, OutputReason.OUTPUT_LOST, primary, "continue_without_output", "start_over")
    assert "3 dead letters" in verdict.detail
    assert sink.start(code(verdict, "continue_without_output")).kind is VerdictKind.RESUME
    assert sink.read(sink.dead_letter) == []


def test_a_replaced_dead_letter_topic_is_refused_by_its_dead_letters(with_dead_letters: SinkWorld) -> None:
    sink = with_dead_letters
    sink.write(2, dead=3)
    sink.delete(sink.dead_letter)
    sink.create(sink.dead_letter, partitions=1)

    verdict = sink.start()

    assert reasons(verdict) == [OutputReason.OUTPUT_REPLACED]
    assert verdict.refusals[0].role is Role.DEAD_LETTER
    assert sink.start(code(verdict, "adopt")).kind is VerdictKind.RESUME


def test_looking_and_being_refused_leave_no_trace(written: SinkWorld) -> None:
    written.delete(written.data)
    topics, records = written.topics(), written.read(written.progress)

    for _ in range(3):
        written.decide()

    assert written.topics() == topics
    assert written.read(written.progress) == records


def test_a_connection_that_leads_to_another_cluster_is_told_as_that(
    written: SinkWorld, other_broker: KafkaBroker
) -> None:
    witness = written.witness()
    moved = replace(written, broker=other_broker, source_broker=written.broker)

    verdict = moved.decide(witness=witness)

    primary = f'sink "{written.name}" has written to another cluster'
    assert_refused(verdict, ProgressReason.PROGRESS_LOST, primary, "start_over")
    assert f"in cluster {witness.identities.progress.system}" in verdict.detail
    assert "let it lead to the old cluster again" in verdict.hint
