"""Sinks in YAML files as DAGs; what becomes of a sink that is not valid, and of its neighbours."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_sinks import dags_from_yaml
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.dag.yaml_files import BrokenSinkWarning

if TYPE_CHECKING:
    from airflow.sdk import DAG

CLICKS = """
sinks:
  - {name: clicks, source: kafka_test/clicks, target: kafka_test/clicks-copy}
"""
GOOD = "  - {name: good, source: k/a, target: k/b}\n"
TYPO = "  - {name: typo, source: k/c, tagret: k/d, trigger: {every: 1s}, dag: {owner: me}}\n"


def read(file: Path, text: str, **options: Any) -> tuple[dict[str, DAG], list[str]]:
    """Return the DAGs of a text, and what was warned of."""
    file.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dags = dags_from_yaml(file, **options)
    return dags, [str(one.message) for one in caught if one.category is BrokenSinkWarning]


def test_yaml_gives_one_dag_for_each_sink(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLICKS)
    (tmp_path / "b.yml").write_text(CLICKS.replace("clicks", "views"))
    (tmp_path / "readme.md").write_text("no sink")

    dags = dags_from_yaml(tmp_path, schedule="@daily")

    assert sorted(dags) == ["clicks", "views"]
    assert str(dags["views"].schedule) == "@daily"


def test_what_a_sink_says_about_its_dag_wins(tmp_path: Path) -> None:
    file = tmp_path / "sinks.yaml"
    own = (
        "{schedule: '@hourly', owner: team-a, owner_link: 'mailto:a@b.example', tags: [x], check_topics: no}"
    )
    first = "  - {name: first, source: k/a, target: k/b}\n"
    file.write_text(f"sinks:\n{first}  - {{name: second, source: k/a, target: k/c, dag: {own}}}\n")

    dags = dags_from_yaml(file, schedule="@daily", tags=["all"])

    first_dag, second_dag = dags["first"], dags["second"]
    assert (str(first_dag.schedule), first_dag.tags) == ("@daily", {"all"})
    assert (str(second_dag.schedule), second_dag.tags) == ("@hourly", {"x"})
    assert second_dag.owner_links == {"team-a": "mailto:a@b.example"}
    assert "check_topics" not in second_dag.task_ids


def test_the_problems_of_all_files_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLICKS.replace("target", "tagret"))
    (tmp_path / "b.yaml").write_text(CLICKS.replace("}", ", dag: {owner_link: x, shedule: y}}"))

    with pytest.raises(ConfigurationError) as error:
        dags_from_yaml(tmp_path, on_error="raise")

    assert [str(problem) for problem in error.value.problems] == [
        'a.yaml: sinks[clicks].tagret: is not known (did you mean "target"?)',
        "b.yaml: sinks[clicks].dag.owner_link: 'x' is no link (https://... or mailto:...)",
        'b.yaml: sinks[clicks].dag.shedule: is not known (did you mean "schedule"?)',
    ]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing cannot be read"):
        dags_from_yaml(tmp_path / "nothing")


def test_two_files_with_one_sink_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLICKS)
    (tmp_path / "b.yaml").write_text(CLICKS)

    with pytest.raises(ConfigurationError, match=r"clicks: stands in a\.yaml and in b\.yaml"):
        dags_from_yaml(tmp_path, on_error="raise")


def test_one_typo_is_one_warning_and_one_dag_that_says_so_and_the_others_stay(tmp_path: Path) -> None:
    dags, warned = read(tmp_path / "s.yaml", f"sinks:\n{TYPO}{GOOD}")

    broken, good = dags["typo"], dags["good"]
    submit: Any = broken.get_task("submit")
    what = 's.yaml: sinks[typo].tagret: is not known (did you mean "target"?)'
    assert sorted(good.task_ids) == ["check_topics", "submit", "validate"]
    assert [what in text for text in warned] == [True]
    assert what in (broken.doc_md or "")
    with pytest.raises(AirflowFailException) as error:
        submit.execute({})
    assert what in str(error.value)


def test_the_dag_of_a_broken_sink_keeps_its_place(tmp_path: Path) -> None:
    options: dict[str, Any] = {"access_control": {"team": {"can_read"}}, "default_args": {"pool": "streams"}}
    dags, _ = read(tmp_path / "s.yaml", f"sinks:\n{TYPO}{GOOD}", **options)

    broken, submit = dags["typo"], dags["typo"].get_task("submit")
    assert broken.task_ids == ["validate", "submit"]  # as the endless sink has them: a run under way goes on
    assert [asset.name for asset in submit.outlets] == ["sink:typo"]  # else Airflow forgets what it remembers
    assert broken.tags == {"sinks", "broken", "connection:k"}
    assert (submit.owner, submit.pool) == ("me", "streams")
    assert broken.access_control == dags["good"].access_control
    assert type(broken.timetable).__name__ == "NullTimetable"
    assert broken.max_consecutive_failed_dag_runs == 0  # it is not paused, so that the mended sink starts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"sinks:\n{GOOD}  - {{name: [\n{TYPO}", "line 4: "),
        (f"sinks:\n{GOOD}{TYPO}  - {{name: caf\xe9}}\n", "line 4: is not UTF-8: byte 0xe9"),
        (f"snks:\n{GOOD}{TYPO}", "must be a mapping with the key sinks"),
    ],
    ids=["syntax", "latin-1", "key"],
)
def test_no_sink_is_taken_from_a_file_that_cannot_be_read_and_none_of_those_in_it_vanishes(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "a.yaml").write_text(CLICKS)
    (tmp_path / "b.yaml").write_bytes(text.encode("latin-1"))

    with pytest.warns(BrokenSinkWarning, match="b.yaml: ") as warned:
        dags = dags_from_yaml(tmp_path)

    assert sorted(dags) == ["clicks", "good", "typo"]
    assert dags["good"].tags == {"sinks", "broken"}
    assert "broken" not in dags["clicks"].tags
    assert all(f"b.yaml: {said}" in str(one.message) for one in warned)


@pytest.mark.parametrize(
    ("text", "dag_ids"),
    [
        ("sinks:\n  - {nmae: a, source: k/a, target: k/b}\n" + GOOD, ["broken.s.yaml", "good"]),
        ("sinks:\n  - hello\n" + GOOD, ["broken.s.yaml", "good"]),
        ("more: 1\nsinks:\n" + GOOD, ["broken.s.yaml", "good"]),
        ("sinks: []\n", ["broken.s.yaml"]),
        ("\x07", ["broken.s.yaml"]),
        ("sinks:\n" + GOOD + GOOD.replace("k/b", "k/c"), ["good"]),
        ("sinks:\n" + GOOD + GOOD.replace("source", "sauce"), ["broken.s.yaml", "good"]),
        (
            "sinks:\n  - {name: a, source: k/a, target: k/b, dag: {schedule: '@hurly'}}\n" + GOOD,
            ["a", "good"],
        ),
        ("sinks:\n  - {name: a, source: 2026-01-01, target: {k: !!set {x}}}\n" + GOOD, ["a", "good"]),
    ],
    ids=str,
)
def test_what_has_no_name_of_its_own_is_said_by_a_dag_of_the_file(
    tmp_path: Path, text: str, dag_ids: list[str]
) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dags, warned = read(tmp_path / "s.yaml", text)

    assert sorted(dags) == dag_ids
    assert len(warned) == 1
    assert [DagSerialization.to_dict(dag)["dag"]["dag_id"] for dag in dags.values()] == list(dags)


def test_of_two_sinks_with_one_name_none_runs(tmp_path: Path) -> None:
    dags, (warned,) = read(tmp_path / "s.yaml", f"sinks:\n{GOOD}{GOOD.replace('k/b', 'k/c')}")

    assert 's.yaml: line 3: sink "good" stands twice, first in line 2' in warned
    assert "broken" in dags["good"].tags


def test_a_wrong_option_is_nobodys_typo(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(f"sinks:\n{GOOD}")

    wrongs: list[dict[str, Any]] = [{"shedule": "@daily"}, {"every": 5}, {"on_error": "ignore"}]
    for wrong in [*wrongs, {"spark": {"pakages": "a"}}]:
        with pytest.raises(ConfigurationError, match=r"dags_from_yaml\(\) cannot take"):
            dags_from_yaml(tmp_path, **wrong)


def test_the_same_mistake_gives_the_same_bytes(tmp_path: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    text = f"sinks:\n{TYPO}"
    first, second = (read(tmp_path / "s.yaml", text)[0]["typo"] for _ in range(2))

    assert DagSerialization.to_dict(first) == DagSerialization.to_dict(second)
