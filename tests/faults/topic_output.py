"""A data topic, judged with the progress topic beside it."""

from __future__ import annotations

import json

from airflow_provider_sinks.connectors.kafka.spec import KafkaSink
from tests.faults import checker, topics
from tests.faults.feed import Feed
from tests.faults.outcome import Outcome, identify, judge_windows, rows_of_epochs, window_changes
from tests.faults.parts import Part
from tests.faults.topics import Onlooker
from tests.faults.world import World


class TopicOutput:
    """See :class:`.outputs.Output`."""

    def __init__(self, world: World, spec: KafkaSink) -> None:
        self._world = world
        self._spec = spec
        self._topic = spec.target.kafka.topic
        self._partitions = spec.target.kafka.partitions or 1

    def make(self) -> None:
        self._world.create_topic(self._topic, self._partitions)
        self._onlooker = Onlooker(self._world.client, self._topic, self._partitions)
        self._onlooker.__enter__()

    def close(self) -> None:
        self._onlooker.__exit__()

    def has_open_transaction(self) -> bool:
        return topics.has_open_transaction(self._world.client, self._topic)

    def left_behind(self) -> int:
        return topics.unfinished_rows(self._world.client, self._topic)

    def kill(self, part: Part) -> bool:
        raise AssertionError(f"all stories share the broker: its {part.value} is not killed")

    def examine(self, feed: Feed) -> Outcome:
        output = topics.read(self._world.client, self._topic)
        everything = topics.read(self._world.client, self._topic, topics.UNCOMMITTED)
        history = topics.read_progress(self._world.client, self._spec.progress_topic)
        stateful, located = self._spec.shape.stateful, feed.located()
        expected = window_changes(located) if stateful else rows_of_epochs(located)
        is_whole = self._partitions == 1
        return Outcome(
            verdict=judge_windows(output, feed.rows) if stateful else checker.judge(output, feed.rows),
            aborted=len(everything) - len(output),
            epochs=len({record.epoch for _, record in history}),
            torn=tuple(checker.torn(output, history, expected, identify)) if is_whole else (),
            regressions=tuple(checker.regressions(history)),
            vanished=len(self._onlooker.seen.copy() - set(output)),
            versions=len({json.loads(record.value or b"{}").get("version") for record in output}),
        )
