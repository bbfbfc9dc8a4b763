"""The checker's look at YAML files: which of them hold sinks, and on which line a problem stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.checker.yaml_facts import holds_sinks, yaml_facts
from airflow_provider_sinks.core.spec.yaml_lines import YamlLines

TEXT = """\
# two sinks
sinks:
  - name: first
    source: {kafka: {connection: k, topic: a, schema: "userid string, regoin string"}}
    target:
      kafka:
        connection: k
        topic: b
        key:
          - userid
          - regoin
  - {name: second, source: k/a,
     target: k/c, dag: {owner: me}}
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("sinks[first].target.kafka.topic", 8),
        ("sinks[first].target.kafka.key[1]", 11),
        ("sinks[first].target.kafka.partitions", 6),
        ("sinks[first].source.kafka.topic", 4),
        ("sinks[second].target", 13),
        ("sinks[second].dag.owner", 13),
        ("sinks[1].source", 12),
        ("sinks[second]", 12),
        ("sinks", 2),
        ("", 1),
        ("line 7", 7),
    ],
)
def test_the_line_of_an_option_or_of_the_nearest_thing_around_it(where: str, line: int) -> None:
    assert YamlLines.of(TEXT).line(where) == line


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("sinks: []", True),
        ('"sinks": []', True),
        ("other: 1\nsinks:\n", True),
        ("sink:\n  - {name: a, source: k/a, target: k/b}\n", True),
        ("Sinks:\n  - {name: a, source: k/a, target: k/b}\n", True),
        ("links:\n  - {source: a, target: b}\n", False),
        ("sink: stainless", False),
        ("services:\n  sinks: 1\n", False),
        ("# sinks: none", False),
        ("- a list", False),
    ],
)
def test_only_files_of_sinks_are_looked_at(text: str, holds: bool) -> None:
    assert holds_sinks(text) is holds


def test_valid_sinks_count_beside_those_that_are_not(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TEXT.replace("source: k/a,", "sauce: k/a,"))
    (tmp_path / "b.yml").write_text("sinks:\n  - {name: a, name: b}\n")
    (tmp_path / "chart.yaml").write_text("replicas: 1\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.yaml").write_text("sinks: 1\n")

    first, second = yaml_facts(tmp_path)

    assert [(place.line, spec.name) for place, spec in first.sinks] == [(3, "first")]
    assert [(place.line, problem.where) for place, problem in first.problems] == [(12, "sinks[second].sauce")]
    assert [(place.line, problem.what) for place, problem in second.problems] == [
        (2, "the key 'name' stands twice, first in line 2")
    ]
