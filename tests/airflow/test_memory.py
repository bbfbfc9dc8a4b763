"""What Airflow remembers of a sink, over launches and over the loss of one of its two copies."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.lifecycle.state_history import (
    HistoryState,
    from_mappings,
    noted,
    to_mappings,
)
from tests.airflow.fakes import SINK, FakeSpark, status

if TYPE_CHECKING:
    from tests.airflow_side import RunTask, Submit


def test_the_next_launch_gets_the_witness_of_the_last(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    sink = {**SINK, "name": "remembered"}
    task = submit(sink=sink)
    spark.play(statuses=[status(state="stopped", epoch=3, rows=9, rows_total=40, positions={"0": 40})])
    run_task(task)
    first = spark.seen["launch"]

    run_task(task)

    second = spark.seen["launch"]
    assert (first["number"], second["number"]) == (1, 2)
    assert first["owner"] == second["owner"] != ""
    assert second["witness"]["epoch"] == 3
    assert second["witness"]["rows"] == 40
    assert second["witness"]["offsets"] == {"0": 40}


def test_a_fenced_launch_does_not_overwrite_its_successors_witness(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    task = submit(sink={**SINK, "name": "overtaken"})
    spark.play(statuses=[status(state="stopped", epoch=9)])
    run_task(task)
    spark.play(statuses=[status(state="fenced", epoch=4)], exit=66)
    run_task(task)
    spark.play()

    run_task(task)

    assert spark.seen["launch"]["witness"]["epoch"] == 9


def test_a_launch_that_is_being_taken_over_does_not_turn_the_count_back(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    from airflow.models.variable import Variable

    task = submit(sink={**SINK, "name": "counted_on"})
    spark.play(statuses=[status(state="stopped", epoch=2)])
    run_task(task)
    Variable.set("sinks.counted_on.witness", json.dumps({"owner": "us", "launch": 7}))
    spark.play(statuses=[status(state="stopped", epoch=3, launch=1)])
    run_task(task)

    assert json.loads(Variable.get("sinks.counted_on.witness"))["launch"] == 8


class _Variables:
    """Variables that are away for a moment."""

    def __init__(self, **kept: str) -> None:
        self.kept = kept
        self.is_away = False

    def keys(self, prefix: str) -> list[str]:
        if self.is_away:
            raise ConnectionError
        return [key for key in self.kept if key.startswith(prefix)]

    def get(self, key: str) -> str:
        return self.kept[key]

    def set(self, key: str, value: str, _: str) -> None:
        self.kept[key] = value


def test_a_memory_that_cannot_be_read_for_a_moment_is_not_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow_provider_sinks.metadata import memory as module
    from tests.facts import witness

    key, home = "sinks.orders.witness", {"dag_id": "form", "task_id": "submit"}
    before = json.dumps({"owner": "us", "launch": 7, "home": home})
    variables = _Variables(**{key: before})
    monkeypatch.setattr(module, "Variable", variables)
    memory = module.SinkMemory("orders", None, cast("Any", logging.getLogger()))

    variables.is_away = True
    assert memory.keep(witness(launch=6)) is False
    assert variables.kept == {key: before}

    variables.is_away = False
    assert memory.keep(witness(launch=6)) is True
    kept = json.loads(variables.kept[key])
    assert (kept["launch"], kept["home"], kept["epoch"]) == (7, home, witness().epoch)


def test_the_second_copy_counts_when_the_assets_store_is_gone(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    from airflow.models.asset_state_store import AssetStateStoreModel
    from airflow.utils.session import create_session

    task = submit(sink={**SINK, "name": "forgotten"})
    spark.play(statuses=[status(state="stopped", epoch=3)])
    run_task(task)
    with create_session() as session:
        assert session.query(AssetStateStoreModel).delete() > 0
    run_task(task)

    assert spark.seen["launch"]["witness"]["epoch"] == 3
    assert spark.seen["launch"]["number"] == 2


def test_the_newer_copy_counts(run_task: RunTask, submit: Submit, spark: FakeSpark) -> None:
    from airflow.models.variable import Variable
    from airflow.utils.session import create_session

    task = submit(sink={**SINK, "name": "uneven"})
    spark.play(statuses=[status(state="stopped", epoch=3)])
    run_task(task)
    with create_session() as session:
        stale = Variable.get("sinks.uneven.witness")
        spark.play(statuses=[status(state="stopped", epoch=8)])
        run_task(task)
        Variable.set("sinks.uneven.witness", stale, session=session)
    run_task(task)

    assert spark.seen["launch"]["witness"]["epoch"] == 8


def test_a_memory_that_cannot_be_read_is_not_an_empty_one(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    from airflow.models.variable import Variable

    Variable.set("sinks.garbled.witness", "not JSON")

    result = run_task(submit(sink={**SINK, "name": "garbled"}))

    assert result.state == "up_for_retry"
    assert 'Airflow\'s memory of sink "garbled" could not be read' in str(result.error)
    assert not (spark.folder / "seen.json").exists()


def test_all_sinks_of_an_airflow_have_one_owner(run_task: RunTask, submit: Submit, spark: FakeSpark) -> None:
    run_task(submit(sink={**SINK, "name": "one"}, task_id="one"))
    first = spark.seen["launch"]["owner"]

    run_task(submit(sink={**SINK, "name": "two"}, task_id="two"))

    assert spark.seen["launch"]["owner"] == first


def test_the_newest_status_is_there_for_everybody(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    error = {"kind": "RefusedError", "primary": "output is lost", "detail": "d", "hint": "h"}
    spark.play(
        statuses=[status(state="running", lag={"0": 3}), status(state="refused", error=error)], exit=65
    )

    run_task(submit(sink={**SINK, "name": "shown"}))

    shown = _stored("shown")["status"]
    assert (shown["state"], shown["launch"], shown["sink"]) == ("refused", 1, "shown")
    assert shown["error"] == {"launch": 1, **error}


def test_nothing_larger_than_airflow_takes_is_written(
    run_task: RunTask, submit: Submit, spark: FakeSpark, capfd: pytest.CaptureFixture[str]
) -> None:
    offsets = {str(partition): 2**40 + partition for partition in range(5_000)}
    error = {"kind": "X", "primary": "p", "detail": "d" * 100_000, "hint": ""}
    task = submit(sink={**SINK, "name": "large"})
    spark.play(
        statuses=[status(state="failed", epoch=2, positions=offsets, lag=offsets, error=error)], exit=70
    )
    run_task(task)
    spark.play()
    run_task(task)

    assert all(len(json.dumps(value)) < 65_535 for value in _stored("large").values())
    assert spark.seen["launch"]["witness"]["offsets"] == offsets  # by the Variable, which has no limit
    assert spark.seen["launch"]["number"] == 2
    assert "exceeds" not in capfd.readouterr().out


def test_nothing_is_kept_that_could_make_a_cleared_task_do_nothing(
    run_task: RunTask, submit: Submit, spark: FakeSpark
) -> None:
    """Airflow may keep a task's state store over a clear, or discard it: with nothing in it both are one."""
    from airflow.models.task_state_store import TaskStateStoreModel
    from airflow.utils.session import create_session

    task = submit(sink={**SINK, "name": "cleared"})
    before = run_task(task)
    with create_session() as session:
        kept = session.query(TaskStateStoreModel).filter_by(dag_id=task.dag_id).all()
    again = run_task(task)

    assert (before.state, again.state) == ("success", "success")
    assert kept == []
    assert spark.launches == 2


