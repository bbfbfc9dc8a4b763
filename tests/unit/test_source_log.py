"""What a running sink asks of the log of its source, and how often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from airflow_provider_sinks.connectors.source import SinkSource
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.progress.log_place import LogPlace
from airflow_provider_sinks.streaming.source_log import SourceLog


class PlayedSource:
    """A source whose one partition ends somewhere, and loses nothing."""

    def __init__(self, end: LogPlace | None) -> None:
        self.end = end
        self.asked: list[Mapping[int, LogPlace]] = []

    def ends(self, _: Iterable[int]) -> Mapping[int, LogPlace]:
        if self.end is None:
            raise UnavailableError("no answer")
        return {0: self.end}

    def kept(self, places: Mapping[int, LogPlace]) -> Mapping[int, int]:
        self.asked.append(dict(places))
        return {}


def log_of(source: PlayedSource, seen: LogPlace) -> SourceLog:
    return SourceLog(cast("SinkSource", source), "orders-in", {0: seen})


def test_a_range_that_the_log_was_seen_to_reach_asks_nobody() -> None:
    source = PlayedSource(None)

    assert log_of(source, LogPlace(50, 3)).leader_epochs({0: 40}, {0: 50}) == {0: 3}


def test_the_same_leader_is_asked_for_its_end_alone() -> None:
    source = PlayedSource(LogPlace(60, 3))

    assert log_of(source, LogPlace(50, 3)).leader_epochs({0: 50}, {0: 60}) == {0: 3}
    assert source.asked == [{}]


def test_another_leader_is_asked_about_what_was_read_under_the_one_before() -> None:
    source = PlayedSource(LogPlace(90, 5))

    assert log_of(source, LogPlace(50, 3)).leader_epochs({0: 50}, {0: 60}) == {0: 5}
    assert source.asked == [{0: LogPlace(50, 3)}]


def test_brokers_that_do_not_answer_leave_the_leader_unnamed_and_stop_nobody() -> None:
    source = PlayedSource(None)
    log = log_of(source, LogPlace(50, 3))

    assert log.leader_epochs({0: 50}, {0: 60}) == {}
    source.end = LogPlace(70, 4)
    assert log.leader_epochs({0: 60}, {0: 70}) == {0: 4}
    assert source.asked == [{0: LogPlace(60, 3)}]
