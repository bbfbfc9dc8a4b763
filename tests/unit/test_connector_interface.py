"""A new target is one folder: what it may import is written down, and nothing of ours knows it by name."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_sinks.connectors import base
from airflow_provider_sinks.connectors.base import Run, SchemaEvolvable, SchemaRegistryAware, SinkConnector
from airflow_provider_sinks.connectors.epoch_writer import EpochWriter, WriterFactory
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.testing.interface import INTERFACE, foreign_imports
from tests.installed_connector import EXAMPLE

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| `([\w.]+)` \| (.+) \|$", re.MULTILINE)


def test_the_example_imports_nothing_but_the_interface() -> None:
    assert foreign_imports(EXAMPLE) == []


def test_an_import_of_anything_else_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "kind.py").write_text(
        "import pyarrow\n"
        "from airflow_provider_sinks.connectors import rows, registry\n"
        "def connect():\n"
        "    import airflow_provider_sinks.streaming.job\n"
        "    from airflow_provider_sinks.connectors.kafka.wire import KafkaWire\n"
    )

    assert foreign_imports(tmp_path) == [
        "kind.py:2: airflow_provider_sinks.connectors",
        "kind.py:4: airflow_provider_sinks.streaming.job",
        "kind.py:5: airflow_provider_sinks.connectors.kafka.wire",
    ]


def test_the_page_lists_the_interface() -> None:
    page = (ROOT / "docs" / "writing-a-connector.md").read_text(encoding="utf-8")

    assert dict(_ROW.findall(page[page.index("## What you may import") :])) == dict(INTERFACE)


def test_what_targets_import_of_the_interface_is_there_wherever_it_stands() -> None:
    moved = {Run: "run", SchemaEvolvable: "schema_parts", SchemaRegistryAware: "schema_parts"}

    assert {named: named.__module__.rpartition(".")[2] for named in moved} == moved
    assert {named.__name__ for named in moved} <= set(base.__all__)


def test_the_page_tells_of_each_method_who_calls_it() -> None:
    page = (ROOT / "docs" / "writing-a-connector.md").read_text(encoding="utf-8")
    told = page[page.index("## Who calls what") : page.index("## Who commits")]
    methods = {
        name
        for protocol in (ConnectorKind, SinkConnector, EpochWriter, WriterFactory)
        for name in vars(protocol)
        if not name.startswith("_")
    }

    assert {name for name in methods if not re.search(rf"`(KIND\.)?{name}`", told)} == set()


def test_the_example_is_one_folder_that_nothing_of_ours_knows() -> None:
    ours = [
        *ROOT.glob("airflow_provider_sinks/**/*.py"),
        *ROOT.glob("spark_jobs/*.py"),
        ROOT / "pyproject.toml",
    ]

    assert [path for path in ours if "sinks_connector_files" in path.read_text(encoding="utf-8")] == []
