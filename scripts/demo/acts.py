"""The acts of the demo: a sink runs and is read back, topics go missing, a driver dies, declarations change.

A lost output must stop the sink; a lost progress topic of a sink that never wrote must not. Every act demands
what it promises, and a demand that does not hold shows the last lines of the log that tells why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from airflow_provider_sinks.local.airflow_rest_api import DagRun
from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.stack import Stack
from scripts.demo import pageviews
from scripts.demo.act import Act
from scripts.demo.alter_act import move_a_running_sink
from scripts.demo.audit import Audit, audit, regions_by_user
from scripts.demo.avro_act import SINK as AVRO_SINK
from scripts.demo.avro_act import change_a_schema
from scripts.demo.lakehouse_act import Line, fill_four_targets
from scripts.demo.runs import demand, run_dag
from scripts.demo.say import quote, say, step
from scripts.demo.table import grid

SINK, SOURCE, TARGET = "pageviews_enriched", "pageviews", "pageviews-enriched"
QUIET_SINK, QUIET_SOURCE = "clicks_clean", "clicks"

_PROGRESS = "_sinks-progress-{}"
_SIDE_BY_SIDE = "\nThe acts run side by side, and are shown in their order; a time is that of its line alone."


def play(stack: Stack) -> None:
    """Play the acts side by side, as far as none disturbs another, and show them in their order.

    Two or three of them have a driver at a time: more would take memory, and gain nothing.
    """
    say(_SIDE_BY_SIDE)
    first = Act(f"2. Run DAG {SINK}: validate, check topics, submit a Spark job.", lambda: _run_once(stack))
    audited = Act(
        "3. Read the target back with a consumer that knows nothing of the sink.",
        lambda: _read_back(stack, first),
    )
    lost = Act(
        f'4. Delete the data topic "{TARGET}" and run the DAG again: it must refuse.',
        lambda: _lose_the_output(stack, audited),
    )
    emptied = Act(
        f"5. Sink {QUIET_SINK} has never written. Delete its progress topic: it must make it again.",
        lambda: _lose_an_empty_progress(stack),
    )
    filled = Act(
        "6. Four sinks of one YAML file: Kafka, Postgres, Iceberg, Delta. Kill each driver once.",
        lambda: fill_four_targets(stack, after=first),
    )
    changed = Act(
        f"7. Sink {AVRO_SINK} writes Avro. A change is refused, another one lets dead letters come back.",
        lambda: change_a_schema(stack, after=emptied),
    )
    moved = Act(
        "8. Alter the connection under a running sink: another listener, which demands a user.",
        lambda: move_a_running_sink(stack, after=emptied, alone=[lost, filled, changed]),
    )
    acts: Sequence[Act[object]] = [first, audited, lost, emptied, filled, changed, moved]
    for act in acts:
        act.start()
    for act in acts:
        act.show()
    say("\nExactly once, as programs found it that know nothing of sinks:")
    say(_summary(audited.result(), filled.result()))


def _run_once(stack: Stack) -> None:
    run = run_dag(stack, SINK)
    quote(event for event in stack.airflow.task_events(run, "submit") if event.startswith("launch "))


def _read_back(stack: Stack, written: Act[None]) -> Audit:
    written.result()
    with step("Audit") as line, stack.postgres.connect() as database:
        regions = regions_by_user(database)
        result = audit(stack.broker, regions, source=SOURCE, target=TARGET, progress=_PROGRESS.format(SINK))
        line.leave(f"{result.rows_out:,} rows out of {result.rows_in:,} rows in")
    if not result.is_exact or result.rows_in != pageviews.ROWS:
        raise LocalServiceError("the target is not what it should be", str(result))
    quote([result.sample])
    return result


def _lose_the_output(stack: Stack, audited: Act[Audit]) -> None:
    audited.result()
    pageviews.delete_topic(stack.broker, TARGET)
    run = run_dag(stack, SINK, "failed")
    report = _report(stack, run)
    quote([report])
    demand("verdict: refuse: " in report, "the task did not refuse", stack, run)
    demand(TARGET not in _topics(stack), f'topic "{TARGET}" is there again', stack, run)


def _lose_an_empty_progress(stack: Stack) -> None:
    topic = _PROGRESS.format(QUIET_SINK)
    run = run_dag(stack, QUIET_SINK)
    demand(topic in _topics(stack), f'topic "{topic}" was not made', stack, run)
    pageviews.delete_topic(stack.broker, topic)
    run = run_dag(stack, QUIET_SINK)
    quote([_report(stack, run)])
    policy = _cleanup_policy(stack, topic)
    demand(policy == "compact", f'topic "{topic}" has cleanup.policy={policy}', stack, run)
    quote([f'topic "{topic}" is there again, cleanup.policy={policy}'])


def _report(stack: Stack, run: DagRun) -> str:
    """Return what the task that checks the topics saw, and its verdict."""
    events = [text for text in stack.airflow.task_events(run, "check_topics") if text.startswith("seen at ")]
    demand(bool(events), "the task that checks the topics reported nothing", stack, run)
    return events[-1]


def _topics(stack: Stack) -> Iterable[str]:
    return AdminClient(pageviews.quiet(stack.broker)).list_topics(timeout=30).topics


def _cleanup_policy(stack: Stack, topic: str) -> str | None:
    admin = AdminClient(pageviews.quiet(stack.broker))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(timeout=30)
    return str(found["cleanup.policy"].value)


def _summary(audited: Audit, filled: Sequence[Line]) -> str:
    enriched = Line(
        SINK, "confluent-kafka", audited.rows_in, audited.rows_out, audited.missing, audited.duplicates, 1
    )
    names = ("sink", "read by", "rows in", "rows out", "missing", "duplicates", "launches")
    return grid(names, [enriched, *filled])
