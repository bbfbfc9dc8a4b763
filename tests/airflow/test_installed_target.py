"""A target that another package brings, and that needs no connection, on the Airflow side."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from airflow_provider_sinks import Sink, kafka
from airflow_provider_sinks.checker.facts import FolderFacts, Place, YamlFacts
from airflow_provider_sinks.checker.rules.topics import shared_data
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.json_schema import document_schema
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.drivers.application import write_library
from tests.airflow.fakes import KAFKA
from tests.installed_connector import Installed

if TYPE_CHECKING:
    from tests.airflow.desk import Define, Desk


@pytest.fixture(autouse=True)
def _found(installed_files: Installed) -> Iterator[None]:
    with installed_files.found():
        yield


def sink(name: str = "orders", **changes: Any) -> dict[str, Any]:
    source = {"kafka": {"connection": "kafka_test", "topic": "orders", "schema": "id long"}}
    return {"name": name, "source": source, "target": {"files": {"path": "/data/orders"}}, **changes}


def test_all_problems_of_its_spec_are_told_at_once() -> None:
    target = {"files": {"path": "data", "compresion": "zstd", "connection": "kafka_test"}}

    with pytest.raises(ConfigurationError) as refused:
        SinkSpec.parse(sink(target=target, where=""))

    told = refused.value.detail
    assert "target.files.path: 'data' is no folder (write its whole path, such as /data/orders)" in told
    assert "target.files.compresion" in told
    assert "target.files.connection" in told
    assert "where" in told


def test_a_misspelt_kind_is_judged_by_the_nearest() -> None:
    with pytest.raises(ConfigurationError) as refused:
        SinkSpec.parse(sink(target={"fles": {"path": "/data/orders"}}))

    assert 'did you mean "files"?' in refused.value.detail


def test_it_travels_as_json_and_names_no_connection_of_its_own() -> None:
    spec = SinkSpec.parse(sink())

    assert SinkSpec.parse(json.loads(spec.to_json())) == spec
    assert spec.connections == ("kafka_test",)


def test_the_schema_for_editors_knows_it_beside_ours() -> None:
    judge = jsonschema.Draft202012Validator(document_schema())

    assert judge.is_valid({"sinks": [sink(dead_letter={"path": "/data/dead"})]})
    assert judge.is_valid({"sinks": [sink(target={"postgres": "pg/public.orders"})]})
    assert not judge.is_valid({"sinks": [sink(target={"files": {"folder": "/data/orders"}})]})


def test_a_dag_is_made_of_it_and_its_page_tells_where_the_rows_go() -> None:
    from airflow_provider_sinks import sink_dag

    declared = Sink(
        name="to_files",
        source=kafka("kafka_test", "orders", schema="id long"),
        target={"files": {"path": "/data/orders"}},
    )
    dag = sink_dag(declared)

    assert "Parquet files in `/data/orders`" in str(dag.doc_md)
    assert "the manifests: `/data/_sinks_progress`" in str(dag.doc_md)


def test_its_connections_are_resolved_without_one_for_the_target(connections: Define) -> None:
    from airflow_provider_sinks.connectors.registry import connection_types, end_types
    from airflow_provider_sinks.hooks.connections import resolve

    connections(kafka_test=KAFKA)
    spec = SinkSpec.parse(sink())

    assert connection_types(spec) == {"kafka_test": "kafka"}
    assert end_types(spec) == {"kafka_test": "kafka"}
    assert list(resolve(spec).options) == ["kafka_test"]


def test_a_validation_judges_it_although_it_has_no_connection(desk: Desk, tmp_path: Path) -> None:
    target = {"files": {"path": str(tmp_path / "orders")}}
    (tmp_path / "sinks.yaml").write_text(yaml.safe_dump({"sinks": [sink(target=target)]}))

    found = desk.run("check", "--folder", str(tmp_path), "--ask-spark", "never", "-o", "json").data

    judged = {check["name"]: check["outcome"] for check in found if check["subject"] == "target files"}
    assert judged == {
        f'data table "{tmp_path}/orders"': "pass",
        f'progress table "{tmp_path}/_sinks_progress"': "pass",
    }


def test_the_checker_finds_two_sinks_that_write_one_folder() -> None:
    written = [(Place("sinks.yaml", line), SinkSpec.parse(sink(f"sink_{line}"))) for line in (1, 9)]

    (finding,) = shared_data(FolderFacts(yaml=(YamlFacts("sinks.yaml", tuple(written)),)))

    assert finding.what == (
        'sink "sink_9" writes its rows to output "/data/orders" of target files, '
        'to which sink "sink_1" (sinks.yaml:1) writes its rows'
    )


def test_a_cluster_finds_it_in_its_wheel_beside_our_library(
    installed_files: Installed, tmp_path: Path
) -> None:
    library = write_library(tmp_path)
    wheel = shutil.copy(installed_files.wheel, tmp_path / "files.zip")  # as --py-files takes it
    program = (
        "from airflow_provider_sinks.core.spec.kinds import load, points\n"
        "print(list(points()), load('files').writer_module)"
    )
    paths = f"import sys; sys.path[:0] = [{str(library)!r}, {str(wheel)!r}]\n"

    done = subprocess.run(
        [sys.executable, "-c", paths + program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (
        done.stdout.strip()
        == "['delta', 'files', 'iceberg', 'kafka', 'postgres', 'spark'] sinks_connector_files.writer"
    ), done.stderr
