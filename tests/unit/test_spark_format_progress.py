"""The progress of a sink that Spark's own writer writes: what a start finds behind every place of a kill."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_sinks.connectors.base import CommitsOn, Run
from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.spark_format import connector as target
from airflow_provider_sinks.connectors.spark_format.connector import SparkFormatConnector
from airflow_provider_sinks.connectors.spark_format.jdbc import jdbc_options
from airflow_provider_sinks.connectors.spark_format.kind import KIND
from airflow_provider_sinks.connectors.spark_format.outputs import MARK
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.errors import (
    ConfigurationError,
    FencedError,
    JobFailedError,
    RefusedError,
    UnavailableError,
)
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.identity import Identities
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER, ProgressRecord
from airflow_provider_sinks.core.spec.sink import SinkSpec

_SOURCE = ResourceFacts("orders", Existence.PRESENT, "cluster", "topic", 1)


class Started:
    """A start of the sink, whose epochs write nothing but a file of Spark's log."""

    def __init__(self, folder: Path, format_: str = "parquet", name: str = "orders") -> None:
        self.folder = folder / "lake"
        place = {"path": str(self.folder)} if format_ == "parquet" else {}
        self.spec = SinkSpec.parse(
            {
                "name": name,
                "source": {"kafka": {"connection": "k", "topic": "orders", "format": "text"}},
                "target": {"spark": {"format": format_, **place}},
                "checkpoint": str(folder / "kept"),
            }
        )
        made = KIND.connect(self.spec, ResolvedConnections({}), None, lambda _: None, lambda _: None)
        assert isinstance(made, SparkFormatConnector)
        self.connector = made
        self.run = Run("orders", f"run-{id(self)}", "orders")

    def begin(self, generation: int = 1) -> Started:
        self.open()
        self.connector.announce(self.record(0, generation))
        return self

    def open(self) -> None:
        self.connector.open(self.run, (), self.connector.observe(_SOURCE))
        for role, facts in self.connector.identify().items():
            if facts.existence is Existence.MISSING:
                self.connector.ensure(self.spec.creations()[role])

    def record(self, epoch: int, generation: int = 1) -> ProgressRecord:
        seen = {role: facts.identity for role, facts in self.connector.identify().items()}
        return ProgressRecord(
            generation=generation,
            owner="me",
            run=self.run.id,
            epoch=epoch,
            from_={0: max(0, epoch - 1)},
            to={0: epoch},
            identities=Identities(_SOURCE.identity, seen[Role.DATA], seen[Role.PROGRESS]),
            checkpoint="c",
            batch=epoch - 1,
        )

    def write(self, monkeypatch: pytest.MonkeyPatch, epoch: int, spark: Callable[[int], int]) -> None:
        monkeypatch.setattr(target.SparkFormatConnector, "_written", lambda _, __, batch: spark(batch))
        rows: Any = None
        self.connector.write_frame(rows, self.record(epoch))

    def commits(self, batch: int) -> int:
        log = self.folder / "_spark_metadata"
        log.mkdir(exist_ok=True)
        (log / str(batch)).touch(exist_ok=False)
        return 10

    def dies(self, batch: int) -> int:
        raise KeyboardInterrupt(batch)

    def commits_and_dies(self, batch: int) -> int:
        self.commits(batch)
        raise KeyboardInterrupt

    @property
    def epoch(self) -> int:
        return self.connector.progress().epoch


@pytest.fixture
def first(tmp_path: Path) -> Started:
    return Started(tmp_path).begin()


def test_it_says_that_the_engine_commits(first: Started) -> None:
    assert first.connector.capabilities().commits_on is CommitsOn.ENGINE
    with pytest.raises(JobFailedError, match="Spark's own writer writes the rows"):
        first.connector.factory().prepare(SINGLE_WRITER)


@pytest.mark.usefixtures("first")
def test_a_sink_that_has_written_nothing_leaves_its_mark_and_its_progress(tmp_path: Path) -> None:
    observation = Started(tmp_path).connector.observe(_SOURCE)

    assert observation.data.existence is observation.progress.existence is Existence.PRESENT
    assert observation.data.is_empty
    assert set(observation.known.records) == {DRIVER}


