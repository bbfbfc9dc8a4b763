"""The contract that every connector keeps: one set of tests for all of them, and for your own.

A file of a few lines runs it::

    from airflow_provider_sinks.testing.connector_contract import ExecutorCommits, Harness

    class MyHarness(Harness):
        ...

    class TestMyConnector(ExecutorCommits):  # or DriverCommits
        @pytest.fixture
        def harness(self):
            return MyHarness()

Each test ends in the same question: is every row visible exactly once, and does the progress say so? It uses
nothing of the connector but :mod:`airflow_provider_sinks.connectors.base`. pytest must be installed.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from airflow_provider_sinks.connectors.base import CommitsOn, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, LostStageError, Token
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from airflow_provider_sinks.testing.played_start import (
    CALLS,
    SOURCE,
    WRITERS,
    Harness,
    PlayedStart,
    PlayedTask,
    ends,
    rows_of,
)

__all__ = ["DriverCommits", "ExecutorCommits", "Harness"]

FIRST = {0: range(20), 1: range(10)}
SECOND = {0: range(20, 50), 1: range(10, 16)}
THIRD = {0: range(50, 60), 1: range(16, 20)}
BEFORE_COMMIT = CALLS[:-1]
OPENED = CALLS[1:-1]


class ConnectorContract(ABC):
    """What holds for every target, whoever commits."""

    in_one_process = False
    """The target lives in this process, so no factory can travel to another."""

    @pytest.fixture
    @abstractmethod
    def harness(self) -> Harness:
        """Return a harness with nothing in its target yet."""

    @pytest.fixture(autouse=True)
    def _close_what_is_left(self, harness: Harness) -> Iterator[None]:
        yield
        for left in harness.made:
            left.close()

    # ---- a start

    def test_a_look_makes_nothing(self, harness: Harness) -> None:
        connector = harness.connector()
        for _ in range(2):
            seen = connector.observe(SOURCE)
            assert {seen.data.existence, seen.progress.existence} == {Existence.MISSING}
            assert seen.history is not None  # it could be read: there is nothing
            assert not seen.history
        connector.close()

    def test_what_is_ensured_is_there_and_stays_the_same_when_ensured_again(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        before = start.connector.identify()
        for creation in harness.creations():
            start.connector.ensure(creation.for_source(SOURCE))
        assert {facts.existence for facts in before.values()} == {Existence.PRESENT}
        assert start.connector.identify() == before
        assert all(facts.id and facts.system for facts in before.values())

    def test_a_start_announces_itself_and_may_say_so_twice(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.connector.announce(start.announcement)
        found = start.connector.progress()
        assert set(found.records) == {DRIVER}
        assert found.driver is not None
        assert (found.driver.run, found.driver.writers) == (start.run.id, start.announcement.writers)

    def test_a_connector_tells_how_it_does_and_closes_twice(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        assert start.connector.health_check().is_well
        assert start.connector.suggested_timeout().total_seconds() > 0
        dict(start.connector.metrics())
        start.connector.close()
        start.connector.close()

    def test_a_factory_travels_to_executors(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        if not self.in_one_process:
            start.factory = pickle.loads(pickle.dumps(start.factory))  # noqa: S301  our own bytes
        start.epoch(1, FIRST)
        assert_exact(harness, start.connector, 1, FIRST)

    # ---- epochs

    def test_rows_and_progress_become_visible_together(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        tasks = [PlayedTask(start, 1, partition, FIRST).go_on(until="flush") for partition in FIRST]
        assert start.connector.progress().epoch == 0
        for task in tasks:
            task.go_on(until="pre_commit")
        assert harness.visible() == []
        for task in tasks:
            task.go_on()
        start.commit(1, FIRST, [task.token for task in tasks if task.token])
        assert_exact(harness, start.connector, 1, FIRST)

    def test_epochs_follow_each_other_by_kept_writers(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        first = PlayedTask(start, 2, 0, SECOND).go_on()
        other = PlayedTask(start, 2, 1, SECOND).go_on()
        start.commit(2, SECOND, [task.token for task in (first, other) if task.token])
        again = [
            PlayedTask(start, 3, task.partition, THIRD, kept=task.writer).go_on() for task in (first, other)
        ]
        start.commit(3, THIRD, [task.token for task in again if task.token])
        assert_exact(harness, start.connector, 3, FIRST, SECOND, THIRD)

    def test_an_epoch_that_is_committed_is_not_written_again(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        start.epoch(1, FIRST)
        PlayedStart(harness).start().epoch(1, FIRST)
        assert_exact(harness, start.connector, 1, FIRST)

    def test_an_epoch_without_a_row_is_known_by_the_drivers_record(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        start.connector.announce(start.record(2, ends(FIRST), ends(FIRST), writers=WRITERS))
        start.epoch(3, SECOND)
        assert_exact(harness, start.connector, 3, FIRST, SECOND)

    def test_what_is_set_aside_becomes_visible_with_the_rows(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        task = PlayedTask(start, 1, 0, FIRST, bad=[3, 15]).go_on(until="pre_commit")
        assert harness.set_aside() == []
        assert (task.written.rows, task.written.dead) == (18, 2)
        task.go_on()
        start.commit(1, FIRST, [task.token] if task.token else [])
        assert harness.set_aside() == [(0, 3), (0, 15)]
        assert harness.visible() == [(0, at) for at in FIRST[0] if at not in (3, 15)]

    def test_sinks_that_share_a_progress_place_do_not_meet(self, harness: Harness) -> None:
        ours, other = PlayedStart(harness).start(), PlayedStart(harness, sink="other").start()
        ours.epoch(1, FIRST)
        other.epoch(1, SECOND)
        PlayedStart(harness, sink="other").start().epoch(2, THIRD)
        ours.epoch(2, SECOND)
        assert_exact(harness, ours.connector, 2, FIRST, SECOND)
        assert harness.visible("other") == rows_of(SECOND, THIRD)

    def test_the_guard_and_the_status_ask_while_epochs_are_committed(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        before, is_over = identities(start.connector), threading.Event()

        def ask() -> int:
            asked = 0
            while not is_over.is_set() or not asked:
                start.connector.demand_in_force()
                assert identities(start.connector) == before
                assert start.connector.health_check().is_well
                asked += 1
            return asked

        with ThreadPoolExecutor(2) as others:
            asking = [others.submit(ask) for _ in range(2)]
            for epoch in range(1, 6):
                start.epoch(epoch, {0: range(10 * epoch - 10, 10 * epoch)})
            is_over.set()
            assert all(one.result() for one in asking)
        assert harness.visible() == rows_of({0: range(50)})

    # ---- what goes wrong in a task

    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.parametrize("successor", ["task", "start"])
    def test_a_writer_killed_behind_any_call(self, harness: Harness, call: str, successor: str) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        killed = PlayedTask(start, 2, 0, SECOND).go_on(until=call)
        harness.kill(killed.writer)
        start = start if successor == "task" else PlayedStart(harness).start()
        start.epoch(2, SECOND)
        assert_exact(harness, start.connector, 2, FIRST, SECOND)
        start.epoch(3, THIRD)
        assert_exact(harness, start.connector, 3, FIRST, SECOND, THIRD)

    @pytest.mark.parametrize("call", OPENED)
    def test_a_writer_whose_id_was_taken_commits_nothing(self, harness: Harness, call: str) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        frozen = PlayedTask(start, 2, 0, SECOND).go_on(until=call)
        start.epoch(2, SECOND)
        failed = self._wake(frozen)
        assert failed.retryable or start.commits_on_driver, "a twin of a task must not end the driver"
        start.epoch(2, SECOND)
        start.epoch(3, THIRD)
        assert_exact(harness, start.connector, 3, FIRST, SECOND, THIRD)

    def test_a_prepared_writer_fences_nobody(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        task = PlayedTask(start, 1, 0, FIRST).go_on(until="write_batch")
        wrong_guess = PlayedTask(start, 1, 0, FIRST).go_on(until="prepare")
        task.go_on()
        wrong_guess.writer.close()
        start.commit(1, FIRST, [task.token] if task.token else [])
        assert harness.visible() == rows_of({0: FIRST[0]})

    @pytest.mark.parametrize("call", ["write_batch", "flush", "pre_commit"])
    def test_what_is_rolled_back_leaves_nothing(self, harness: Harness, call: str) -> None:
        start = PlayedStart(harness).start()
        task = PlayedTask(start, 1, 0, FIRST).go_on(until=call)
        give_up(task)
        start.epoch(1, FIRST)
        assert_exact(harness, start.connector, 1, FIRST)

    def test_a_rollback_behind_a_commit_undoes_nothing(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        tasks = [PlayedTask(start, 1, partition, FIRST).go_on() for partition in FIRST]
        tokens = [task.token for task in tasks if task.token]
        start.commit(1, FIRST, tokens)
        start.connector.rollback_epoch(tokens)
        for task in tasks:
            give_up(task)
        assert_exact(harness, start.connector, 1, FIRST)

    def test_a_commit_whose_answer_was_lost_is_known_by_the_progress(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        self._lose(harness, start, happens=True)
        start.epoch(2, SECOND)
        assert_exact(harness, start.connector, 2, FIRST, SECOND)

    def test_a_commit_that_was_lost_is_known_by_the_progress(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        self._lose(harness, start, happens=False)
        start.epoch(2, SECOND)
        assert_exact(harness, start.connector, 2, FIRST, SECOND)

    # ---- newer starts

    @pytest.mark.parametrize("call", BEFORE_COMMIT)
    @pytest.mark.parametrize("announced", [False, True], ids=["opened", "announced"])
    def test_a_newer_start_fences_the_writers_of_the_older(
        self, harness: Harness, call: str, announced: bool
    ) -> None:
        older = PlayedStart(harness).start()
        older.epoch(1, FIRST)
        frozen = PlayedTask(older, 2, 0, SECOND).go_on(until=call)
        newer = PlayedStart(harness).open()
        if announced:
            newer.announce()
        self._wake(frozen)
        if not announced:
            newer.announce()
        newer.epoch(2, SECOND)
        self._wake(PlayedTask(older, 3, 1, THIRD))
        assert_exact(harness, newer.connector, 2, FIRST, SECOND)

    @pytest.mark.parametrize("announced", [False, True], ids=["opened", "announced"])
    def test_a_newer_start_fences_the_driver_of_the_older(self, harness: Harness, announced: bool) -> None:
        older = PlayedStart(harness).start()
        older.epoch(1, FIRST)
        newer = PlayedStart(harness).open()
        if announced:
            newer.announce()
        with pytest.raises(SinkError):
            older.connector.announce(older.record(2, ends(FIRST), ends(FIRST), writers=WRITERS))
        if not announced:
            newer.announce()
        with pytest.raises(FencedError):
            older.connector.demand_in_force()
        newer.connector.demand_in_force()
        assert_exact(harness, newer.connector, 1, FIRST)

    def test_of_two_starts_at_once_the_one_that_opened_last_goes_on(self, harness: Harness) -> None:
        PlayedStart(harness).start().epoch(1, FIRST)
        first, second = PlayedStart(harness).open(), PlayedStart(harness).open()
        with pytest.raises(SinkError):
            first.announce()
        second.announce().epoch(2, SECOND)
        assert_exact(harness, second.connector, 2, FIRST, SECOND)

    def test_of_two_first_starts_at_most_one_goes_on(self, harness: Harness) -> None:
        started = []
        for start in [PlayedStart(harness).open(), PlayedStart(harness).open()]:
            with contextlib.suppress(SinkError):
                started.append(start.announce())
        for start in started:
            with contextlib.suppress(SinkError):
                start.epoch(1, FIRST)
        assert len(started) >= 1
        assert_exact(harness, started[0].connector, 1, FIRST)

    def test_opening_again_for_more_writers_does_not_win_the_sink_back(self, harness: Harness) -> None:
        older = PlayedStart(harness).start()
        newer = PlayedStart(harness).start()
        with contextlib.suppress(SinkError):
            older.connector.open(older.run, [*WRITERS, "p2"], older.connector.observe(SOURCE))
        newer.epoch(1, FIRST)
        self._wake(PlayedTask(older, 1, 0, FIRST))
        assert_exact(harness, newer.connector, 1, FIRST)

    def test_a_new_generation_begins_with_no_record_of_the_older(self, harness: Harness) -> None:
        older = PlayedStart(harness).start()
        older.epoch(1, FIRST)
        frozen = PlayedTask(older, 2, 0, SECOND).go_on(until="write_batch")
        newer = PlayedStart(harness, generation=2).start()
        task = PlayedTask(newer, 1, 0, SECOND).go_on(until="open")
        assert task.writer.last is None
        give_up(task)
        newer.epoch(1, SECOND)
        self._wake(frozen)
        history = newer.connector.progress()
        assert (history.generation, history.epoch, history.rows_total) == (2, 1, len(rows_of(SECOND)))
        assert harness.visible() == rows_of(FIRST, SECOND)

    # ---- a reset

    @pytest.mark.parametrize("act", [EmptyOutput, DeleteOutput])
    @pytest.mark.parametrize("role", [Role.DATA, Role.DEAD_LETTER])
    def test_a_reset_that_wakes_behind_a_newer_start_takes_nothing_away(
        self, harness: Harness, role: Role, act: type[EmptyOutput | DeleteOutput]
    ) -> None:
        PlayedStart(harness).start().epoch(1, FIRST, bad=[3])
        late = PlayedStart(harness).start()
        step = act("output", late.connector.observe(SOURCE).resources()[role])
        newer = PlayedStart(harness).start()
        newer.epoch(2, SECOND, bad=[25])
        before = harness.visible(), harness.set_aside()
        with pytest.raises(FencedError):
            late.connector.reset(step)
        assert (harness.visible(), harness.set_aside()) == before
        newer.epoch(3, THIRD)
        assert harness.visible() == sorted({*before[0], *rows_of(THIRD)})

    @pytest.mark.parametrize("role", [Role.DATA, Role.DEAD_LETTER])
    def test_the_run_in_force_empties_an_output_and_may_say_so_twice(
        self, harness: Harness, role: Role
    ) -> None:
        PlayedStart(harness).start().epoch(1, FIRST, bad=[3])
        start = PlayedStart(harness).start()
        step = EmptyOutput("output", start.connector.observe(SOURCE).resources()[role])
        for _ in range(2):
            start.connector.reset(step)
        left = {Role.DATA: harness.visible(), Role.DEAD_LETTER: harness.set_aside()}
        assert {kept for kept, rows in left.items() if rows} == {Role.DATA, Role.DEAD_LETTER} - {role}

    def test_a_drop_which_announces_nothing_deletes_outputs_behind_its_fence(self, harness: Harness) -> None:
        PlayedStart(harness).start().epoch(1, FIRST, bad=[3])
        connector = PlayedStart(harness).open().connector
        seen = connector.observe(SOURCE).resources()
        for role in (Role.DATA, Role.DEAD_LETTER):
            connector.reset(DeleteOutput("output", seen[role]))
        left = connector.identify()
        assert {left[role].existence for role in (Role.DATA, Role.DEAD_LETTER)} == {Existence.MISSING}

    # ---- helpers

    def _lose(self, harness: Harness, start: PlayedStart, *, happens: bool) -> None:
        """Lose a commit of epoch 2, or its answer, and see that nobody takes it for done or for failed."""
        tasks = [PlayedTask(start, 2, partition, SECOND) for partition in SECOND]
        loses = harness.losing_answers() if happens else harness.losing_commits()
        if start.commits_on_driver:
            for task in tasks:
                task.go_on()
            with loses, pytest.raises(InDoubtError):
                start.commit(2, SECOND, [task.token for task in tasks if task.token])
            assert harness.visible() == (rows_of(FIRST, SECOND) if happens else rows_of(FIRST))
            record = start.record(2, {0: 20, 1: 10}, ends(SECOND), rows=36, rows_total=start.rows_total + 36)
            found = start.connector.progress().newest
            assert (found is not None and replace(found, at=record.at) == record) is happens
            return
        *others, lost = tasks
        for task in others:
            task.go_on()
        lost.go_on(until="pre_commit")
        with loses, pytest.raises(InDoubtError):
            lost.go_on()
        give_up(lost)
        done = tasks if happens else others
        assert harness.visible() == rows_of(FIRST, {task.partition: SECOND[task.partition] for task in done})
        for task in tasks:
            opened = PlayedTask(start, 2, task.partition, SECOND).go_on(until="open")
            assert (opened.writer.last == task.record) is (task in done)
            give_up(opened)

    def _wake(self, frozen: PlayedTask) -> SinkError:
        """Let a task go on that was overtaken: it may fail at any call, and must before it commits."""
        with pytest.raises(SinkError) as failed:
            frozen.go_on_alone()
        give_up(frozen)
        return failed.value


class ExecutorCommits(ConnectorContract):
    """The contract of a target whose writers commit. Subclass it, and give it a harness."""

    def test_it_says_that_executors_commit(self, harness: Harness) -> None:
        assert harness.connector().capabilities().commits_on is CommitsOn.EXECUTOR

    def test_a_holder_id_changes_with_each_commit(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        first = PlayedTask(start, 1, 0, FIRST).go_on(until="open")
        opened = first.writer.holder_id
        assert opened
        first.go_on()
        assert first.writer.holder_id not in ("", opened)
        assert first.writer.last == first.record

    def test_a_long_range_is_committed_in_steps(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        step = {0: range(10), 1: range(10)}
        first = PlayedTask(start, 1, 0, step).go_on()
        late = PlayedTask(start, 1, 0, {**step, 0: range(10, 20)}, kept=first.writer)
        rival = PlayedTask(start, 1, 0, {**step, 0: range(10, 20)}).go_on(until="write_batch")
        with pytest.raises(SinkError):
            late.go_on()
        give_up(late)
        rival.go_on()
        assert harness.visible() == [(0, at) for at in FIRST[0]]

    def test_of_two_writers_of_one_id_the_one_that_opened_last_commits(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        older, newer = (PlayedTask(start, 1, 0, FIRST).go_on(until="prepare") for _ in range(2))
        older.go_on(until="open")
        newer.go_on(until="open")
        with pytest.raises(SinkError):
            older.go_on()
        give_up(older)
        newer.go_on()
        assert harness.visible() == rows_of({0: FIRST[0]})


class DriverCommits(ConnectorContract):
    """The contract of a target whose driver commits tokens. Subclass it, and give it a harness."""

    def test_it_says_that_the_driver_commits(self, harness: Harness) -> None:
        assert harness.connector().capabilities().commits_on is CommitsOn.DRIVER

    def test_only_the_rows_of_the_tokens_become_visible_and_only_once(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        failed = PlayedTask(start, 1, 0, FIRST).go_on()
        tasks = [PlayedTask(start, 1, partition, FIRST).go_on() for partition in FIRST]
        tokens = [task.token for task in tasks if task.token]
        record = start.commit(1, FIRST, tokens)
        start.connector.commit_epoch(record, tokens)
        assert failed.token not in tokens
        assert_exact(harness, start.connector, 1, FIRST)

    @pytest.mark.parametrize("happens", [True, False])
    def test_a_commit_that_is_repeated_behind_a_doubt_loses_nothing_that_was_set_aside(
        self, harness: Harness, happens: bool
    ) -> None:
        start = PlayedStart(harness).start()
        task = PlayedTask(start, 1, 0, {0: range(5)}, bad=[3]).go_on()
        assert task.token
        record = start.record(1, {0: 0}, {0: 5}, rows=4, rows_total=4, dead_total=1)
        with harness.losing_answers() if happens else harness.losing_commits(), pytest.raises(InDoubtError):
            start.connector.commit_epoch(record, [task.token])
        start.connector.commit_epoch(record, [task.token])
        assert (harness.visible(), harness.set_aside()) == ([(0, at) for at in (0, 1, 2, 4)], [(0, 3)])
        start.epoch(2, {0: range(5, 10)}, bad=[7])
        assert harness.set_aside() == [(0, 3), (0, 7)]

    def test_the_record_of_an_epoch_stands_beside_the_drivers_own(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        again = PlayedStart(harness).start()
        found = again.connector.progress().records
        assert set(found) == {DRIVER, SINGLE_WRITER}
        assert (found[SINGLE_WRITER].run, found[DRIVER].run) == (start.run.id, again.run.id)
        assert (found[SINGLE_WRITER].from_, found[SINGLE_WRITER].to) == ({0: 0, 1: 0}, ends(FIRST))

    def test_tokens_of_an_older_start_are_refused(self, harness: Harness) -> None:
        older = PlayedStart(harness).start()
        tasks = [PlayedTask(older, 1, partition, FIRST).go_on() for partition in FIRST]
        newer = PlayedStart(harness).open()
        with pytest.raises(FencedError):
            older.commit(1, FIRST, [task.token for task in tasks if task.token])
        newer.announce().epoch(1, FIRST)
        assert_exact(harness, newer.connector, 1, FIRST)

    def test_a_start_that_was_overtaken_sweeps_nothing_of_the_newer(self, harness: Harness) -> None:
        older, newer = PlayedStart(harness).start(), PlayedStart(harness).start()
        tasks = [PlayedTask(newer, 1, partition, FIRST).go_on() for partition in FIRST]
        with contextlib.suppress(SinkError):
            older.connector.sweep()
        newer.commit(1, FIRST, [task.token for task in tasks if task.token])
        assert_exact(harness, newer.connector, 1, FIRST)

    def test_an_epoch_that_does_not_follow_the_newest_is_refused(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        start.epoch(1, FIRST)
        task = PlayedTask(start, 3, 0, SECOND).go_on()
        assert task.token
        for number in (1, 3):  # of the second the target may know that it was rolled back
            with pytest.raises((FencedError, RefusedError)):
                start.commit(number, SECOND, [task.token])
        assert_exact(harness, start.connector, 1, FIRST)

    def test_a_token_whose_rows_are_gone_is_told(self, harness: Harness) -> None:
        start = PlayedStart(harness).start()
        task = PlayedTask(start, 1, 0, FIRST).go_on()
        assert task.token
        start.connector.rollback_epoch([task.token])
        for token in (task.token, Token("p0", uuid.uuid4().hex, 1)):
            with pytest.raises(LostStageError):
                start.commit(1, FIRST, [token])
        start.epoch(1, FIRST)
        assert_exact(harness, start.connector, 1, FIRST)


def identities(connector: SinkConnector) -> dict[Role, Identity]:
    """Return which resources these are, as the guard compares them."""
    return {role: facts.identity for role, facts in connector.identify().items()}


def give_up(task: PlayedTask) -> None:
    """Do what the runtime does behind an exception, twice: both calls are idempotent and raise nothing."""
    for _ in range(2):
        task.writer.rollback_epoch()
        task.writer.close()


def assert_exact(harness: Harness, connector: SinkConnector, epoch: int, *epochs: dict[int, range]) -> None:
    """Fail unless every row of these epochs is visible exactly once, and the progress says just that."""
    expected, history = rows_of(*epochs), connector.progress()
    assert harness.visible() == expected
    assert (history.epoch, history.rows_total, history.flaws) == (epoch, len(expected), ())
    assert history.epoch_ends() == ends(epochs[-1])
