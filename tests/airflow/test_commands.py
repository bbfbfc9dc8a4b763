"""``airflow sinks ...`` against Airflow's own API, and with a broker that is stopped."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus, StatusError
from airflow_provider_sinks.metadata.sink_homes import SinkHomes
from tests.airflow.api_server import account
from tests.airflow.desk import Define, Desk, sink_dag_of
from tests.airflow.fakes import IDENTITIES, SINK
from tests.airflow_side import _process

MINUTE_SECONDS = 60
AWAY = StatusError("UnavailableError", "Kafka could not be reached", "timed out", "look at it")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(desk: Desk, launch: int, state: SinkState, **changes: Any) -> SinkStatus:
    fields = {"owner": "us", "generation": 1, "identities": IDENTITIES, "at": _now()}
    return SinkStatus(desk.sink, launch, state, **{**fields, **changes})


# What is asked of Airflow alone.


def test_list_shows_every_sink(desk: Desk) -> None:
    desk.tell(_status(desk, 1, SinkState.RUNNING, epoch=7, rows_total=4200, lag={0: 3}))
    desk.start()

    (row,) = [row for row in desk.run("list", "-o", "json").data if row["sink"] == desk.sink]
    table = desk.run("list")

    assert (row["state"], row["epoch"], row["rows_total"], row["lag"]) == ("running", 7, 4200, 3)
    assert row["connections"] == ["kafka_test"]
    assert re.search(rf"{desk.sink}\s+\| running\s+\|.*4,200", table.out)


def test_describe_says_what_a_sink_is(desk: Desk) -> None:
    found = desk.run("describe", desk.sink, "-o", "json").data

    assert (found["source"], found["target"]) == ("kafka_test/orders", "kafka_test/orders-out")
    assert found["dags"] == [{"dag": desk.sink, "paused": True, "schedule": "", "other_sinks": []}]
    assert "per_partition" in desk.run("describe", desk.sink).out


def test_a_sink_that_is_not_known_is_said_with_the_nearest(desk: Desk) -> None:
    answer = desk.run("status", f"{desk.sink}x")

    assert answer.code == 64
    assert f'did you mean "{desk.sink}"?' in answer.err


@pytest.mark.parametrize(
    ("statuses", "active", "state", "code"),
    [
        pytest.param([], "", "created", 0, id="created"),
        pytest.param([SinkState.RUNNING], "running", "running", 0, id="running"),
        pytest.param([SinkState.RUNNING], "", "paused", 0, id="paused"),
        pytest.param([SinkState.FAILED] * 3, "up_for_retry", "stalled", 69, id="stalled"),
        pytest.param([SinkState.REFUSED], "", "failed", 70, id="failed"),
    ],
)
def test_status_says_how_a_sink_stands_and_so_does_the_exit_code(
    desk: Desk, statuses: list[SinkState], active: str, state: str, code: int
) -> None:
    heard = [
        _status(desk, launch, told_state, error=AWAY if told_state is not SinkState.RUNNING else None)
        for launch, told_state in enumerate(statuses, 1)
    ]
    if heard:
        desk.tell(*heard)
    if active:
        desk.start(active)

    answer = desk.run("status", desk.sink, "-o", "json")

    assert (answer.data["state"], answer.code) == (state, code)


def test_status_says_what_a_start_waits_for(desk: Desk) -> None:
    desk.tell(_status(desk, 1, SinkState.STARTING, waits_for="somebody's open transaction"))

    found = desk.run("status", desk.sink, "-o", "json").data

    assert found["waits_for"] == "somebody's open transaction"


def test_status_tells_the_history_and_counts_what_is_repeated(desk: Desk) -> None:
    desk.tell(
        _status(desk, 1, SinkState.RUNNING),
        *(_status(desk, n, SinkState.FAILED, error=AWAY) for n in (1, 2, 3)),
    )
    desk.start("up_for_retry")

    found = desk.run("status", desk.sink, "--history", "-o", "json").data

    assert [(entry["state"], entry["times"]) for entry in found["history"]] == [
        ("running", 1),
        ("stalled", 3),
    ]
    assert (found["error"], found["hint"], found["times"]) == ("Kafka could not be reached", "look at it", 3)
    assert re.search(r"stalled\s+\| 3\s+\| 3 ", desk.run("status", desk.sink, "--history").out)


LOST = StatusError("RefusedError", "data topic is missing", "", "accept=start_over-1234")


@pytest.mark.parametrize("state", [SinkState.STARTING, SinkState.RUNNING])
def test_a_launch_after_a_refusal_shows_it_and_the_rows_that_are_there_until_it_commits(
    desk: Desk, state: SinkState
) -> None:
    ran = _status(desk, 1, SinkState.RUNNING, epoch=7, rows_total=4200, run="run", rows=4200)
    refused = SinkStatus(desk.sink, 2, SinkState.REFUSED, error=LOST)
    begun = SinkStatus(desk.sink, 3, state)
    desk.tell(ran, refused, begun)
    desk.start()

    before = desk.run("status", desk.sink, "-o", "json").data
    desk.tell(
        ran, refused, begun, _status(desk, 3, SinkState.RUNNING, epoch=8, rows_total=4201, rows=1, run="r")
    )
    after = desk.run("status", desk.sink, "-o", "json").data

    assert (before["launch"], before["epoch"], before["rows_total"]) == (3, 7, 4200)
    assert (before["error"], before["hint"]) == (LOST.primary, LOST.hint)
    assert (after["epoch"], after["rows_total"], after["error"], after["hint"]) == (8, 4201, None, None)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        pytest.param("running", "running", id="running"),
        pytest.param(
            "deferred", "deferred (waits in the triggerer; its driver runs on the cluster)", id="deferred"
        ),
        pytest.param(
            "up_for_retry", "up for retry (try 0 of 1 ended; Airflow makes the next by itself)", id="retry"
        ),
        pytest.param("queued", "queued (waits for a worker)", id="queued"),
    ],
)
def test_list_and_status_name_the_state_of_the_task(desk: Desk, state: str, words: str) -> None:
    desk.start(state)

    (row,) = [row for row in desk.run("list", "-o", "json").data if row["sink"] == desk.sink]
    (task,) = desk.run("status", desk.sink, "-o", "json").data["tasks"]

    assert row["task"] == words
    assert task.endswith(f"is {words}")


def test_pause_ends_what_runs_and_resume_starts_it_again(desk: Desk) -> None:
    desk.unpause()
    desk.tell(_status(desk, 1, SinkState.RUNNING))
    desk.start()

    dry = desk.run("pause", desk.sink, "--dry-run")
    before = (desk.is_paused, desk.task_states())
    paused = desk.run("pause", desk.sink)
    after = (desk.is_paused, desk.task_states())
    runs = desk.run_states()
    state = desk.run("status", desk.sink, "-o", "json").data["state"]
    again = desk.run("pause", desk.sink)
    resumed = desk.run("resume", desk.sink, "-o", "json")

    assert "1. pause DAG" in dry.out
    assert (before, after) == ((False, ["running"]), (True, ["failed"]))
    assert runs == ["failed"]
    assert (paused.code, again.code, resumed.code) == (0, 0, 0)
    assert state == "paused"
    assert "is paused already" in again.out
    assert [step.split()[0] for step in resumed.data["steps"]] == ["unpause", "start"]
    assert not desk.is_paused
    assert desk.is_to_be_read


def test_restart_clears_what_runs_and_nothing_else(desk: Desk) -> None:
    idle = desk.run("restart", desk.sink)
    desk.start()

    restarted = desk.run("restart", desk.sink)

    assert (idle.code, restarted.code) == (65, 0)
    assert f"airflow sinks resume {desk.sink}" in idle.err
    assert desk.task_states() == ["restarting"]


def test_pausing_other_sinks_with_it_takes_a_yes(desk: Desk) -> None:
    both = sink_dag_of(desk.sink, f"{desk.sink}_b")
    _process(both)
    desk.unpause()

    asked = desk.run("pause", desk.sink)
    agreed = desk.run("pause", desk.sink, "--yes")

    assert (asked.code, agreed.code) == (2, 0)
    assert f"it also runs {desk.sink}_b" in asked.err
    assert "Give --yes" in asked.err


@pytest.fixture
def _lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not answer would be waited for two minutes."""
    from airflow_provider_sinks.connectors.kafka.topics import KafkaClient

    monkeypatch.setattr(KafkaClient.__init__, "__defaults__", (2 * MINUTE_SECONDS,))


