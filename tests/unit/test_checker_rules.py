"""The rules of the checker, one by one, on facts that are written down here."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.checker.facts import (
    DagFacts,
    End,
    Failure,
    FileFacts,
    FolderFacts,
    Limits,
    Place,
    Reach,
    ReachKind,
    SinkFacts,
    TaskFacts,
    TaskKind,
    YamlFacts,
)
from airflow_provider_sinks.checker.finding import Finding
from airflow_provider_sinks.checker.rules import NAMES, RULES, judge
from airflow_provider_sinks.checker.rules.dags import difference
from airflow_provider_sinks.checker.rules.problems import PROBLEM_RULES
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.spec.sink import SinkSpec

FILE = "/dags/a.py"
LIMITS = Limits(parse_seconds=1.0, hang_seconds=2.0)


def at(line: int, file: str = FILE) -> Place:
    return Place(file, line)


def task(line: int, sink: Any, **more: Any) -> TaskFacts:
    """A task that submits a sink declared on its own line."""
    task_id = more.pop("task_id", "submit")
    kind = more.pop("kind", TaskKind.SUBMIT)
    if isinstance(sink, dict):
        more.setdefault("outlets", (f"sink:{sink['name']}",))
    return TaskFacts(f"dag_{line}", task_id, kind, at(line), (SinkFacts(at(line), sink),), **more)


def sink(name: str, source: str = "in", target: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name, "source": f"k/{source}", "target": f"k/{target or name}", **more}


def tasks(*found: TaskFacts) -> FolderFacts:
    return FolderFacts((FileFacts(FILE, End.READ, tasks=found),), limits=LIMITS)


def files(*found: FileFacts, again: tuple[FileFacts, ...] | None = None) -> FolderFacts:
    return FolderFacts(found, found if again is None else again, limits=LIMITS)


def file_(end: End = End.READ, seconds: float = 0.1, **more: Any) -> FileFacts:
    return FileFacts(FILE, end, seconds, **more)


def dag(line: int, dag_id: str = "d", text: str = "{}", **more: Any) -> DagFacts:
    return DagFacts(dag_id, at(line), text, **more)


def failure(kind: str, *problems: Problem, text: str = "said") -> FileFacts:
    return file_(End.FAILED, failures=(Failure(at(3), kind, text, problems),))


def yaml_file(*sinks: dict[str, Any], name: str = "/dags/s.yaml") -> YamlFacts:
    return YamlFacts(
        name, tuple((Place(name, line), SinkSpec.parse(one)) for line, one in enumerate(sinks, 2))
    )


MISTAKES = [
    pytest.param(failure("SyntaxError"), "import-error", 3, id="syntax"),
    pytest.param(failure("ImportError"), "import-error", 3, id="import"),
    pytest.param(file_(End.DIED, stood_at=at(5)), "import-error", 5, id="died"),
    pytest.param(file_(End.HUNG, stood_at=at(7)), "hangs", 7, id="hangs"),
    pytest.param(file_(End.HUNG), "hangs", 1, id="hangs-somewhere-else"),
    pytest.param(file_(seconds=1.5, stood_at=at(9)), "slow", 9, id="slow"),
    pytest.param(file_(reaches=(Reach(ReachKind.NETWORK, "h:1", at(4)),)), "network", 4, id="network"),
    pytest.param(
        file_(reaches=(Reach(ReachKind.NETWORK, "h", at(4)), Reach(ReachKind.NETWORK, "h:1", at(4)))),
        "network",
        4,
        id="network-once-for-each-line",
    ),
    pytest.param(
        file_(
            End.FAILED,
            failures=(Failure(at(4), "OSError", "no network"),),
            reaches=(Reach(ReachKind.NETWORK, "h", at(4)),),
        ),
        "network",
        4,
        id="network-that-ends-the-reading",
    ),
    pytest.param(file_(reaches=(Reach(ReachKind.VARIABLE, "x", at(4)),)), "variable", 4, id="variable"),
    pytest.param(file_(reaches=(Reach(ReachKind.CONNECTION, "x", at(4)),)), "connection", 4, id="connection"),
    pytest.param(file_(dags=(dag(2), dag(6))), "duplicate-dag", 6, id="two-dags-of-one-name"),
    pytest.param(file_(dags=(dag(2, flaw="a cycle"),)), "not-a-dag", 2, id="not-taken"),
    pytest.param(
        failure("ConfigurationError", Problem("shedule", "is not known", 'did you mean "schedule"?')),
        "unknown-option",
        3,
        id="unknown-argument",
    ),
    pytest.param(
        failure("ConfigurationError", Problem("spark.java_class", "the application is Python")),
        "owned-argument",
        3,
        id="owned-by-the-factory",
    ),
    pytest.param(
        failure("ConfigurationError", Problem("conn_id", "a sink has several")),
        "owned-argument",
        3,
        id="owned-by-the-operator",
    ),
    pytest.param(
        failure("ConfigurationError", Problem("target.kafka.key", "is missing: a stateful query needs one")),
        "plan",
        3,
        id="plan-without-a-key",
    ),
    pytest.param(
        failure("ConfigurationError", Problem("target.kafka.key[0]", "'a' is no column of the output")),
        "invalid-sink",
        3,
        id="key-that-is-no-column",
    ),
]


@pytest.mark.parametrize(("fact", "rule", "line"), MISTAKES)
def test_a_mistake_of_a_file_is_found_once_with_its_line(fact: FileFacts, rule: str, line: int) -> None:
    (finding,) = judge(files(fact))

    assert (finding.rule, finding.place) == (rule, at(line))
    assert finding.remedy


TOPICS = [
    pytest.param([sink("a", target="x"), sink("b", target="x")], "shared-topic", 2, id="rows-and-rows"),
    pytest.param(
        [sink("a", target="x"), sink("b", dead_letter="x")], "shared-dead-letter", 2, id="dead-rows"
    ),
    pytest.param(
        [sink("a", dead_letter="x"), sink("b", target="x")], "shared-dead-letter", 1, id="rows-dead"
    ),
    pytest.param(
        [sink("a", dead_letter="x"), sink("b", dead_letter="x")], "shared-dead-letter", 2, id="dead-dead"
    ),
    pytest.param([sink("a", target="x"), sink("b", progress="x")], "shared-progress", 2, id="progress-rows"),
    pytest.param(
        [sink("a", dead_letter="x"), sink("b", progress="x")], "shared-progress", 2, id="progress-dead"
    ),
    pytest.param([sink("a", "x", "y"), sink("b", "y", "x")], "cycle", 1, id="two-in-a-circle"),
    pytest.param(
        [sink("z", "q", "x"), sink("a", "x", "y"), sink("b", "y", "w"), sink("c", "y", "x")],
        "shared-topic",
        4,
        id="a-circle-beside-others",
    ),
    pytest.param([sink("a", target="x"), sink("a", target="x")], "duplicate-sink", 2, id="one-sink-twice"),
    pytest.param([sink("a", target="a b")], "invalid-sink", 1, id="no-sink"),
    pytest.param([sink("a", tagret="x")], "unknown-option", 1, id="unknown-option"),
    pytest.param([{**sink("a"), "query": "SELECT 1"}], "plan", 1, id="query-that-reads-nothing"),
    pytest.param(["a sink"], "invalid-sink", 1, id="no-mapping"),
]


@pytest.mark.parametrize(("sinks", "rule", "line"), TOPICS)
def test_a_mistake_of_sinks_is_found_with_its_line(sinks: list[Any], rule: str, line: int) -> None:
    found = judge(tasks(*(task(number, one) for number, one in enumerate(sinks, 1))))

    assert (rule, at(line)) in [(finding.rule, finding.place) for finding in found]
    assert {finding.rule for finding in found} <= {rule, "cycle"}


RIGHT = [
    pytest.param([sink("a", "x", "y"), sink("b", "y", "z"), sink("c", "y", "w")], id="a-chain-with-a-fork"),
    pytest.param([sink("a", progress="p"), sink("b", progress="p")], id="progress-that-is-shared"),
    pytest.param([sink("a", target="x"), {**sink("b"), "target": "other/x"}], id="another-connection"),
]


@pytest.mark.parametrize("sinks", RIGHT)
def test_what_is_right_is_not_complained_about(sinks: list[Any]) -> None:
    assert judge(tasks(*(task(number, one) for number, one in enumerate(sinks, 1)))) == ()


def test_a_circle_is_named_with_all_its_sinks() -> None:
    circle = [sink("a", "x", "y"), sink("b", "y", "z"), sink("c", "z", "x")]
    (found,) = judge(tasks(*(task(number, one) for number, one in enumerate(circle, 1))))

    assert found.what == (
        'rows go round in a circle: x -> y -> z -> x; sinks "a" (/dags/a.py:1), "b" (/dags/a.py:2), '
        '"c" (/dags/a.py:3)'
    )


def test_checking_and_validating_a_sink_beside_running_it_is_no_duplicate() -> None:
    kinds = (TaskKind.SUBMIT, TaskKind.CHECK, TaskKind.VALIDATE)

    assert judge(tasks(*(task(1, sink("a"), kind=kind, task_id=kind) for kind in kinds))) == ()


@pytest.mark.parametrize(
    ("deferrable", "deploy_mode", "found"),
    [(True, "client", True), (True, "cluster", False), (True, None, False), (False, "client", False)],
)
def test_deferring_is_found_only_where_it_cannot_be(
    deferrable: bool, deploy_mode: str | None, found: bool
) -> None:
    facts = tasks(task(1, sink("a"), deferrable=deferrable, deploy_mode=deploy_mode))

    assert [finding.rule for finding in judge(facts)] == ["deferrable"] * found


@pytest.mark.parametrize(("outlets", "found"), [((), True), (("sink:b",), True), (("sink:a",), False)])
def test_a_mapped_task_must_name_the_assets_of_its_sinks(outlets: tuple[str, ...], found: bool) -> None:
    facts = tasks(task(5, sink("a"), outlets=outlets))

    assert [(finding.rule, finding.place) for finding in judge(facts)] == [("unlisted-sink", at(5))] * found


def test_a_yaml_sink_that_a_dag_runs_is_one_sink() -> None:
    one = yaml_file(sink("a"))
    ran = task(7, sink("a"), yaml=(one.file, "a"))

    facts = FolderFacts((FileFacts(FILE, End.READ, tasks=(ran,)),), yaml=(one,))

    assert [(declared.place, declared.task) for declared in facts.sinks] == [(Place(one.file, 2), ran)]
    assert judge(facts) == ()


def test_two_yaml_files_with_one_sink_are_found_once() -> None:
    said = Failure(at(1), "ConfigurationError", "the sinks of YAML files are not valid", (Problem("a", "x"),))
    both = (yaml_file(sink("a")), yaml_file(sink("a"), name="/dags/t.yaml"))

    (found,) = judge(FolderFacts((file_(End.FAILED, failures=(said,)),), yaml=both))

    assert (found.rule, found.place) == ("duplicate-sink", Place("/dags/t.yaml", 2))


def test_a_problem_of_a_yaml_file_is_found_there_and_not_in_the_dag_file_too() -> None:
    said = Failure(at(1), "ConfigurationError", "the sinks of YAML files are not valid", (Problem("a", "x"),))
    problem = (Place("/dags/s.yaml", 4), Problem("sinks[a].tagret", "is not known", 'did you mean "target"?'))

    (found,) = judge(
        FolderFacts(
            (file_(End.FAILED, failures=(said,)),), yaml=(YamlFacts("/dags/s.yaml", problems=(problem,)),)
        )
    )

    assert (found.rule, found.place.line) == ("unknown-option", 4)


def test_a_yaml_sink_whose_dag_cannot_be_made_is_found_in_its_file() -> None:
    said = Problem("s.yaml: sinks[a].dag.owner_link", "whose link is it?", "give an owner too")
    stands_in = file_(dags=(dag(1, "a", broken=(said,)),))

    (found,) = judge(FolderFacts((stands_in,), yaml=(yaml_file(sink("a")),)))
    twins = judge(FolderFacts((stands_in,), yaml=(yaml_file(sink("a"), sink("a")),)))

    assert (found.rule, found.place.line, found.remedy) == ("invalid-sink", 2, "give an owner too")
    assert [finding.rule for finding in twins] == ["duplicate-sink"]


@pytest.mark.parametrize(
    ("again", "words"),
    [
        ((dag(2, text='{"a": [1, 3]}'),), "a.1 was 2, then 3"),
        ((dag(2, dag_id="e"),), "has another id"),
    ],
)
def test_a_dag_that_is_another_one_each_time_is_found(again: tuple[DagFacts, ...], words: str) -> None:
    facts = files(file_(dags=(dag(2, text='{"a": [1, 2]}'),)), again=(file_(dags=again),))

    (found,) = judge(facts)

    assert (found.rule, found.place) == ("unstable-dag", at(2))
    assert words in found.what


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ({"a": 1}, {"a": 2}, ("a",)),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ("a", 1, "b")),
        ({"a": [1]}, {"a": [1, 2]}, ("a",)),
        ({"a": 1}, {"b": 1}, ()),
    ],
)
def test_the_first_difference_is_named(first: Any, second: Any, path: tuple[Any, ...]) -> None:
    assert difference(first, second)[0] == path


def test_slowness_counts_only_if_it_was_slow_both_times() -> None:
    assert judge(files(file_(seconds=3.0), again=(file_(seconds=0.1),))) == ()


def test_rules_can_be_left_out_by_name() -> None:
    facts = files(file_(End.HUNG))

    assert [finding.rule for finding in judge(facts)] == ["hangs"]
    assert judge(facts, ignore=["hangs"]) == ()


def test_the_names_of_rules_are_those_that_findings_carry() -> None:
    planted = [param.values[1] for param in (*MISTAKES, *TOPICS)]

    assert set(NAMES) == {*planted, "unstable-dag", "deferrable", "unlisted-sink"}
    assert set(PROBLEM_RULES) <= set(NAMES)
    assert len(RULES) == 19


def test_a_finding_reads_place_rule_what_and_remedy() -> None:
    assert str(Finding(at(3), "cycle", "round", "stop")) == "/dags/a.py:3: cycle: round\n    Remedy: stop"