def _stored(sink: str) -> dict[str, Any]:
    """What stands in the state store of a sink's asset."""
    from airflow.models.asset import AssetModel
    from airflow.models.asset_state_store import AssetStateStoreModel
    from airflow.utils.session import create_session

    with create_session() as session:
        asset = session.query(AssetModel).filter_by(name=f"sink:{sink}").one()
        rows = session.query(AssetStateStoreModel).filter_by(asset_id=asset.id).all()
        return {row.key: json.loads(row.value) if isinstance(row.value, str) else row.value for row in rows}


class PlainStore(dict[str, Any]):
    """A state store that counts how often it was asked."""

    asked = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.asked += 1
        return dict.get(self, key, default)

    def set(self, key: str, value: Any) -> None:
        self[key] = value


def test_a_task_that_ends_does_not_overwrite_what_a_person_noted() -> None:
    from airflow_provider_sinks.metadata.memory import SinkMemory
    from airflow_provider_sinks.metadata.store import HISTORY_KEY

    store = PlainStore()
    memory = SinkMemory("paused", store, cast("Any", logging.getLogger("task")))
    memory.show(SinkStatus("paused", 3, SinkState.RUNNING))
    store[HISTORY_KEY] = to_mappings(noted(from_mappings(store[HISTORY_KEY]), HistoryState.PAUSED))

    memory.show(SinkStatus("paused", 3, SinkState.STOPPED))

    assert [entry["state"] for entry in store[HISTORY_KEY]] == ["running", "paused"]


def test_the_history_costs_nothing_while_nothing_happens() -> None:
    from airflow_provider_sinks.metadata.memory import SinkMemory

    store = PlainStore()
    memory = SinkMemory("steady", store, cast("Any", logging.getLogger("task")))
    for epoch in range(10):
        memory.show(SinkStatus("steady", 3, SinkState.RUNNING, epoch=epoch))

    assert store.asked == 2  # for the status before, and for the history
