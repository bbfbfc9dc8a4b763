"""What the driver does with what tasks staged: commit once, ask after a doubt, write again what is gone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_sinks.connectors.base import CommitsOn
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError, Token
from airflow_provider_sinks.connectors.memory.store import Slot
from airflow_provider_sinks.core.dead_letters.limits import SetAsideLimits
from airflow_provider_sinks.core.decision.facts import ResourceFacts, Role
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, UnavailableError
from airflow_provider_sinks.core.progress.record import SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.streaming import patience
from airflow_provider_sinks.streaming.account import Account
from airflow_provider_sinks.streaming.driver_share import DriverShare
from airflow_provider_sinks.streaming.epoch_action import EpochAction
from airflow_provider_sinks.streaming.epoch_settings import EpochSettings
from airflow_provider_sinks.streaming.epoch_tasks import RowTasks
from airflow_provider_sinks.streaming.epochs import Epochs
from airflow_provider_sinks.streaming.guard import Guard
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.staged_commit import commit_staged
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport
from airflow_provider_sinks.testing.played_start import SOURCE, PlayedStart, PlayedTask, begins, ends, rows_of
from tests.contract.memory_harness import FlakyStore, MemoryHarness

FIRST = {0: range(20), 1: range(10)}


class LosesOnce(FlakyStore):
    """:param happens: whether the commit happened whose answer is lost."""

    def __init__(self, *, happens: bool) -> None:
        super().__init__()
        self._happens = happens
        self.attempts = 0

    def commit(self, *arguments: Any) -> Slot:
        if arguments[1] != SINGLE_WRITER:
            return super().commit(*arguments)
        self.attempts += 1
        if self.attempts > 1:
            return super().commit(*arguments)
        if self._happens:
            super().commit(*arguments)
        raise InDoubtError("no answer")


def staged(store: FlakyStore) -> tuple[MemoryHarness, PlayedStart, ProgressRecord, list[Token]]:
    """Return a start whose tasks have staged the rows of its first epoch."""
    harness = MemoryHarness(CommitsOn.DRIVER, store)
    start = PlayedStart(harness).start()
    tokens = [PlayedTask(start, 1, partition, FIRST).go_on().token for partition in FIRST]
    rows = len(rows_of(FIRST))
    record = start.record(1, begins(FIRST), ends(FIRST), rows=rows, rows_total=rows)
    return harness, start, record, [token for token in tokens if token]


def commit(start: PlayedStart, record: ProgressRecord, tokens: list[Token]) -> bool:
    return commit_staged(start.connector, record, tokens, Patience(timedelta(seconds=1)))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_AGAIN_SECONDS", 0.01)


@pytest.mark.parametrize(("happens", "attempts"), [(True, 1), (False, 2)])
def test_a_commit_without_an_answer_is_given_again_and_happens_once(happens: bool, attempts: int) -> None:
    store = LosesOnce(happens=happens)
    harness, start, record, tokens = staged(store)

    assert commit(start, record, tokens)

    assert store.attempts == attempts
    assert harness.visible() == rows_of(FIRST)
    assert start.connector.progress().records[SINGLE_WRITER] == record


def test_what_is_gone_is_to_be_written_again_and_the_rest_of_it_is_given_up() -> None:
    store = FlakyStore()
    harness, start, record, tokens = staged(store)
    store.drop([tokens[0].name])

    assert not commit(start, record, tokens)

    assert (harness.visible(), store.staged()) == ([], ())


def test_a_driver_that_was_overtaken_gives_up_what_its_tasks_staged() -> None:
    store = FlakyStore()
    harness, start, record, tokens = staged(store)
    PlayedStart(harness).open()

    with pytest.raises(FencedError):
        commit(start, record, tokens)

    assert (harness.visible(), store.staged()) == ([], ())


class DoubtsThenIsAway(FlakyStore):
    """No answer to the commit, and then nobody is there; the commit may still be under way."""

    has_committed = False

    def commit(self, *arguments: Any) -> Slot:
        if arguments[1] != SINGLE_WRITER:
            return super().commit(*arguments)
        if self.has_committed:
            raise FencedError("overtaken meanwhile")
        self.has_committed = True
        raise InDoubtError("no answer")


def test_what_is_staged_is_kept_where_a_commit_of_it_may_be_under_way() -> None:
    store = DoubtsThenIsAway()
    _, start, record, tokens = staged(store)

    with pytest.raises(FencedError):
        commit(start, record, tokens)

    assert set(store.staged()) == {token.name for token in tokens}


class AlwaysDoubts(FlakyStore):
    def commit(self, *arguments: Any) -> Slot:
        if arguments[1] != SINGLE_WRITER:
            return super().commit(*arguments)
        raise InDoubtError("no answer")


def test_doubts_without_end_end_the_driver_within_its_patience_and_the_status_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "_WORTH_SAYING_SECONDS", 0)
    store = AlwaysDoubts()
    _, start, record, tokens = staged(store)
    waiting, said = Patience(timedelta(seconds=0.3)), list[str]()
    real = AlwaysDoubts.commit

    def commit_and_listen(self: AlwaysDoubts, *arguments: Any) -> Slot:
        said.append(waiting.waits_for)
        return real(self, *arguments)

    monkeypatch.setattr(AlwaysDoubts, "commit", commit_and_listen)
    with pytest.raises(UnavailableError, match="no answer") as failed:
        commit_staged(start.connector, record, tokens, waiting)

    assert "has waited for" in failed.value.detail
    assert start.connector.service in said[-1]
    assert set(store.staged()) == {token.name for token in tokens}


def epochs_of(start: PlayedStart, record: ProgressRecord) -> Epochs:
    """Return the epochs of a started sink, whose checkpoint has the range of the first one."""
    log: Any = SimpleNamespace(
        folder="checkpoint", start_offsets=lambda _: begins(FIRST), offsets=lambda _: ends(FIRST)
    )
    nobody: Any = None
    target, waiting = start.connector, Patience(timedelta(seconds=1))
    settings = EpochSettings(
        sink="orders",
        source_topic="source",
        single=False,
        stateful=False,
        driver=DriverShare(0),
        has_dead_letters=False,
        dead_letter_example="",
        limits=SetAsideLimits(),
        demand_source=lambda _: None,
        driver_commits=True,
        factory=start.factory,
    )
    account = Account(start.announcement, {0: 0, 1: 0}, {}, set(start.announcement.writers))
    guard = Guard(record.identities, lambda: look(start), target.demand_in_force, waiting, target.service)
    run: dict[str, Any] = {"account": account, "target": target, "guard": guard, "patience": waiting}
    action = EpochAction(settings, **run, tasks=RowTasks(settings, lambda *_: nobody))
    source_log: Any = SimpleNamespace(leader_epochs=lambda *_: {})
    return Epochs(settings, **run, log=log, source_log=source_log, action=action, finished=lambda _: None)


def run_epoch(epochs: Epochs) -> None:
    nobody: Any = None
    epochs(nobody, 0)


def test_stages_that_are_always_gone_end_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    _, start, record, _ = staged(FlakyStore())
    writes: list[ProgressRecord] = []

    def act(_: EpochAction, rows: object, record: ProgressRecord) -> list[TaskReport]:
        del rows
        writes.append(record)
        return [TaskReport("p0", Outcome.COMMITTED, rows=20, staged="on another machine")]

    monkeypatch.setattr(EpochAction, "_act", act)

    with pytest.raises(JobFailedError, match="stage is gone before it is committed") as failed:
        run_epoch(epochs_of(start, record))

    assert len(writes) == 4
    assert "executors and driver reach the same place" in failed.value.hint


LARGE = TaskReport("", Outcome.LARGE_ROWS)


def reporting(monkeypatch: pytest.MonkeyPatch, *attempts: list[TaskReport]) -> list[list[TaskReport]]:
    """Let tasks say this, one attempt after the other; return the attempts that are left."""
    left = list(attempts)
    monkeypatch.setattr(RowTasks, "run", lambda *_: left.pop(0))
    return left


def test_an_epoch_is_not_written_again_for_large_rows_by_a_driver_that_was_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, start, record, _ = staged(FlakyStore())
    left = reporting(monkeypatch, [TaskReport("p0", Outcome.FENCED, primary="overtaken"), LARGE], [LARGE])

    with pytest.raises(FencedError, match="overtaken"):
        run_epoch(epochs_of(start, record))

    assert len(left) == 1


def test_what_was_staged_before_an_epoch_is_written_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = FlakyStore()
    harness, start, record, first = staged(store)
    again = [PlayedTask(start, 1, partition, FIRST).go_on().token for partition in FIRST]
    written = [
        [
            TaskReport(token.writer, Outcome.COMMITTED, rows=token.rows, staged=token.name)
            for token in tokens
            if token
        ]
        for tokens in (first, again)
    ]
    reporting(monkeypatch, [*written[0], LARGE], written[1])

    run_epoch(epochs_of(start, record))

    assert (harness.visible(), store.staged()) == (rows_of(FIRST), ())


def look(start: PlayedStart) -> Mapping[Role, ResourceFacts]:
    return {Role.SOURCE: SOURCE, **start.connector.identify()}
