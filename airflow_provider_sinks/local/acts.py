"""The acts of the demo: the sink runs, its target is read back, and topics go missing.

A lost output must stop the sink; a lost progress topic of a sink that never wrote must not. Every act demands
what it promises, and a demand that does not hold shows the last lines of the log that tells why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from textwrap import indent

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from airflow_provider_sinks.local import pageviews
from airflow_provider_sinks.local.airflow import DagRun
from airflow_provider_sinks.local.audit import Audit, audit
from airflow_provider_sinks.local.processes import LocalServiceError, tail
from airflow_provider_sinks.local.progress import step
from airflow_provider_sinks.local.stack import Stack
from airflow_provider_sinks.local.table import table

SINK, SOURCE, TARGET = "pageviews_enriched", "pageviews", "pageviews-enriched"
QUIET_SINK, QUIET_SOURCE = "clicks_clean", "clicks"

_TASKS = ("validate", "check_topics", "submit")
_PROGRESS = "_sinks-progress-{}"
_RUN_SECONDS = 300.0
_POLL_SECONDS = 0.5
_LAST_LINES = 30


def play(stack: Stack) -> None:
    """Play the acts in their order."""
    say(f"\n2. Run DAG {SINK}: validate, check topics, submit a Spark job.")
    _run_once(stack)
    say("\n3. Read the target back with a consumer that knows nothing of the sink.")
    result = _read_back(stack)
    say(f'\n4. Delete the data topic "{TARGET}" and run the DAG again: it must refuse.')
    _lose_the_output(stack)
    say(f"\n5. Sink {QUIET_SINK} has never written. Delete its progress topic: it must make it again.")
    _lose_an_empty_progress(stack)
    say("\nExactly once, as an independent read_committed consumer found it:")
    say(_summary(result))


def _run_once(stack: Stack) -> None:
    run = _run(stack, SINK, "success")
    _quote(event for event in stack.airflow.task_events(run, "submit") if event.startswith("launch "))


def _read_back(stack: Stack) -> Audit:
    with step("Audit") as line, stack.postgres.connect() as database:
        result = audit(stack.broker, database, source=SOURCE, target=TARGET, progress=_PROGRESS.format(SINK))
        line.leave(f"{result.rows_out:,} rows out of {result.rows_in:,} rows in")
    if not result.is_exact or result.rows_in != pageviews.ROWS:
        raise LocalServiceError("the target is not what it should be", str(result))
    _quote([result.sample])
    return result


def _lose_the_output(stack: Stack) -> None:
    pageviews.delete_topic(stack.broker, TARGET)
    run = _run(stack, SINK, "failed")
    report = _report(stack, run)
    _quote([report])
    _demand("verdict: refuse: " in report, "the task did not refuse", stack, run)
    _demand(TARGET not in _topics(stack), f'topic "{TARGET}" is there again', stack, run)


def _lose_an_empty_progress(stack: Stack) -> None:
    topic = _PROGRESS.format(QUIET_SINK)
    run = _run(stack, QUIET_SINK, "success")
    _demand(topic in _topics(stack), f'topic "{topic}" was not made', stack, run)
    pageviews.delete_topic(stack.broker, topic)
    run = _run(stack, QUIET_SINK, "success")
    _quote([_report(stack, run)])
    policy = _cleanup_policy(stack, topic)
    _demand(policy == "compact", f'topic "{topic}" has cleanup.policy={policy}', stack, run)
    _quote([f'topic "{topic}" is there again, cleanup.policy={policy}'])


def _run(stack: Stack, dag_id: str, expected: str) -> DagRun:
    """Run a DAG to its end, and demand how it ends."""
    with step(f"DAG {dag_id}") as line:
        run = stack.airflow.trigger(dag_id)
        deadline = time.monotonic() + _RUN_SECONDS
        while (state := stack.airflow.run_state(run)) not in ("success", "failed"):
            line.say(_tasks(stack, run))
            _demand(time.monotonic() < deadline, f"DAG {dag_id} did not end", stack, run)
            time.sleep(_POLL_SECONDS)
        line.leave(f"{state}; {_tasks(stack, run)}")
    _demand(state == expected, f"the run of DAG {dag_id} ended as {state}, not as {expected}", stack, run)
    return run


def _tasks(stack: Stack, run: DagRun) -> str:
    """Return the states of a run's tasks, in their order."""
    states = stack.airflow.task_states(run)
    return ", ".join(f"{task} {states.get(task) or 'waiting'}" for task in _TASKS)


def _report(stack: Stack, run: DagRun) -> str:
    """Return what the task that checks the topics saw, and its verdict."""
    events = [text for text in stack.airflow.task_events(run, "check_topics") if text.startswith("seen at ")]
    _demand(bool(events), "the task that checks the topics reported nothing", stack, run)
    return events[-1]


def _topics(stack: Stack) -> Iterable[str]:
    return AdminClient(pageviews.quiet(stack.broker)).list_topics(timeout=30).topics


def _cleanup_policy(stack: Stack, topic: str) -> str | None:
    admin = AdminClient(pageviews.quiet(stack.broker))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(timeout=30)
    return str(found["cleanup.policy"].value)


def _demand(holds: bool, otherwise: str, stack: Stack, run: DagRun) -> None:
    """Go on only if something holds; otherwise show the log that tells why."""
    if not holds:
        raise LocalServiceError(
            otherwise, _last_words(stack, run), "make demo KEEP=1 leaves everything up for a look"
        )


def _last_words(stack: Stack, run: DagRun) -> str:
    """Return the end of the log of the task that a run ended or hangs in, and of its Spark driver."""
    states = stack.airflow.task_states(run)
    begun = [task for task in _TASKS if states.get(task) not in (None, "upstream_failed")]
    if not begun:
        return "No task has begun."
    lines = stack.airflow.task_log(run, begun[-1]).splitlines()[-_LAST_LINES:]
    drivers = sorted((stack.folder / "airflow" / "sinks" / "launches" / run.dag_id).glob("*/driver.log"))
    hangs = drivers and states["submit"] == "running"  # a task that has ended shows its driver's last lines
    driver = ["", "Last lines of the Spark driver:", tail(drivers[-1])] if hangs else []
    return "\n".join([f"Last lines of task {begun[-1]}:", *lines, *driver])


def _summary(result: Audit) -> str:
    return table(
        {
            "rows in": result.rows_in,
            "rows out": result.rows_out,
            "missing": result.missing,
            "duplicates": result.duplicates,
            "epochs": result.epochs,
            "rows per second": result.rows_per_second,
        }
    )


def say(text: str) -> None:
    """Print for the one who watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _quote(texts: Iterable[str]) -> None:
    for text in texts:
        say(indent(text, "    "))
