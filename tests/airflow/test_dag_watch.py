"""A running sink whose DAG is gone ends by itself; one whose DAG cannot be looked for does not."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.lifecycle import dag_gone
from airflow_provider_sinks.core.lifecycle.dag_gone import File, Listed
from tests.airflow.desk import Desk
from tests.airflow.fakes import SINK, FakeSpark, status
from tests.airflow.test_orphans import lose_dag

if TYPE_CHECKING:
    from tests.airflow_side import RunTask, Submit


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks without a pause, and a DAG that is gone for good after half a second."""
    monkeypatch.setattr(dag_gone, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(dag_gone, "GONE_FOR_SECONDS", 0.5)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("said", "ends"),
    [
        pytest.param(Listed.GONE, True, id="gone"),
        pytest.param(Listed.BROKEN, False, id="cannot-be-read"),
        pytest.param(Listed.LISTED, False, id="there"),
        pytest.param(Listed.UNKNOWN, False, id="airflow-cannot-be-asked"),
    ],
)
def test_a_sink_ends_between_two_epochs_when_its_dag_is_gone_and_only_then(  # noqa: PLR0917  fixtures and a row
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch,
    said: Listed, ends: bool,
) -> None:  # fmt: skip
    def listed(_: object) -> Listed:
        return said if (spark.folder / "seen.json").exists() else Listed.LISTED

    monkeypatch.setattr("airflow_provider_sinks.metadata.dags.listed", listed)
    # An Airflow in this process serves one thread at a time.
    monkeypatch.setattr("airflow_provider_sinks.metadata.dags.file_of", lambda _: File.UNSEEN)
    spark.play(wait=30 if ends else 2, statuses=[status(state="running"), status(state="stopped")])

    result = run_task(submit(sink={**SINK, "name": f"dag_{said.name.lower()}"}))

    assert result.state == ("skipped" if ends else "success"), result.error
    assert (spark.directory / "stop").exists() is ends


@pytest.mark.usefixtures("soon")
def test_a_look_that_fails_ends_nothing(
    run_task: RunTask, submit: Submit, spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> Listed:
        raise UnavailableError("Airflow does not answer")

    monkeypatch.setattr("airflow_provider_sinks.metadata.dags.listed", fail)
    spark.play(wait=2, statuses=[status(state="stopped")])

    assert run_task(submit()).state == "success"


def test_airflow_says_whether_a_dag_is_there_broken_or_gone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.errors import ParseImportError
    from airflow.utils.session import create_session

    from airflow_provider_sinks.metadata.dags import listed

    there, never = listed(desk.sink), listed("no such dag")
    lose_dag(desk)
    gone = listed(desk.sink)
    with create_session() as session:
        dag = session.query(DagModel).filter_by(dag_id=desk.sink).one()
        dag.has_import_errors = True
        place = {"filename": dag.relative_fileloc, "bundle_name": dag.bundle_name}
    removed_while_it_was_read = listed(desk.sink)
    with create_session() as session:
        session.add(ParseImportError(**place, stacktrace="SyntaxError", timestamp=datetime.now(UTC)))
    broken = listed(desk.sink)
    monkeypatch.delenv("AIRFLOW_CONN_AIRFLOW_API_DEFAULT")

    assert removed_while_it_was_read is Listed.GONE
    assert (there, gone, broken) == (Listed.LISTED, Listed.GONE, Listed.BROKEN)
    assert (never, listed(desk.sink)) == (Listed.UNKNOWN, Listed.UNKNOWN)


def test_a_file_is_missing_only_where_others_are(tmp_path: Path) -> None:
    from airflow_provider_sinks.metadata.dags import file_seen

    mounted, empty = tmp_path / "mounted", tmp_path / "empty"
    mounted.mkdir()
    empty.mkdir()
    (mounted / "there.py").touch()
    with zipfile.ZipFile(mounted / "dags.zip", "w") as packed:
        packed.writestr("inner.py", "")

    assert file_seen(mounted, "there.py") is File.THERE
    assert file_seen(mounted, "dags.zip/inner.py") is File.THERE
    assert file_seen(mounted, "gone.py") is File.MISSING
    assert file_seen(empty, "gone.py") is File.UNSEEN
    assert file_seen(tmp_path / "away", "gone.py") is File.UNSEEN