@pytest.mark.usefixtures("_lasting")
@pytest.mark.parametrize("verb", ["rewind", "reset"])
@pytest.mark.parametrize("state", ["running", "deferred", "queued", "up_for_retry"])
def test_a_sink_that_is_not_stopped_is_neither_rewound_nor_reset(desk: Desk, verb: str, state: str) -> None:
    desk.start(state)

    answer = desk.run(verb, desk.sink, "--yes", *(["--epoch", "3"] if verb == "rewind" else []))

    assert answer.code == 65
    assert f"is {state.replace('_', ' ')}" in answer.err
    assert f"airflow sinks pause {desk.sink}" in answer.err
    assert answer.seconds < MINUTE_SECONDS


@pytest.mark.parametrize("arguments", [[], ["--epoch", "3", "--time", "x"], ["--offsets", "0:x"]])
def test_an_unclear_rewind_is_said_before_anything_is_asked(desk: Desk, arguments: list[str]) -> None:
    answer = desk.run("rewind", desk.sink, *arguments)

    assert answer.code == 64
    assert "not clear where to rewind to" in answer.err


def test_wrong_usage_is_2(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow.cli.cli_parser import get_parser

    with pytest.raises(SystemExit) as ended:
        get_parser().parse_args(["sinks", "reset", desk.sink, "--data", "burn"])

    assert ended.value.code == 2
    assert "burn" in capsys.readouterr().err


# A broker that is stopped.

_NEEDS_BROKER = {
    "plan": [],
    "progress": [],
    "rewind": ["--offsets", "0:0", "--yes"],
    "reset": ["--yes"],
}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("verb", _NEEDS_BROKER)
def test_a_stopped_broker_is_said_by_name(desk: Desk, verb: str) -> None:
    answer = desk.run(verb, desk.sink, *_NEEDS_BROKER[verb])

    assert answer.code == 69
    assert "Kafka at 127.0.0.1:1 could not" in answer.out + answer.err


def test_a_stopped_broker_is_said_soon(desk: Desk) -> None:
    assert desk.run("plan", desk.sink).seconds < MINUTE_SECONDS / 2


def test_check_shows_a_stopped_broker_among_all_checks(desk: Desk) -> None:
    answer = desk.run("check", desk.sink, "--ask-spark", "never", "-o", "json")

    assert answer.code in (64, 69)
    (asked,) = [check for check in answer.data if check["family"] == "sql"]
    assert (asked["sink"], asked["outcome"]) == (desk.sink, "skipped")
    assert any("127.0.0.1:1" in str(check) for check in answer.data)
    assert answer.seconds < 2 * MINUTE_SECONDS


def test_check_takes_all_sinks_of_a_folder_or_those_that_are_named(desk: Desk, tmp_path: Path) -> None:
    sinks = [{**SINK, "name": name} for name in ("first", "second", "third")]
    (tmp_path / "sinks.yaml").write_text(yaml.safe_dump({"sinks": sinks}))
    folder = ("--folder", str(tmp_path), "--ask-spark", "never")

    every = desk.run("check", *folder, "-o", "json")
    named = desk.run("check", "second", "third", *folder)
    unknown = desk.run("check", "secnd", "fourth", *folder)

    assert sorted({check["sink"] for check in every.data}) == ["first", "second", "third"]
    assert [name for name in ("first", "second", "third") if f'sink "{name}":' in named.out] == [
        "second",
        "third",
    ]
    assert (every.code, unknown.code) == (named.code, 64)
    assert 'has no valid sink "secnd", "fourth"' in unknown.err
    assert 'did you mean "second"?' in unknown.err
    assert "no sink is named" in desk.run("check").err


@pytest.mark.usefixtures("_lasting")
@pytest.mark.parametrize("verb", ["list", "describe", "status", "pause", "resume"])
def test_what_needs_no_broker_works_without_one(desk: Desk, verb: str) -> None:
    answer = desk.run(verb, *([] if verb == "list" else [desk.sink]))

    assert answer.code == 0
    assert answer.seconds < MINUTE_SECONDS


@pytest.mark.usefixtures("hasty")
def test_a_stopped_broker_does_not_keep_a_sink_from_being_dropped(desk: Desk) -> None:
    desk.tell(_status(desk, 1, SinkState.RUNNING))
    desk.put("witness", {"owner": "us", "launch": 1})
    desk.api.call(
        "POST", "variables", {"key": f"sinks.{desk.sink}.witness", "value": '{"owner":"us","launch":1}'}
    )
    desk.start()

    kept = desk.run("drop", desk.sink, "--yes", "--delete-topic", "orders-out")
    not_touched = (desk.task_states(), sorted(desk.stored()))
    dropped = desk.run("drop", desk.sink, "--yes")

    assert (kept.code, not_touched) == (69, (["running"], ["history", "status", "witness"]))
    assert dropped.code == 0
    assert "what its driver left open there ends by itself" in dropped.err
    assert desk.task_states() == ["failed"]
    assert sorted(desk.stored()) == ["history"]
    assert desk.api.find(f"variables/sinks.{desk.sink}.witness") is None
    assert desk.run("status", desk.sink, "-o", "json").data["state"] == "dropped"


def test_a_connection_that_is_gone_does_not_keep_a_sink_from_being_dropped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_TEST")

    dropped = desk.run("drop", desk.sink, "--yes", "-o", "json")
    plan = desk.run("plan", desk.sink)

    assert (dropped.code, plan.code) == (0, 64)
    assert [step.split()[0] for step in dropped.data["steps"]] == ["forget"]


def test_a_topic_that_is_not_the_sinks_own_is_never_deleted(desk: Desk) -> None:
    answer = desk.run("drop", desk.sink, "--yes", "--delete-topic", "orders")

    assert answer.code == 64
    assert "is its source" in answer.err


@pytest.mark.parametrize("verb", ["list", "status", "pause", "plan", "drop"])
def test_an_airflow_that_is_away_is_said_by_name_and_soon(desk: Desk, connections: Define, verb: str) -> None:
    connections(airflow_api_default=account("http://127.0.0.1:1"))

    answer = desk.run(verb, *([] if verb == "list" else [desk.sink]), *(["--yes"] if verb == "drop" else []))

    assert answer.code == 69
    assert "Airflow at http://127.0.0.1:1 cannot be asked" in answer.err
    assert answer.seconds < 15


def test_a_connection_to_the_api_that_is_missing_is_said_with_the_way_to_make_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_AIRFLOW_API_DEFAULT")

    answer = desk.run("list")

    assert answer.code == 64
    assert "airflow connections import" in answer.err


def test_a_masked_memory_is_not_taken_for_an_empty_one(desk: Desk) -> None:
    desk.api.call(
        "POST", "variables", {"key": "sinks.secret_one.witness", "value": '{"owner": "us", "launch": 1}'}
    )
    homes = SinkHomes(desk.api)

    with pytest.raises(UnavailableError, match="could not be read"):
        homes.memory("secret_one")


# Sinks that no Airflow knows.


@pytest.fixture
def folder(tmp_path: Path) -> str:
    sinks = [{**SINK, "name": "of_a_file"}]
    (tmp_path / "sinks.yaml").write_text(yaml.safe_dump({"sinks": sinks}))
    return str(tmp_path)


def test_the_sinks_of_a_folder_need_no_airflow(
    desk: Desk, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_AIRFLOW_API_DEFAULT")

    listed = desk.run("list", "--folder", folder, "-o", "json")
    described = desk.run("describe", "of_a_file", "--folder", folder, "-o", "json")
    unknown = desk.run("describe", "of_a_fil", "--folder", folder)

    assert [(sink["sink"], Path(sink["place"]).name) for sink in listed.data] == [
        ("of_a_file", "sinks.yaml:2")
    ]
    assert described.data["target"] == "kafka_test/orders-out"
    assert (unknown.code, 'did you mean "of_a_file"?' in unknown.err) == (64, True)


@pytest.mark.usefixtures("hasty")
def test_a_plan_of_a_folder_is_made_with_what_airflow_remembers(desk: Desk, folder: str) -> None:
    answer = desk.run("plan", "of_a_file", "--folder", folder)

    assert answer.code == 69
    assert "127.0.0.1:1" in answer.out
