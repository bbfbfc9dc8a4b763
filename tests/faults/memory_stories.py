"""Stories of what is remembered: progress that a wrong policy removes, a driver that wakes up late."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.connectors.postgres.spec import Mode
from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.spec.sink import Writers
from tests import administrator
from tests.faults import topics
from tests.faults.campaign import Story
from tests.faults.driver import Driver
from tests.faults.history import History, refusal_of
from tests.faults.outcome import Outcome
from tests.faults.phases import DRIVER
from tests.faults.stories import row_wise, row_wise_table
from tests.faults.world import World

_EPOCHS_BEHIND = 0.5


@dataclass(frozen=True)
class Remembered:
    """What a story of this file ends with.

    :param outcome: what the reader found.
    :param told: what the disturbed starts or drivers said, once for each round.
    """

    outcome: Outcome
    told: tuple[str, ...]

    def __str__(self) -> str:
        rounds = f"{len(self.told)} rounds in {self.outcome.seconds:.0f} s"
        said = "; ".join(sorted(set(self.told)))
        return "\n    ".join(
            [f"{rounds}: {said}", str(self.outcome.verdict), f"vanished {self.outcome.vanished}"]
        )


def removed_story(world: World, _wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """All records but the last are removed from the progress topic, and the checkpoint is lost."""
    with row_wise(world, Writers.PER_PARTITION) as history:
        started, told = time.monotonic(), []
        for _ in range(world.rounds):
            history.rest()
            history.stop()
            _remove_all_but_the_last(world, kafka_sink(history.sink.parsed).progress_topic)
            history.between.lose_checkpoints()
            refused = refusal_of(history.sink.start())
            told.append(_without_names(refused.primary))
            code = re.search(r'accept="(resume_from_witness-\w+)"', refused.hint)
            assert code, refused.hint
            history.driver = history.sink.start(accept=code[1])
        history.rest()
        yield "all but the last record", Remembered(history.judged(started), tuple(told))


def zombie_story(world: World, _wanted: Collection[str]) -> Iterator[tuple[str, object]]:
    """The successor of a frozen driver runs under another prefix."""
    with row_wise(world, Writers.PER_PARTITION) as history:
        prefixes = ({"transactional_id_prefix": f"prefix{number}"} for number in range(world.rounds))
        yield "another prefix", _zombies(history, prefixes)


def table_zombie_story(world: World, _wanted: Collection[str], mode: Mode) -> Iterator[tuple[str, object]]:
    """The same with a table, to which a prefix says nothing."""
    with world.with_own_postgres(f"zombie {mode}") as own, row_wise_table(own, mode) as history:
        yield "zombie", _zombies(history, ({} for _ in range(world.rounds)))


def _zombies(history: History, changes: Iterable[Mapping[str, str]]) -> Remembered:
    """Freeze a driver with a transaction open, and wake it when its successor runs.

    :param changes: of the spec, for each successor.
    """
    started, told = time.monotonic(), []
    for number, change in enumerate(changes):
        frozen = history.running(DRIVER)
        history.wait_for_open_transaction(frozen)
        frozen.signal(signal.SIGSTOP)
        history.driver = None
        history.sink.spec = {**history.sink.spec, **change}
        successor = history.running(DRIVER)
        successor.wait_until(lambda now=successor: now.in_state(SinkState.RUNNING))  # type: ignore[misc]
        time.sleep(history.world.random(f"zombie {number}").uniform(0, _EPOCHS_BEHIND))
        frozen.signal(signal.SIGCONT)
        told.append(_end_of(frozen))
        history.rest()
    return Remembered(history.judged(started), tuple(told))


STORIES: dict[str, Story] = {
    "removed progress": removed_story,
    "zombie": zombie_story,
    "Postgres, append, woken": partial(table_zombie_story, mode=Mode.APPEND),
    "Postgres, upsert, woken": partial(table_zombie_story, mode=Mode.UPSERT),
}


def _end_of(woken: Driver) -> str:
    code, status = woken.wait(), woken.status
    assert status is not None
    assert code == ExitCode.FENCED, f"exit code {code}: {status.one_line()}\n{woken.log[-4000:]}"
    return _without_names(status.one_line())


def _without_names(text: str) -> str:
    return re.sub(r'"(pytest_faults_|_sinks-progress-)?(\w+)-[^"]*"', r'"\2"', text)


def _remove_all_but_the_last(world: World, topic: str) -> None:
    """Do what a wrong policy does, and then what our own hint says."""
    admin = topics.admin_client(tuple(world.client.items()))
    last = topics.read(world.client, topic)[-1].offset
    administrator.configure_topic(admin, topic, {"cleanup.policy": "compact,delete"})
    administrator.remove_records(admin, topic, {0: last})
    administrator.configure_topic(admin, topic, {"cleanup.policy": "compact"})
