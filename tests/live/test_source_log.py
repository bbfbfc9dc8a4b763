"""A source that loses records that were read, and gives their offsets to others: it is told."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from airflow_provider_sinks.connectors.kafka.source_topic import SourceTopic
from airflow_provider_sinks.core.decision.reasons.source import SourceReason
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.errors import RefusedError
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.streaming.source_log import SourceLog
from tests.live.lost_records import lose_from
from tests.live.sink_world import SinkWorld

_WHERE_THE_SINK_STANDS = {0: 20, 1: 20}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that may be restarted."""
    with KafkaBroker.start(tmp_path_factory.mktemp("lossy") / "kafka") as running:
        yield running


@pytest.fixture
def written(lossy: KafkaBroker) -> SinkWorld:
    """A sink that has read twenty records of each source partition, in two batches."""
    made = SinkWorld(lossy, f"log_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    made.start()
    made.write(1)
    made.write(2)
    return made


def reasons(verdict: Verdict) -> list[object]:
    return [refusal.reason for refusal in verdict.refusals]


def code(verdict: Verdict, way: str) -> str:
    return next(offer.code for offer in verdict.offers if offer.name == way)


def test_a_source_that_lost_what_was_read_and_is_as_long_again_is_refused(written: SinkWorld) -> None:
    lose_from(written.broker, written.source, {0: 10})
    written.fill(30)

    verdict = written.start()

    assert reasons(verdict) == [SourceReason.SOURCE_REWRITTEN]
    lost = f'source topic "{written.source}" has lost records that sink "{written.name}" has read'
    assert verdict.primary == f"{lost}, and others have their offsets"
    assert "Read were offsets 0: 10 to 19 (by source partition)" in verdict.detail
    assert f"airflow sinks rewind {written.name} --offsets 0:10." in verdict.hint
    assert [offer.name for offer in verdict.offers] == ["adopt", "start_over"]


def test_it_is_read_on_where_a_person_says_so_and_not_asked_about_again(written: SinkWorld) -> None:
    lose_from(written.broker, written.source, {1: 10})
    written.fill(30)
    refused = written.decide()

    verdict = written.start(code(refused, "adopt"))

    assert "what has offsets 1: 10 to 19 now is not read" in verdict.warnings[0]
    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, _WHERE_THE_SINK_STANDS)
    assert written.decide().kind is VerdictKind.RESUME


def test_a_source_that_is_shorter_still_names_the_first_offset_that_others_have(written: SinkWorld) -> None:
    lose_from(written.broker, written.source, {0: 10})
    written.fill(15)

    verdict = written.start()

    assert reasons(verdict) == [SourceReason.SOURCE_SHORTER]
    assert "offsets 0: 10 to 19" in verdict.detail
    assert f"rewind {written.name} --offsets 0:10." in verdict.hint


def test_another_leader_that_has_all_records_stops_nobody(written: SinkWorld) -> None:
    before = written.observe().source.leader_epochs
    lose_from(written.broker, written.source, {})
    written.fill(30)

    verdict = written.start()

    assert written.observe().source.leader_epochs != before
    assert (verdict.kind, verdict.positions) == (VerdictKind.RESUME, _WHERE_THE_SINK_STANDS)


def test_a_loss_behind_the_place_that_was_read_to_stops_nobody(written: SinkWorld) -> None:
    written.fill(30)
    lose_from(written.broker, written.source, {0: 20, 1: 20})
    written.fill(40)

    assert written.start().positions == _WHERE_THE_SINK_STANDS


def test_records_of_a_release_that_named_no_leader_epoch_are_gone_on_from(lossy: KafkaBroker) -> None:
    made = SinkWorld(lossy, f"old_{uuid.uuid4().hex[:8]}")
    made.create(made.source)
    made.start()
    made.write(1, leader_epochs={})
    lose_from(lossy, made.source, {})

    assert made.start().positions == {0: 10, 1: 10}


def test_a_loss_under_a_running_sink_stops_it_before_the_next_epoch(written: SinkWorld) -> None:
    source = SourceTopic(written.kafka_options(), written.source)
    log = SourceLog(source, written.source, written.observe().source.ends)
    lose_from(written.broker, written.source, {1: 10})
    written.fill(30)

    with pytest.raises(RefusedError, match="has lost records while the sink ran") as refused:
        log.leader_epochs({0: 20, 1: 20}, {0: 30, 1: 30})

    assert "offsets 1: 10 to 19" in refused.value.detail


def test_a_running_sink_records_the_leader_epoch_that_reaches_its_range(written: SinkWorld) -> None:
    source = SourceTopic(written.kafka_options(), written.source)
    before = written.observe().source
    log = SourceLog(source, written.source, before.ends)
    lose_from(written.broker, written.source, {})
    written.fill(30)
    now = written.observe().source

    assert log.leader_epochs({0: 10, 1: 10}, {0: 20, 1: 20}) == before.leader_epochs
    assert log.leader_epochs({0: 20, 1: 20}, {0: 30, 1: 30}) == now.leader_epochs
    assert now.leader_epochs != before.leader_epochs
