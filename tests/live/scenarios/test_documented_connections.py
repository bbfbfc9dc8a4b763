"""Connections made as the docs say: no secret of theirs stands in the event log, or is shown by anybody."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest
import yaml

from airflow_provider_sinks.local.airflow import AirflowStack

PAGES = ("getting-started.md", "sinks-commands.md")
DOCS = Path(__file__).parents[3] / "docs"
KEY = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def canary() -> str:
    return f"canary{uuid.uuid4().hex}"


def event_log(airflow: AirflowStack) -> str:
    return repr(airflow.metadata.tables()["log"])


def shown(airflow: AirflowStack) -> str:
    return str(airflow.call("GET", "connections", limit=100))


def files_of(page: str) -> list[str]:
    """Return the connection files that a page has, word by word."""
    blocks = re.findall(r"```yaml\n(# connections\.yaml.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert blocks
    return blocks


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_is_imported(airflow: AirflowStack, canary: str, page: str, tmp_path: Path) -> None:
    for number, block in enumerate(files_of(page)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(re.sub(r"(?m)^(\w+):$", rf"\1_{number}:", block).replace('"..."', f'"{canary}"'))
        airflow.command("connections", "import", str(file))

        for conn_id in yaml.safe_load(file.read_text()):
            assert airflow.call("GET", f"connections/{conn_id}")["password"] == "***"
            assert canary in airflow.command("connections", "get", conn_id, "-o", "json")
    assert "connections_import" in event_log(airflow)
    assert canary not in event_log(airflow) + shown(airflow)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"extra": {"sasl.password": "{secret}"}}, id="in the extra"),
        pytest.param({"password": "{secret}"}, id="in the password field"),
        pytest.param({"password": KEY.replace("secret", "{secret}")}, id="a private key"),
    ],
)
def test_the_form_of_the_ui(airflow: AirflowStack, canary: str, fields: dict[str, object]) -> None:
    given = json.loads(json.dumps(fields).replace("{secret}", canary))

    conn_id = f"ui_{uuid.uuid4().hex[:8]}"
    airflow.add_connection(conn_id, "kafka", **given)

    assert conn_id in event_log(airflow)
    assert canary not in event_log(airflow) + shown(airflow)


_VALIDATE = """
import datetime

from airflow.sdk import DAG

from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

with DAG({dag_id!r}, schedule=None, start_date=datetime.datetime(2025, 1, 1)):
    ValidateConnectionOperator(task_id="validate", conn_id={conn_id!r})
"""


def test_a_private_key_in_the_extra_is_refused_with_the_way_on(airflow: AirflowStack, canary: str) -> None:
    conn_id = f"shows_its_key_{uuid.uuid4().hex[:8]}"
    extra = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL"}
    key = KEY.replace("secret", canary)
    airflow.add_connection(conn_id, "kafka", extra={**extra, "ssl.key.pem": key})
    file = airflow.dags_folder / f"validate_{conn_id}.py"
    file.write_text(_VALIDATE.format(dag_id=file.stem, conn_id=conn_id))

    run = airflow.trigger(file.stem)
    ended = airflow.wait_for_run(run)
    said = airflow.task_log(run, "validate")
    file.unlink()

    assert ended == "failed"
    assert "ssl.key.pem: stands in the extra, where Airflow shows it in clear" in said
    assert "put the key into the password field" in said
    assert canary not in said
    airflow.call("DELETE", f"connections/{conn_id}")


def test_what_the_docs_warn_of_is_so(airflow: AirflowStack, canary: str) -> None:
    extra = json.dumps({"sasl.password": canary})

    airflow.command(
        "connections", "add", f"cli_{uuid.uuid4().hex[:8]}", "--conn-type", "kafka", "--conn-extra", extra
    )

    assert canary in event_log(airflow)
