"""Sinks from YAML: what is read, and what is refused before it can do harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.connectors.kafka.spec import kafka_sink
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.core.spec.safe_yaml import LARGEST_BYTES
from airflow_provider_sinks.core.spec.sink_file import load_yaml, read_sinks

PAGEVIEWS = """
sinks:
  - name: pageviews_enriched
    source:   {kafka: {connection: kafka_prod, topic: pageviews, format: json, schema: "userid string"}}
    lookups:  {users: {postgres: {connection: pg_prod, table: public.users, refresh: 60s}}}
    query:    SELECT p.userid, u.region FROM source p LEFT JOIN users u USING (userid)
    target:
      kafka:
        connection: kafka_prod
        topic: pageviews-enriched
        key: [userid]
        config: {retention.ms: 604800000}
    trigger:  {every: 1s}
    dead_letter: {topic: pageviews-dlq}
  - {name: mirror, source: kafka_prod/pageviews, target: kafka_prod/copy, trigger: available_now}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        load_yaml(text)
    return [str(problem) for problem in error.value.problems]


def test_sinks_are_read_in_order() -> None:
    enriched, mirror = load_yaml(PAGEVIEWS)

    assert kafka_sink(enriched).target.kafka.config == {"retention.ms": "604800000"}
    assert enriched.dead_letter is not None
    assert mirror.trigger.available_now


def test_anchors_and_merges_may_be_used() -> None:
    text = """
sinks:
  - &first {name: a, source: k/a, target: k/b, trigger: &t {every: 1s}}
  - {<<: *first, name: b, target: k/c, trigger: *t}
"""
    assert [(spec.name, spec.resources[Role.DATA]) for spec in load_yaml(text)] == [
        ("a", "b"),
        ("b", "c"),
    ]


def test_the_problems_of_all_sinks_at_once() -> None:
    text = """
sinks:
  - {name: a, source: k/a, target: k/a}
  - {name: b, source: k/a, target: k/b, trigger: {every: 5}}
  - {source: k/a, taget: k/b}
  - hello
extra: 1
"""
    assert [problem.split(": ")[0] for problem in problems(text)] == [
        "extra",
        "sinks[a].target.kafka.topic",
        "sinks[b].trigger.every",
        "sinks[2].name",
        "sinks[2].taget",
        "sinks[3]",
    ]


