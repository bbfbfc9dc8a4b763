"""The checker on real folders: twenty planted mistakes are found, in ours none; command, plug-in, hook."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_provider_sinks.checker.rules import NAMES
from airflow_provider_sinks.checker.rules.problems import OWNED
from airflow_provider_sinks.testing import Limits, Report, assert_no_findings, check_folder

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "planted"
LIMITS = Limits(parse_seconds=5, hang_seconds=15)
MARKER = re.compile(r"# planted: ([\w-]+)")
GOOD = "from airflow_provider_sinks import Sink, sink_dag\n"


@pytest.fixture(scope="module")
def planted() -> Report:
    return check_folder(PLANTED, limits=LIMITS)


def markers() -> set[tuple[str, int, str]]:
    """Return file, line and rule of each mistake, as the files themselves say."""
    return {
        (str(file), number, found[1])
        for file in PLANTED.iterdir()
        if file.suffix in {".py", ".yaml"}
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if (found := MARKER.search(line))
    }


def run(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a Python command, in an Airflow that would answer if it were asked."""
    environment = {**os.environ, "AIRFLOW_VAR_TOPIC": "x", "AIRFLOW_CONN_KAFKA_PROD": "kafka://h"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_twenty_planted_mistakes_are_found_each_on_its_line(planted: Report) -> None:
    found = {(finding.place.file, finding.place.line, finding.rule) for finding in planted.findings}

    assert len(markers()) == 20
    assert found == markers()
    assert len(planted.findings) == 20


def test_each_finding_has_a_remedy(planted: Report) -> None:
    assert all(finding.what and finding.remedy for finding in planted.findings)


def test_files_that_crash_or_exit_do_not_stop_the_others_and_mapped_sinks_are_seen(tmp_path: Path) -> None:
    crash = "# dag of airflow\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    (tmp_path / "crash.py").write_text(crash)
    (tmp_path / "leave.py").write_text("# dag of airflow\nraise SystemExit(0)\n")
    (tmp_path / "good.py").write_text(f"{GOOD}dag = sink_dag(Sink(name='a', source='k/a', target='k/b'))\n")
    (tmp_path / "ignored.py").write_text("# dag of airflow\n1 / 0\n")
    (tmp_path / ".airflowignore").write_text("ignored.py\n")
    (tmp_path / "helper.py").write_text(
        f"{GOOD}def make(name):\n    return Sink(name=name, source='k/a', target='k/c')\n"
    )
    (tmp_path / "mapped.py").write_text(
        "from airflow.sdk import DAG\n"
        "from helper import make\n"
        "from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator as Submit\n"
        "with DAG('mapped', schedule=None):\n"
        "    Submit.partial(task_id='a').expand(sink=[make('one'), {'name': 'x', 'source': 'k/x'}])\n"
    )

    report = check_folder(tmp_path)

    found = [(Path(finding.place.file).name, finding.place.line) for finding in report.findings]
    assert found == [("crash.py", 3), ("leave.py", 2), ("mapped.py", 5), ("mapped.py", 5)]
    assert [finding.rule for finding in report.findings[2:]] == ["invalid-sink", "unlisted-sink"]
    assert (report.files, report.dags, report.sinks) == (5, 2, 2)


MISTAKES = """\
from airflow_provider_sinks import Sink, dags_from_yaml, sink_dag
names = ["e", "f"]
one = Sink(name="a", source="k/a", tagret="k/b", target="k/a1")
two, three = Sink(name="b", source="k/b", target="k/b1"), Sink(name="c", source="k/c", target="k/c 1")
more = [Sink(name=name, source="k/s", target="k/t",
             wheer="x") for name in names]
dag = sink_dag(two, shedule="@daily")
echo = dag.dag_id
again = sink_dag(one)
twice = sink_dag(Sink(name="d", source="k/d", target="k/d1"), dag_id="a")
late = sink_dag(three, evry="1s")
globals().update(dags_from_yaml("{yaml}"))
"""
MISTAKES_IN_YAML = """\
sinks:
  - {name: y1, source: k/1, tagret: k/2}
  - {name: y2, source: k/3, target: k/4}
  - {name: y3, source: k/5, target: k/6, dag: {owner_link: "mailto:a@b.c"}}
  - {name: y2, source: k/7, target: k/8}
"""


def test_one_mistake_does_not_hide_the_next(tmp_path: Path) -> None:
    listed = tmp_path / "s.yaml"
    listed.write_text(MISTAKES_IN_YAML)
    (tmp_path / "dag.py").write_text(MISTAKES.replace("{yaml}", str(listed)))
    (tmp_path / "latin.yaml").write_bytes("sinks:\n  # Zürich\n".encode("latin-1"))

    report = check_folder(tmp_path)

    found = [
        (Path(finding.place.file).name, finding.place.line, finding.rule, finding.what.rpartition(": ")[0])
        for finding in report.findings
    ]
    assert found == [
        ("dag.py", 3, "unknown-option", 'sink "a": tagret'),
        ("dag.py", 4, "invalid-sink", 'sink "c": target.kafka.topic'),
        ("dag.py", 5, "unknown-option", 'sink "e": wheer'),
        ("dag.py", 5, "unknown-option", 'sink "f": wheer'),
        ("dag.py", 7, "unknown-option", "sink_dag() cannot take some of its arguments: shedule"),
        ("dag.py", 10, "duplicate-dag", ""),
        ("dag.py", 11, "unknown-option", "sink_dag() cannot take some of its arguments: evry"),
        ("latin.yaml", 2, "invalid-sink", "line 2: is not UTF-8"),
        ("s.yaml", 2, "unknown-option", "sinks[y1].tagret"),
        ("s.yaml", 4, "invalid-sink", "s.yaml: sinks[y3].dag.owner_link"),
        ("s.yaml", 5, "duplicate-sink", f'sink "y2" is run from {listed}:3 too'),
    ]


def test_behind_a_broken_sink_only_its_echo_is_silent(tmp_path: Path) -> None:
    broken = f"{GOOD}a = Sink(name='a', source='k/a', tagret='k/b')\ndag = sink_dag(a)\n"
    (tmp_path / "dag.py").write_text(f"{broken}print(dag.dag_id)\n1 / 0\n")

    rules = [finding.rule for finding in check_folder(tmp_path).findings]

    assert rules == ["unknown-option", "import-error"]


def test_a_failing_folder_fails_a_test_with_all_findings(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("sinks:\n  - {name: a, source: k/a, tagret: k/b}\n")

    with pytest.raises(AssertionError, match=r's\.yaml:2: unknown-option: .*\n.*did you mean "target"'):
        assert_no_findings(tmp_path)


def test_the_command_ends_with_0_1_or_2(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("sinks:\n  - {name: a, source: k/a, tagret: k/b}\n")
    check = ["-m", "airflow_provider_sinks", "check"]

    found = run(*check, str(tmp_path), "--format", "json")
    shown = run(*check, str(tmp_path), "-f", "github")
    clean = run(*check, str(tmp_path), "--ignore", "unknown-option")
    wrong = [
        run(*check, *given) for given in (["nowhere"], [], [".", "--ignore", "cyle"], [".", "-o", "xml"])
    ]

    (finding,) = json.loads(found.stdout)["findings"]
    assert (found.returncode, shown.returncode, clean.returncode) == (1, 1, 0)
    assert f"::error file={tmp_path}/s.yaml,line=2,title=unknown-option::" in shown.stdout
    assert (finding["line"], finding["rule"]) == (2, "unknown-option")
    assert finding["remedy"] == 'did you mean "target"?'
    assert [done.returncode for done in wrong] == [2, 2, 2, 2]
    assert 'did you mean "cycle"?' in wrong[2].stderr


def test_the_plug_in_makes_a_test_of_each_file_when_asked(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "good.yaml").write_text("sinks:\n  - {name: a, source: k/a, target: k/b}\n")
    (tmp_path / "dags" / "bad.yaml").write_text("sinks:\n  - {name: b, source: k/a, tagret: k/c}\n")
    pytest_ = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path)]

    asked = run(*pytest_, "--sinks", "dags", folder=tmp_path)
    by_settings = run(*pytest_, "-o", "sinks=dags", "-o", "sinks_ignore=unknown-option", folder=tmp_path)
    not_asked = run(*pytest_, folder=tmp_path)

    assert "1 failed, 2 passed" in asked.stdout, asked.stdout + asked.stderr
    assert "dags/bad.yaml:2: unknown-option" in asked.stdout
    assert "3 passed" in by_settings.stdout
    assert "no tests ran" in not_asked.stdout


def test_the_plug_in_imports_nothing_that_is_not_asked_for() -> None:
    code = "import sys, airflow_provider_sinks.pytest_plugin; print(*sys.modules)"

    loaded = set(run("-c", code).stdout.split())

    assert not loaded & {"airflow", "pydantic", "sqlglot", "airflow_provider_sinks.testing"}


def test_the_hook_for_pre_commit_finds_nothing_in_our_own_dags() -> None:
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    python, *arguments = [*shlex.split(hooks[0]["entry"]), *map(str, hooks[0]["args"])]

    done = run(*arguments)

    assert (python, done.returncode) == ("python", 0), done.stdout + done.stderr
    assert f"dags: 0 findings in {len(list((ROOT / 'dags').glob('*.py')))} Python files" in done.stdout


def test_the_rules_know_what_the_operator_owns() -> None:
    from airflow_provider_sinks.operators.submit_sink_job import OWNED as OF_OPERATOR

    assert set(OF_OPERATOR) == OWNED


def test_every_rule_is_documented() -> None:
    text = (ROOT / "docs" / "checking.md").read_text()

    assert set(re.findall(r"^\| `([a-z][\w-]+)` \|", text, re.MULTILINE)) == set(NAMES)
