"""The built wheel, installed into a clean environment: Airflow sees the provider, Spark finds its files."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
import yaml

from airflow_provider_sinks.cli.new_connector import template
from tests.airflow.api_server import account, airflow_url
from tests.airflow_side import airflow_db
from tests.live.built_wheel import PROJECT, PROJECT_URL, clean_environment, run, wheel

__all__ = ["airflow_db", "airflow_url", "wheel"]
pytestmark = pytest.mark.filterwarnings("default")  # of the Airflow in this process


AS_TYPED = """
import shlex, sys
from airflow.cli.cli_parser import get_parser
for line in sys.stdin:
    asked = get_parser().parse_args(shlex.split(line)[1:])
    asked.func(asked)
"""
"""Runs each line that it is given as ``airflow`` does, without starting anew for each."""


def documented() -> list[str]:
    """Return the commands of our pages that make a connection, word by word, each on one line."""
    texts = [page.read_text(encoding="utf-8") for page in sorted((PROJECT / "docs").glob("*.md"))]
    found = [command for text in texts for command in COMMAND.findall(text)]
    return [command.replace("\\\n", " ") for command in found]


def documented_files() -> list[str]:
    """Return the files that our pages have imported, word by word."""
    texts = [page.read_text(encoding="utf-8") for page in sorted((PROJECT / "docs").glob("*.md"))]
    return [file for text in texts for file in FILE.findall(text)]


COMMAND = re.compile(r"^airflow connections add (?:.*\\\n)*.*", re.MULTILINE)
FILE = re.compile(r"^```yaml\n(# connections\.yaml.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTED, FILES = documented(), documented_files()


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that has the wheel and what it asks for, and nothing else."""
    return clean_environment(tmp_path_factory.mktemp("clean environment"), f"{wheel}[kafka,postgres]")


@pytest.fixture(scope="module")
def home(clean_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of an Airflow of the clean environment, with the connections that our pages make."""
    folder = tmp_path_factory.mktemp("clean home")
    given = "\n".join(["airflow db migrate", *DOCUMENTED])
    for number, text in enumerate(FILES):
        (folder / f"{number}.yaml").write_text(text, encoding="utf-8")
        given += f"\nairflow connections import {number}.yaml"
    run(clean_python, "-c", AS_TYPED, folder=folder, given=given)
    return folder


def test_the_wheel_holds_one_top_level_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    version = wheel.name.split("-")[1]

    assert {name.split("/")[0] for name in names} == {
        "airflow_provider_sinks",
        f"airflow_provider_sinks-{version}.dist-info",
    }
    assert "airflow_provider_sinks/py.typed" in names
    assert "airflow_provider_sinks/spark_jobs/sink_job.py" in names


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
    files = [path for path in (PROJECT / "airflow_provider_sinks").rglob("*") if path.is_file()]

    assert {str(path.relative_to(PROJECT)) for path in files if path.suffix != ".pyc"} <= names


def test_the_wheel_has_the_addresses_of_its_project_and_no_link_that_leads_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        (name,) = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        page = content.read(name).decode()

    named = dict(re.findall(r"^Project-URL: (\w+), (\S+)$", page, re.MULTILINE))
    assert set(named) == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert {address.startswith(PROJECT_URL) for address in named.values()} == {True}
    assert f"]({PROJECT_URL}/blob/v" in page
    assert "Description-Content-Type: text/markdown" in page
    assert "# airflow-provider-sinks" in page
    assert not re.search(r"\]\((?!https?://|mailto:|#)", page)


def test_airflow_lists_the_provider(clean_python: str, tmp_path: Path) -> None:
    listed = run(clean_python, "-m", "airflow", "providers", "list", "--output", "plain", folder=tmp_path)

    assert "airflow-provider-sinks" in listed


def test_the_operator_finds_its_application_and_its_library(clean_python: str, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from airflow_provider_sinks.drivers.application import application_file, write_library\n"
        "print(application_file()); print(write_library(Path.cwd()))\n"
    )
    application, library = run(clean_python, "-c", code, folder=tmp_path).splitlines()
    found = Path(application)

    assert found.is_relative_to(Path(clean_python).parents[1])
    assert "def main" in found.read_text()
    assert zipfile.is_zipfile(library)


def test_the_forms_are_in_the_wheel(clean_python: str, tmp_path: Path) -> None:
    code = (
        "from airflow_provider_sinks import forms\n"
        "made = [getattr(forms, name)() for name in forms.__all__ if name.endswith('_dag')]\n"
        "print(*(dag.dag_id for dag in made))\n"
    )
    made = run(clean_python, "-c", code, folder=tmp_path)

    forms = "alter_connection pause_or_resume_sink replay_dead_letters reset_sink rewind_sink run_sink_once"
    assert forms in made


def test_the_checker_works_where_there_is_no_spark(clean_python: str, tmp_path: Path) -> None:
    (tmp_path / "dag.py").write_text(
        "from airflow_provider_sinks import Sink, sink_dag\n"
        "dag = sink_dag(Sink(name='a', source='k/a', target='k/b'))\n"
    )

    checked = run(clean_python, "-m", "airflow_provider_sinks", "check", str(tmp_path), folder=tmp_path)

    assert "0 findings in 1 Python file, 1 DAG and 1 sink" in checked


def test_each_documented_connection_is_made_with_the_type_that_it_names(
    clean_python: str, home: Path
) -> None:
    named = dict(re.findall(r"add (\S+) --conn-type (\S+)", "\n".join(DOCUMENTED)))
    for text in FILES:
        named |= {conn_id: fields["conn_type"] for conn_id, fields in yaml.safe_load(text).items()}

    run(clean_python, "-m", "airflow", "connections", "export", "made.json", folder=home)

    made = {name: one["conn_type"] for name, one in json.loads((home / "made.json").read_text()).items()}
    assert made == named
    assert set(named.values()) >= {"http", "kafka", "postgres", "spark"}


def test_no_type_becomes_generic_on_the_command_line(clean_python: str, home: Path) -> None:
    types = ["http", "kafka", "postgres", "spark"]
    adds = [f"airflow connections add by_hand_{kind} --conn-type {kind} --conn-host h" for kind in types]
    given = "\n".join([*adds, "airflow connections export all.json"])

    run(clean_python, "-c", AS_TYPED, folder=home, given=given)

    made = json.loads((home / "all.json").read_text())
    assert [made[f"by_hand_{kind}"]["conn_type"] for kind in types] == types


def test_a_connector_is_written_from_what_the_wheel_has(clean_python: str, tmp_path: Path) -> None:
    run(clean_python, "-m", "airflow", "sinks", "new-connector", "shelf", folder=tmp_path)

    written = tmp_path / "sinks-connector-shelf"
    ours = {path.replace("mytarget", "shelf") for path in template()}
    assert {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()} == ours


def test_the_commands_of_sinks_reach_an_airflow(clean_python: str, home: Path, airflow_url: str) -> None:
    fields = account(airflow_url)
    there = f"--conn-host {fields['host']} --conn-port {fields['port']} "
    there += f"--conn-login {fields['login']} --conn-password '{fields['password']}'"
    made = f"airflow connections add airflow_api_default_here --conn-type http {there}"
    run(clean_python, "-c", AS_TYPED, folder=home, given=made)
    asked = ["airflow", "sinks", "list", "--api-conn-id", "airflow_api_default_here", "-o", "json"]

    listed = json.loads(run(clean_python, "-m", *asked, folder=home))

    # Which sinks this Airflow knows hangs on the tests that ran before; that it is asked is what counts here.
    assert isinstance(listed, list)
    assert all(entry["sink"] for entry in listed)