def bomb(levels: int) -> str:
    """Return the billion laughs: each level repeats the one below ten times."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, "sinks: []"])


def chain(length: int) -> str:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, length)]
    return "\n".join([*lines, "sinks: []"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "sinks:\n  - name: a\n    name: b\n", "line 3: the key 'name' stands twice", id="key-twice"
        ),
        pytest.param(
            "sinks: []\n'sinks': []\n", "line 2: the key 'sinks' stands twice", id="quoted-key-twice"
        ),
        pytest.param(bomb(9), "more than 100000 values once its aliases are followed", id="bomb"),
        pytest.param(chain(45), "more than 100000 values once its aliases are followed", id="binary-bomb"),
        pytest.param("a: &a 1\nb: [" + "*a, " * 101 + "]", "line 2: more than 100 aliases", id="aliases"),
        pytest.param("a: &a [*a]", "line 1: an alias that holds itself", id="endless"),
        pytest.param("[" * 5000, "line 1: nested more than 30 deep", id="deep"),
        pytest.param("{a: " * 5000, "line 1: nested more than 30 deep", id="deep-mappings"),
        pytest.param("#" * (LARGEST_BYTES + 1), "is larger than 1024 KiB", id="large"),
        pytest.param(
            "a: !!python/object/apply:os.system [ls]", "line 1: plain values only, not the tag", id="tag"
        ),
        pytest.param("a: !secret x", "line 1: plain values only, not the tag '!secret'", id="own-tag"),
        pytest.param("a: 1\n---\nb: 2", "line 2: holds more than one document", id="documents"),
        pytest.param("a: [1, 2", "line 1: while parsing a flow sequence: expected ',' or ']'", id="open"),
        pytest.param("a: *b", "line 1: found undefined alias 'b'", id="no-anchor"),
        pytest.param("? [a, b]\n: c", "line 1: a key must be plain text", id="list-as-key"),
        pytest.param("a: 2026-13-99", "holds a value that cannot be read: month must be in 1..12", id="date"),
        pytest.param("a: \x07", "is not YAML: unacceptable character #x0007", id="bell"),
        pytest.param("", "must be a mapping with the key sinks", id="empty"),
        pytest.param("- a", "must be a mapping with the key sinks", id="list"),
        pytest.param("sink: []", 'must be a mapping with the key sinks (instead of "sink")', id="misspelt"),
        pytest.param("sinks: []", "sinks: must be a list of sinks", id="no-sinks"),
        pytest.param("sinks: {a: b}", "sinks: must be a list of sinks", id="mapping"),
        pytest.param("sinks: [{<<: [1], name: a}]", "expected a mapping for merging", id="merge"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    found = problems(text)

    assert len(found) == 1
    assert problem in found[0]


def test_two_sinks_of_one_name() -> None:
    assert problems("sinks: [{name: a, source: k/a, target: k/b}, {name: a, source: k/a, target: k/c}]") == [
        'line 1: sink "a" stands twice, first in line 1 (give one of them another name, or leave it out)'
    ]


def test_the_example_of_the_design_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "sinks.yaml"
    file.write_text(PAGEVIEWS, encoding="utf-8")

    assert [spec.name for spec in load_yaml(file.read_text(encoding="utf-8"))] == [
        "pageviews_enriched",
        "mirror",
    ]


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("  - name: a", ["a"]),
        ("  - name: a  # the first", ["a"]),
        ("  - {name: 'a', source: k/a}", ["a"]),
        ('  - {"source": "k/a", "name": "a"}', ["a"]),
        ("  - &it {source: k/a, name: a}", ["a"]),
        ("  # - name: a", []),
        ("  - {source: k/a, lookups: {name: {postgres: x}}}", []),
        ("  - {name: with space}", []),
        ("  - {surname: a}", []),
    ],
)
def test_the_names_in_a_file_that_cannot_be_read(entry: str, names: list[str]) -> None:
    found = read_sinks(f"sinks:\n{entry}\n  - [".encode())

    assert [broken.name for broken in found.broken] == names
    assert found.sinks == ()


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("sinks: [{name: a", 'close the "{" of line 1, or write a comma between its keys'),
        ("sinks:\n  - [a, b\n", 'close the "[" of line 2, or write a comma between its values'),
        ("sinks:\n  - name: a: b\n", 'a value that holds ": " needs quotes; or the line is indented too far'),
        ("sinks:\n\t- name: a\n", "indent with spaces, not with tabs"),
        ("sinks:\n  - name: 'a\n", "close the quote of line 2"),
        ("sinks:\n  - name: @a\n", "put the value in quotes"),
        ("sinks:\n  - name: a\n source: b\n", "begin the entries of one list or mapping in the same column"),
        ("sinks:\n  - name: a\n    source\n    target: b\n", 'a key needs ": " behind it; or the line'),
        ("sinks:\n  - name: *a\n", 'name it before by "&", or put the value in quotes'),
        ("sinks:\n  - name: a\n    name: b\n", "leave one of them out"),
        ("sinks:\n  - name: 2026-13-99\n", "put the value in quotes"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_remedy(text: str, remedy: str) -> None:
    ((problem,),) = [read_sinks(text.encode()).problems]

    assert remedy in problem.hint


def test_a_file_of_another_encoding_is_told_with_its_line() -> None:
    found = read_sinks("sinks:\n  - name: a\n    where: town = 'Zürich'\n".encode("latin-1"))

    assert [str(problem) for problem in found.problems] == [
        "line 3: is not UTF-8: byte 0xfc (save the file as UTF-8)"
    ]
