"""Every DAG in ``dags/`` parses without network, connections and Variables, and always to the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DAG_IDS = [
    "alter_connection",
    "clicks_by_hand",
    "clicks_by_region",
    "clicks_clean",
    "orders_avro",
    "pageviews_clean",
    "pageviews_enriched",
    "pageviews_report",
    "pageviews_table",
    "pause_or_resume_sink",
    "replay_dead_letters",
    "reset_sink",
    "rewind_sink",
    "run_sink_once",
    "run_sink_once_into_a_table",
    "views_in_delta",
    "views_in_iceberg",
    "views_in_kafka",
    "views_in_postgres",
]
FORMS = {
    "alter_connection",
    "pause_or_resume_sink",
    "replay_dead_letters",
    "reset_sink",
    "rewind_sink",
    "run_sink_once",
    "run_sink_once_into_a_table",
}


def parse(home: Path, folder: Path = ROOT / "dags") -> dict[str, Any]:
    """Parse a DAG folder in a process of its own, with an empty Airflow home."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",
        "PYTHONHASHSEED": "random",
    }
    program = Path(__file__).with_name("offline_parse.py")
    command = [sys.executable, str(program), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def parsed(home: Path) -> dict[str, Any]:
    return parse(home)


def test_all_dags_parse_offline(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert sorted(parsed["dags"]) == DAG_IDS


def test_a_shipped_form_says_who_may_trigger_it(parsed: dict[str, Any]) -> None:
    granted = {dag_id: dag["dag"].get("access_control") for dag_id, dag in parsed["dags"].items()}

    assert {dag_id for dag_id, given in granted.items() if given} == FORMS
    for form in FORMS:
        roles = {role: rights["__var"] for role, rights in granted[form]["__var"].items()}
        assert {role for role, rights in roles.items() if "DAG Runs" in rights} == {"Op"}, form
        assert roles["User"] == roles["Viewer"] == {"DAGs": {"__var": ["can_read"], "__type": "set"}}, form


def test_parsing_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    heavy = {"pyspark", "confluent_kafka", "psycopg", "pyarrow", "pandas", "airflow_provider_sinks.streaming"}

    assert heavy.isdisjoint(parsed["modules"])


def test_parsing_twice_gives_the_same_bytes(parsed: dict[str, Any], home: Path) -> None:
    again = parse(home)

    # Airflow sorts the keys too before it takes the hash that makes a new version of a DAG.
    assert json.dumps(again["dags"], sort_keys=True) == json.dumps(parsed["dags"], sort_keys=True)


def test_the_demo_goes_validate_check_submit(parsed: dict[str, Any]) -> None:
    tasks = {
        task["__var"]["task_id"]: task["__var"]
        for task in parsed["dags"]["pageviews_enriched"]["dag"]["tasks"]
    }

    assert tasks["validate"]["downstream_task_ids"] == ["check_topics"]
    assert tasks["check_topics"]["downstream_task_ids"] == ["submit"]


def test_the_assets_carry_the_spec_and_the_connections(parsed: dict[str, Any]) -> None:
    tasks = {
        task["__var"]["task_id"]: task["__var"]
        for task in parsed["dags"]["pageviews_enriched"]["dag"]["tasks"]
    }
    submit = tasks["submit"]

    outlet = submit["outlets"][0]["__var"]
    assert outlet["name"] == outlet["uri"] == "sink:pageviews_enriched"
    assert json.loads(outlet["extra"]["spec"])["name"] == "pageviews_enriched"
    assert outlet["extra"]["connections"] == ["kafka_prod", "pg_prod"]
    assert [inlet["__var"]["name"] for inlet in submit["inlets"]] == [
        "connection:kafka_prod",
        "connection:pg_prod",
    ]


def test_the_report_waits_for_the_very_asset_that_the_sink_writes(parsed: dict[str, Any]) -> None:
    waited_for = json.dumps(parsed["dags"]["pageviews_report"]["dag"]["timetable"])
    tasks = [task["__var"] for task in parsed["dags"]["pageviews_enriched"]["dag"]["tasks"]]
    (outlet,) = [asset["__var"] for task in tasks for asset in task.get("outlets", ())]

    assert "AssetTriggeredTimetable" in waited_for
    assert f'"name": "{outlet["name"]}"' in waited_for
    assert f'"uri": "{outlet["uri"]}"' in waited_for