def test_an_epoch_is_recorded_with_its_rows_behind_them(
    first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    first.write(monkeypatch, 2, first.commits)

    record = first.connector.progress().records[SINGLE_WRITER]
    assert (record.epoch, record.rows, record.to) == (2, 10, {0: 2})


@pytest.mark.parametrize(("death", "epoch"), [("dies", 1), ("commits_and_dies", 2)])
def test_an_epoch_that_was_begun_counts_where_spark_remembers_its_batch(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch, death: str, epoch: int
) -> None:
    first.write(monkeypatch, 1, first.commits)
    with pytest.raises(KeyboardInterrupt):
        first.write(monkeypatch, 2, getattr(first, death))

    assert Started(tmp_path).epoch == epoch
    assert Started(tmp_path).begin().epoch == epoch


def test_a_batch_that_an_overtaken_driver_still_writes_is_found_and_not_written_again(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    with pytest.raises(KeyboardInterrupt):
        first.write(monkeypatch, 2, first.dies)
    second = Started(tmp_path).begin()
    first.commits(1)

    with pytest.raises(JobFailedError, match="somebody else writes"):
        second.write(monkeypatch, 2, second.commits)

    assert Started(tmp_path).begin().epoch == 2


def test_a_batch_that_an_overtaken_driver_ends_behind_the_look_of_a_start_is_not_written_again(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    with pytest.raises(KeyboardInterrupt):
        first.write(monkeypatch, 2, first.dies)
    second = Started(tmp_path)
    second.open()
    first.commits(1)

    with pytest.raises(UnavailableError, match="has ended its batch meanwhile"):
        second.connector.announce(second.record(0))

    assert Started(tmp_path).begin().epoch == 2


def put_back(lake: Path, old: Path) -> None:
    shutil.rmtree(lake)
    old.rename(lake)


def lose_log(lake: Path, old: Path) -> None:
    del old
    shutil.rmtree(lake / "_spark_metadata")


@pytest.mark.parametrize(("loses", "log"), [(put_back, "at 0"), (lose_log, "gone")])
def test_a_folder_that_is_older_than_the_progress_is_refused_until_it_is_back_or_made_anew(
    tmp_path: Path,
    first: Started,
    monkeypatch: pytest.MonkeyPatch,
    loses: Callable[[Path, Path], None],
    log: str,
) -> None:
    first.write(monkeypatch, 1, first.commits)
    shutil.copytree(first.folder, tmp_path / "old")
    for epoch in (2, 3, 4):
        first.write(monkeypatch, epoch, first.commits)
    shutil.copytree(first.folder, tmp_path / "whole")
    loses(first.folder, tmp_path / "old")

    with pytest.raises(RefusedError, match="went back while the sink ran") as ended:
        first.write(monkeypatch, 5, first.commits)
    second = Started(tmp_path)
    unfit = second.connector.observe(_SOURCE).data.unfit

    assert unfit is not None
    assert unfit.what == "is older than the sink's progress"
    assert f"The log of Spark's file sink is {log}; the sink has written batch 3." in unfit.why
    assert (ended.value.detail, ended.value.hint) == (unfit.why, unfit.repair)
    put_back(first.folder, tmp_path / "whole")
    assert second.begin().connector.observe(_SOURCE).data.unfit is None


def test_a_folder_that_goes_back_behind_the_look_of_a_start_takes_no_rows(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    second = Started(tmp_path)
    lose_log(first.folder, tmp_path)

    with pytest.raises(RefusedError, match="went back while the sink ran"):
        second.begin().write(monkeypatch, 2, second.commits)


def test_batches_are_counted_anew_in_a_folder_that_is_made_anew(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    shutil.rmtree(first.folder)

    second = Started(tmp_path).begin()
    second.write(monkeypatch, 2, second.commits)

    assert second.connector.observe(_SOURCE).data.unfit is None
    assert (second.folder / "_spark_metadata" / "0").exists()


def test_where_spark_remembers_nothing_such_an_epoch_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Started(tmp_path, "noop").begin()
    first.write(monkeypatch, 1, lambda _: 10)
    with pytest.raises(KeyboardInterrupt):
        first.write(monkeypatch, 2, first.dies)

    assert Started(tmp_path, "noop").begin().epoch == 1


def test_batches_go_on_behind_those_of_spark_s_log_whatever_became_of_the_checkpoint(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    (first.folder / "_spark_metadata" / "0").rename(first.folder / "_spark_metadata" / "19.compact")

    second = Started(tmp_path).begin()
    second.write(monkeypatch, 2, second.commits)

    assert (second.folder / "_spark_metadata" / "20").exists()


def test_a_batch_of_somebody_else_ends_the_driver_before_spark_drops_the_rows(
    first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    first.commits(1)

    with pytest.raises(JobFailedError, match='somebody else writes where sink "orders" does'):
        first.write(monkeypatch, 2, first.commits)


def test_a_run_that_was_overtaken_records_nothing(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    Started(tmp_path).begin()

    for act in (first.connector.demand_in_force, lambda: first.write(monkeypatch, 1, first.commits)):
        with pytest.raises(FencedError, match='a newer start of sink "orders" took over'):
            act()


def test_of_two_first_starts_one_begins(tmp_path: Path) -> None:
    one, other = Started(tmp_path), Started(tmp_path)
    for start in (one, other):
        start.connector.open(start.run, (), start.connector.observe(_SOURCE))
    creation = one.spec.creations()[Role.PROGRESS]
    one.connector.ensure(creation)
    other.connector.ensure(creation)

    one.connector.announce(one.record(0))
    with pytest.raises(FencedError):
        other.connector.announce(other.record(0))


def test_progress_that_is_gone_while_the_sink_runs_ends_it(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    Started(tmp_path).connector.reset(DeleteOutput("progress", first.connector.identify()[Role.PROGRESS]))

    with pytest.raises(FencedError, match="took over"):
        first.write(monkeypatch, 1, first.commits)


def test_progress_that_goes_back_while_the_sink_runs_ends_it(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    max((tmp_path / "kept" / "orders" / "progress").iterdir()).unlink()

    with pytest.raises(JobFailedError, match="went back while it ran"):
        first.write(monkeypatch, 2, first.commits)


@pytest.mark.parametrize("name", ["part-0.parquet", "_spark_metadata"])
def test_a_folder_that_somebody_else_has_filled_is_not_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "lake" / name).mkdir(parents=True)

    facts = Started(tmp_path).connector.identify()[Role.DATA]

    assert facts.unfit is not None
    assert facts.unfit.what == f'holds "{name}", which this sink has not written'


@pytest.mark.usefixtures("first")
def test_a_folder_of_another_sink_is_not_taken(tmp_path: Path) -> None:
    facts = Started(tmp_path, name="other").connector.identify()[Role.DATA]

    assert facts.unfit is not None
    assert facts.unfit.what == 'is the folder of sink "orders"'


def test_a_folder_that_was_made_again_is_another_one(first: Started) -> None:
    before = first.connector.identify()[Role.DATA]
    (first.folder / MARK).unlink()
    first.connector.ensure(first.spec.creations()[Role.DATA])

    assert first.connector.identify()[Role.DATA].id != before.id


@pytest.mark.parametrize("act", [EmptyOutput, DeleteOutput])
def test_a_reset_that_wakes_behind_a_newer_start_takes_nothing_away(
    tmp_path: Path, first: Started, act: type[EmptyOutput | DeleteOutput]
) -> None:
    (first.folder / "part-0.parquet").touch()
    step = act("data", first.connector.identify()[Role.DATA])
    Started(tmp_path).begin(generation=2)

    with pytest.raises(FencedError, match="took over"):
        first.connector.reset(step)

    assert (first.folder / "part-0.parquet").exists()


def test_a_reset_empties_the_folder_but_for_its_mark_and_numbers_begin_again(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.write(monkeypatch, 1, first.commits)
    (first.folder / "part-0.parquet").touch()

    first.connector.reset(EmptyOutput("data", first.connector.identify()[Role.DATA]))

    assert [path.name for path in first.folder.iterdir()] == [MARK]
    second = Started(tmp_path).begin(generation=2)
    second.write(monkeypatch, 2, second.commits)
    assert (second.folder / "_spark_metadata" / "0").exists()


@pytest.mark.usefixtures("first")
def test_what_is_no_progress_is_not_taken_for_none(tmp_path: Path) -> None:
    newest = max((tmp_path / "kept" / "orders" / "progress").iterdir())
    newest.write_text("{}")

    observation = Started(tmp_path).connector.observe(_SOURCE)

    assert observation.history is None
    assert observation.progress.existence is Existence.UNKNOWN


def test_only_the_newest_files_of_the_progress_are_kept(
    tmp_path: Path, first: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    for epoch in range(1, 5):
        first.write(monkeypatch, epoch, first.commits)

    assert len(list((tmp_path / "kept" / "orders" / "progress").iterdir())) == 3


def _postgres(host: str = "db", **extra: str) -> PostgresOptions:
    return PostgresOptions.from_connection(
        "pg", host=host, port=None, login="me", password="sesame", schema="my db", extra=extra
    )


def test_jdbc_gets_its_address_and_its_login_from_the_connection() -> None:
    found = jdbc_options(_postgres(sslmode="verify-full"), "public.Orders")

    assert found["url"] == "jdbc:postgresql://db:5432/my%20db"
    assert (found["user"], found["password"], found["sslmode"]) == ("me", "sesame", "verify-full")
    assert found["dbtable"] == '"public"."Orders"'


def test_without_a_password_jdbc_is_told_so_and_looks_for_none() -> None:
    given = {name: value for name, value in _postgres().given.items() if name != "password"}

    assert jdbc_options(PostgresOptions("pg", given), "public.orders")["password"] == ""


@pytest.mark.parametrize(("host", "extra"), [("db", {"sslkey": "/key"}), ("/socket", {})])
def test_what_jdbc_does_not_do_is_refused_and_not_left_out(host: str, extra: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match='connection "pg" is not valid for format jdbc'):
        jdbc_options(replace(_postgres(host, **extra)), "public.orders")
